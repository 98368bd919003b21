// The paywall page in a real browser: a person with a wallet pays and reads; a wallet stub signs by Freighter's public
// messages, as the extension does. Widths and themes, axe, the page's policy, a proxy that lies, and a browser without
// a wallet.
import { NodeServices } from "@effect/platform-node"
import { hash, type Keypair, Networks } from "@stellar/stellar-sdk"
import { Effect, Exit, Scope } from "effect"
import { createServer } from "node:http"
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { paywall, prepareProxy } from "../../examples/seller/paywall.mjs"
import { makeSell, toNode } from "../../examples/seller/sellRequest.mjs"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { chromiumPath, howToGetOne } from "./chromium.ts"
import { launch, Visit } from "./Visit.ts"

const scope = Scope.makeUnsafe()
const run = <A, E>(effect: Effect.Effect<A, E>): Promise<A> => Effect.runPromise(effect)
let browser: Browser
let facilitator: Facilitator
let url = ""
let payTo = ""
let lie: (terms: any) => any = (terms) => terms
/** Loses an answer to a payment like a gateway or a network does, or replaces it. */
let lose: ((answer: Response) => Response | undefined) | undefined
let payments: Array<string> = []

const hasChromium = chromiumPath() !== undefined
if (!hasChromium) console.log(howToGetOne)

/** Answers the page's messages as the extension does, with the account of `payer`; refuses if `refuses`. */
const installWallet = async (visit: Visit, payer: Keypair, refuses = false, passphrase = Networks.TESTNET) => {
  await visit.page.exposeFunction("signForTest", (entryXdr: string) =>
    Buffer.from(payer.sign(hash(Buffer.from(entryXdr, "base64")))).toString("base64")
  )
  await visit.page.addInitScript(
    ({ account, passphrase, refuses }) => {
      const { window } = globalThis as any
      window.freighter = true
      window.addEventListener("message", async ({ data, source }: any) => {
        if (source !== window || data?.source !== "FREIGHTER_EXTERNAL_MSG_REQUEST") return
        const answers: Record<string, () => unknown> = {
          REQUEST_CONNECTION_STATUS: () => ({ isConnected: true }),
          REQUEST_ACCESS: () => ({ publicKey: account }),
          REQUEST_NETWORK_DETAILS: () => ({ networkDetails: { networkPassphrase: passphrase } }),
          SUBMIT_AUTH_ENTRY: async () =>
            refuses
              ? { apiError: { code: -4, message: "The user rejected this request." } }
              : { signedAuthEntry: await window.signForTest(data.entryXdr), signerAddress: account }
        }
        const answer = await answers[data.type]?.()
        const head = { source: "FREIGHTER_EXTERNAL_MSG_RESPONSE", messagedId: data.messageId }
        window.postMessage({ ...head, ...(answer as object) }, window.location.origin)
      })
    },
    { account: payer.publicKey(), passphrase, refuses }
  )
}

const gateway = () => new Response("<html>timeout</html>", { status: 504, headers: { "content-type": "text/html" } })
const cut = (answer: Response) => answer

beforeAll(async () => {
  if (!hasChromium) return
  const options = { closeMillis: 1_000 }
  facilitator = await run(
    startFacilitator(options).pipe(
      Scope.provide(scope),
      Effect.provide(NodeServices.layer)
    ) as Effect.Effect<Facilitator>
  )
  browser = await launch()
  payTo = (await run(facilitator.account(0n))).publicKey()
  const sell = makeSell({
    payTo,
    asset: testnetUsdc,
    amount: "12345",
    facilitator: facilitator.url,
    maxTimeoutSeconds: 60,
    description: 'The weather, <b id="inert">made up</b>',
    paywall: paywall({ prepareUrl: "/x402/prepare" })
  })
  const proxy = prepareProxy({ facilitator: facilitator.url })
  const answer = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url)
    if (pathname === "/x402/prepare") {
      const body: any = await request.json()
      return proxy(
        new Request(request.url, {
          method: "POST",
          body: JSON.stringify({ ...body, paymentRequirements: lie(body.paymentRequirements) })
        })
      )
    }
    if (pathname !== "/weather") return new Response("", { status: 404 })
    const payment = request.headers.get("payment-signature")
    const given = await sell(request, () => ({ celsius: 17 }))
    if (payment === null) return given
    payments.push(payment)
    return lose?.(given) ?? given
  }
  const handle = toNode(answer)
  const server = createServer((request, response) => {
    const isCut = lose === cut && request.headers["payment-signature"] !== undefined
    // The seller answers, and no part of the answer arrives.
    if (isCut) response.writeHead = (() => (request.socket.destroy(), response)) as any
    handle(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  url = `http://127.0.0.1:${(server.address() as { port: number }).port}`
  await run(
    Scope.addFinalizer(
      scope,
      Effect.sync(() => server.close())
    )
  )
}, 240_000)

afterAll(async () => {
  await browser?.close()
  await run(Scope.close(scope, Exit.void))
}, 60_000)

describe.runIf(hasChromium)("the paywall page", () => {
  it("is paid by a wallet and shows what was bought, to the atom", { timeout: 120_000 }, async () => {
    lie = (terms) => terms
    const payer = await run(facilitator.account(1_000_000n))
    const visit = await Visit.open(browser, url)
    await installWallet(visit, payer)
    await visit.go("/weather")
    expect(await visit.page.locator(".price").textContent()).toBe("0.0012345 USDC")
    expect(await visit.page.locator("h1").textContent()).toBe('The weather, <b id="inert">made up</b>')
    expect(await visit.page.locator("#inert").count()).toBe(0)
    // Only by keyboard.
    await visit.page.keyboard.press("Tab")
    await visit.page.keyboard.press("Enter")
    await visit.page.locator("pre").waitFor()
    expect(await visit.page.locator("pre").textContent()).toBe('{"celsius":17}')
    expect(await visit.page.locator("#say").textContent()).toMatch(/^Paid\. Receipt [0-9a-f]{64}$/)
    expect(await run(facilitator.balance(payTo))).toBe(12_345n)
    expect(await run(facilitator.balance(payer.publicKey()))).toBe(987_655n)
    expect([await visit.axe(), visit.issues]).toEqual([[], []])
    await visit.picture("paywall-paid")
    await visit.close()
  })

  it("pays once when the answer is lost, and a reload opens the page", { timeout: 240_000 }, async () => {
    for (const loss of [gateway, cut]) {
      lie = (terms) => terms
      const before = await run(facilitator.balance(payTo))
      const payer = await run(facilitator.account(1_000_000n))
      const visit = await Visit.open(browser, url)
      await installWallet(visit, payer)
      await visit.go(`/weather?by=${loss.name}`)
      expect(await visit.page.locator("dl").textContent()).toContain(new URL(url).host)
      payments = []
      lose = loss
      await visit.page.locator("#pay").click()
      await visit.page.locator("#say.error").waitFor({ timeout: 60_000 })
      expect(await visit.page.locator("#say").textContent()).toMatch(/answer was lost/)
      // A visitor who clicks again sends the same one.
      await visit.page.locator("#pay").click()
      await visit.page.locator("#pay:disabled").waitFor()
      await visit.page.locator("#pay:enabled").waitFor({ timeout: 60_000 })
      // The browser itself may repeat a request whose connection was cut.
      expect(payments.length).toBeGreaterThanOrEqual(6)
      expect(new Set(payments).size).toBe(1)
      lose = undefined
      // Another tab of the visitor, then a reload, and another after that.
      const tab = await visit.context.newPage()
      await tab.goto(`${url}/weather?by=${loss.name}`)
      await tab.locator("pre").waitFor()
      for (const _ of [1, 2]) {
        await visit.page.reload()
        await visit.page.locator("pre").waitFor()
        expect(await visit.page.locator("#say").textContent()).toMatch(/^Paid\. Receipt [0-9a-f]{64}$/)
      }
      expect(new Set(payments).size).toBe(1)
      expect((await run(facilitator.balance(payTo))) - before).toBe(12_345n)
      expect(visit.issues).toEqual([])
      await visit.close()
    }
  })

  it("offers no second payment while a refused one can land", { timeout: 240_000 }, async () => {
    const payer = await run(facilitator.account(1_000_000n))
    const before = await run(facilitator.balance(payTo))
    const visit = await Visit.open(browser, url)
    await installWallet(visit, payer)
    await visit.go("/weather?by=refusal")
    payments = []
    // It settles, and the seller denies it.
    lose = () => new Response("{}", { status: 402, headers: { "content-type": "application/json" } })
    for (const _ of [1, 2]) {
      await visit.page.locator("#pay").click()
      await visit.page.locator("#say.error").waitFor()
      await visit.page.locator("#pay:enabled").waitFor()
      expect(await visit.page.locator("#say").textContent()).toMatch(/refused the payment.*no second one is offered/)
    }
    // Another refusal names a used payment. Its last ledger has closed, and it may have settled.
    lose = () => Response.json({ error: "payment_already_used" }, { status: 409 })
    await visit.page.evaluate(() => {
      const { localStorage } = globalThis as any
      const [place] = Object.keys(localStorage)
      localStorage[place!] = JSON.stringify({ ...JSON.parse(localStorage[place!]), ledger: 1 })
    })
    for (const _ of [1, 2]) {
      await visit.page.locator("#pay").click()
      await visit.page.locator("#pay:enabled").waitFor()
      expect(await visit.page.locator("#say").textContent()).toMatch(/paid for another page.*no second one is offered/)
    }
    lose = undefined
    await visit.page.locator("#pay").click()
    await visit.page.locator("pre").waitFor()
    expect(new Set(payments).size).toBe(1)
    expect((await run(facilitator.balance(payTo))) - before).toBe(12_345n)
    await visit.close()
  })

  it("sends no payment to another origin that a redirect names", { timeout: 120_000 }, async () => {
    let requests = 0
    const other = createServer((_, response) => {
      requests += 1
      const headers = { "access-control-allow-origin": "*", "access-control-allow-headers": "payment-signature" }
      response.writeHead(200, headers).end()
    })
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve))
    const location = `http://127.0.0.1:${(other.address() as { port: number }).port}/`
    const visit = await Visit.open(browser, url)
    await installWallet(visit, await run(facilitator.account(1_000_000n)))
    await visit.go("/weather?by=redirect")
    payments = []
    lose = () => new Response(null, { status: 307, headers: { location } })
    await visit.page.locator("#pay").click()
    await visit.page.locator("#say.error").waitFor({ timeout: 60_000 })
    lose = undefined
    expect([payments.length > 0, requests]).toEqual([true, 0])
    await visit.close()
    other.close()
  })

  it(
    "signs nothing when another payment is to be signed, or when the person refuses",
    { timeout: 120_000 },
    async () => {
      const before = await run(facilitator.balance(payTo))
      const payer = await run(facilitator.account(1_000_000n))
      const thief = (await run(facilitator.account(0n))).publicKey()
      const cases: ReadonlyArray<readonly [(terms: any) => any, boolean, RegExp]> = [
        [(terms) => ({ ...terms, payTo: thief }), false, /another payment was to be signed/],
        [(terms) => ({ ...terms, amount: "12346" }), false, /another payment was to be signed/],
        [(terms) => ({ ...terms, maxTimeoutSeconds: 300 }), false, /another payment was to be signed/],
        [(terms) => terms, true, /rejected this request/]
      ]
      for (const [change, refuses, shows] of cases) {
        lie = change
        const visit = await Visit.open(browser, url)
        await installWallet(visit, payer, refuses)
        await visit.go("/weather")
        await visit.page.locator("#pay").click()
        await visit.page.locator("#say.error").waitFor()
        expect(await visit.page.locator("#say").textContent()).toMatch(shows)
        // It can be tried again.
        expect(await visit.page.locator("#pay").isEnabled()).toBe(true)
        await visit.close()
      }
      lie = (terms) => terms
      const elsewhere = await Visit.open(browser, url)
      await installWallet(elsewhere, payer, false, Networks.PUBLIC)
      await elsewhere.go("/weather")
      await elsewhere.page.locator("#pay").click()
      await elsewhere.page.getByText("switch it to testnet").waitFor()
      await elsewhere.close()
      expect(await run(facilitator.balance(payTo))).toBe(before)
    }
  )

  it("says what to do without a wallet, at three widths in both themes", { timeout: 120_000 }, async () => {
    for (const width of [390, 820, 1_280])
      for (const theme of ["light", "dark"] as const) {
        const visit = await Visit.open(browser, url, { width, theme })
        await visit.go("/weather")
        expect([width, theme, await visit.axe(), visit.issues]).toEqual([width, theme, [], []])
        const isWide = await visit.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        expect([width, isWide]).toEqual([width, false])
        await visit.picture(`paywall-${width}-${theme}`)
        if (width === 390) {
          await visit.page.locator("#pay").click()
          await visit.page.locator("#say.error").waitFor()
          expect(await visit.page.locator("#say").textContent()).toMatch(/Install Freighter/)
          expect(await visit.page.locator("#way").textContent()).toMatch(/On a phone/)
          expect(await visit.axe()).toEqual([])
        }
        await visit.close()
      }
  })

  it("is JSON for programs, and weighs little", async () => {
    const forPrograms = await fetch(`${url}/weather`)
    expect([forPrograms.status, forPrograms.headers.get("content-type")]).toEqual([402, "application/json"])
    const forPeople = await fetch(`${url}/weather`, { headers: { accept: "text/html" } })
    expect(forPeople.status).toBe(402)
    expect((await forPeople.text()).length).toBeLessThan(20_000)
  })
})
