// The page at `/receipts` in a browser: it checks a real receipt and refuses a changed one, with the pages' policy, and
// only requests this facilitator's DID document.
import { NodeServices } from "@effect/platform-node"
import { Effect, Exit, Scope } from "effect"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { receiptSecrets } from "../plugins/receipts/secrets.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { chromiumPath, howToGetOne } from "./chromium.ts"
import { launch, Visit } from "./Visit.ts"

const scope = Scope.makeUnsafe()
let browser: Browser
let facilitator: Facilitator

/** The receipt of one payment. */
const pay = () =>
  Effect.runPromise(
    Effect.gen(function* () {
      const [payer, payee] = [yield* facilitator.account(), yield* facilitator.account(0n)]
      const { body } = yield* facilitator.payment({ payer, payTo: payee.publicKey(), amount: 12_345n })
      return (yield* facilitator.settle(body)).json
    })
  )

describe.skipIf(chromiumPath() === undefined)(
  `a receipt in a browser${chromiumPath() === undefined ? ` (${howToGetOne})` : ""}`,
  () => {
    beforeAll(async () => {
      browser = await launch()
      const set = ["receipts.host=pay.example"]
      facilitator = await Effect.runPromise(
        startFacilitator({ environment: receiptSecrets, set }).pipe(
          Scope.provide(scope),
          Effect.provide(NodeServices.layer)
        )
      )
    }, 240_000)
    afterAll(async () => {
      await browser.close()
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }, 240_000)

    it("is checked without a server, and refused once it is changed", async () => {
      const settled = await pay()
      const visit = await Visit.open(browser, facilitator.url)
      await visit.go("/receipts")
      const receipt = visit.page.getByLabel(/^Transaction hash, or receipt/)
      await receipt.fill(JSON.stringify(settled))
      const asked: Array<string> = []
      visit.page.on("request", (request) => asked.push(new URL(request.url()).pathname))
      const check = visit.page.getByRole("button", { name: "Check" })
      await check.click()
      await visit.page.getByText("PAYMENT ONLY").waitFor()
      const shown = await visit.page.locator("main").innerText()
      expect(shown).toContain("12,345")
      // A claim has its label, not its key.
      expect(shown).not.toContain("closedAt")
      await receipt.fill(JSON.stringify({ ...settled, transaction: "0".repeat(64) }))
      await check.click()
      await visit.page.getByText("the receipt is of another payment").waitFor()
      expect(new Set(asked)).toEqual(new Set(["/.well-known/did.json"]))
      // The newest payment's hash, and a receipt from a file, are checked too.
      await visit.page.getByRole("button", { name: "Use the newest payment here" }).click()
      expect(await receipt.inputValue()).toBe(settled.transaction)
      await check.click()
      await visit.page.getByText("PAYMENT ONLY").waitFor()
      const file = { name: "receipt.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(settled)) }
      await visit.page.getByLabel("From a file").setInputFiles(file)
      await visit.page.waitForFunction(() => document.querySelector("textarea")?.value.startsWith("{"))
      await check.click()
      await visit.page.getByText("PAYMENT ONLY").waitFor()
      expect(visit.issues).toEqual([])
      await visit.close()
    }, 240_000)
  }
)
