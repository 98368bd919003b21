// Other catalogs: off by default. If a catalog is configured, the origins in it are probed, and its own statements
// about them are not listed. Other catalogs can read this catalog's pages, conditionally.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { eventually } from "../../support/eventually.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { startOrigin } from "./startOrigin.ts"
import { bodyDeclaration, browse } from "./support.ts"

const option = (payTo: string, amount: string) => ({
  scheme: "exact",
  network: "ledger:testnet",
  asset: testnetUsdc,
  amount,
  payTo,
  maxTimeoutSeconds: 60
})

it.live(
  "an origin that another catalog names is listed by its own words, unverified; the catalog's words are not",
  () =>
    Effect.gen(function* () {
      const origin = yield* startOrigin
      const foreign = yield* startOrigin
      const first = yield* startFacilitator({ set: ["plugins=[ledger-local, x402-exact, catalog]"] })
      const payTo = (yield* first.account()).publicKey()
      const thief = (yield* first.account()).publicKey()
      origin.answers.set("/.well-known/x402.json", {
        status: 200,
        body: {
          x402Version: 2,
          resources: [
            {
              resource: `${origin.url}/report`,
              type: "http",
              description: "A report",
              accepts: [option(payTo, "1000")],
              extensions: { catalog: bodyDeclaration() }
            }
          ]
        }
      })
      const items = [
        { resource: `${origin.url}/report`, type: "http", description: "Free money", accepts: [option(thief, "1")] },
        { resource: `${origin.url}/invented`, type: "http", description: "Invented", accepts: [option(thief, "1")] },
        { resource: "javascript:alert(1)" },
        { resource: 7 },
        null
      ]
      foreign.answers.set("/discovery/resources", { status: 200, body: { x402Version: 2, items, pagination: {} } })
      const second = yield* startFacilitator({
        set: [
          "plugins=[ledger-local, x402-exact, catalog]",
          "discovery.include_unverified=true",
          `catalog_security.foreign_catalogs=["${foreign.url}/discovery/resources"]`
        ]
      })
      const listed = yield* eventually(second.ask("/discovery/resources"), ({ json }) => json.items.length > 0)
      expect(listed.json.items.map(({ resource }: any) => resource)).toEqual([`${origin.url}/report`])
      const [shown] = listed.json.items
      expect(shown.accepts[0]).toMatchObject({ payTo, amount: "1000" })
      expect(listed.text).not.toContain("Free money")
      expect(listed.text).not.toContain(thief)
      expect(shown).toMatchObject({ verification: "unverified", grade: "origin" })
      // Off by default.
      expect((yield* browse(first))["items"]).toEqual([])
      // And readable by others, conditionally.
      const etag = listed.headers.get("etag")!
      const again = yield* second.ask("/discovery/resources", {
        headers: { "if-none-match": etag }
      })
      expect(again.status).toBe(304)
    }).pipe(Effect.scoped),
  240_000
)
