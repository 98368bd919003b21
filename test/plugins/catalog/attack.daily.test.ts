// Attacks by a caller without funds: overwriting a seller's proven listing by payments that are only verified, using up
// its daily quota, and listing any number of URLs over one signature. Over HTTP only.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { databaseKinds } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { sellingPage, startOrigin } from "./startOrigin.ts"
import { eventually } from "../../support/eventually.ts"
import {
  browse,
  type Declared,
  declaring,
  type Json,
  outcomes,
  queryDeclaration,
  resolve,
  verified,
  withKey
} from "./support.ts"

const attackerKey = "attacker:0123456789abcdef-attack"
const sellerKey = "seller:0123456789abcdef-seller"
const versionsOfDay = 12

/** A listing's content: every field that a buyer reads and pays by. */
const saidBy = ({ accepts, description, extensions, operations, serviceName, tags }: Json): string =>
  JSON.stringify({ accepts, description, extensions, operations, serviceName, tags })

const lieAt = (at: number): Partial<Declared> => ({
  about: { description: `Owned ${at}`, serviceName: `Evil ${at}`, tags: ["evil"] },
  amount: BigInt(at + 1),
  extension: queryDeclaration({ input: { city: `Evil ${at}` } })
})

describe.each(databaseKinds)("an attack on a proven listing on %s", (database) => {
  it.live(
    "an attack leaves a proven listing intact and refuses no honest declaration [S256][S317]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* startFacilitator({
            database,
            closeMillis: 1_000,
            set: [
              "plugins=[ledger-local, x402-exact, catalog]",
              "catalog_security.probe_pause_seconds=0",
              `indexing.max_versions_per_day=${versionsOfDay}`
            ],
            environment: { FACILITATOR_API_KEYS: `${sellerKey},${attackerKey}` }
          })
          const origin = yield* startOrigin
          const url = `${origin.url}/weather`
          const payTo = (yield* facilitator.account()).publicKey()
          const payers = [yield* facilitator.account(), yield* facilitator.account(), yield* facilitator.account()]
          const page = { payTo, asset: testnetUsdc, description: "Weather", declaration: queryDeclaration() }
          origin.answers.set("/weather", sellingPage(page))
          const [seller, attacker] = [withKey(facilitator, sellerKey), withKey(facilitator, attackerKey)]
          const honest = { payer: payers[0]!, payTo, url, about: { description: "Weather" } }
          yield* verified(seller, yield* declaring(seller, honest))
          const shown = Effect.map(resolve(seller, url), ({ json }) => json.resource as Json)
          const before = yield* eventually(shown, (one) => one?.["ownership"] === "proven")
          expect(before).toMatchObject({ ownership: "proven", description: "Weather" })

          // More false declarations than a day's versions, each in another payer's valid payment, under both keys, one
          // of them settled.
          for (let at = 0; at < versionsOfDay + 4; at++) {
            const asked = at % 2 === 0 ? attacker : seller
            const lie = yield* declaring(asked, { payer: payers[at % 3]!, payTo, url, ...lieAt(at) })
            yield* asked.verify(lie)
            if (at === 1) yield* asked.settle(lie)
          }
          expect(saidBy(yield* shown)).toBe(saidBy(before))

          const paid = yield* seller.settle(yield* declaring(seller, { ...honest, payer: payers[1]! }))
          expect(paid.json.success, paid.text).toBe(true)
          expect(outcomes(paid)?.["catalog"]?.rejectedReason).toBeUndefined()
          const again = yield* verified(seller, yield* declaring(seller, { ...honest, payer: payers[2]! }))
          expect(again.outcome).toEqual({ status: "success" })
          expect(saidBy(yield* shown)).toBe(saidBy(before))

          // A payment's signature does not cover the URL: one signature is sent with fifty of them.
          const one = yield* declaring(attacker, { payer: payers[0]!, payTo: payers[1]!.publicKey(), url })
          const named = (at: number) => `${origin.url}/made-up/${at}`
          for (let at = 0; at < 50; at++) {
            const { paymentPayload, ...rest } = one as Json
            const resource = { ...paymentPayload.resource, url: named(at) }
            const answer = yield* attacker.verify({ ...rest, paymentPayload: { ...paymentPayload, resource } })
            expect(answer.json.isValid, answer.text).toBe(true)
          }
          const made = (yield* browse(facilitator, "?limit=100"))["items"] as ReadonlyArray<Json>
          expect(
            made.filter(({ resource }) => resource.startsWith(`${origin.url}/made-up/`)).length
          ).toBeLessThanOrEqual(1)
          // A merely claimed listing ranks behind the listing that its origin confirms.
          expect(made[0]).toMatchObject({ resource: url })

          // Only its origin changes it, and immediately.
          origin.answers.set("/weather", sellingPage({ ...page, amount: "2500", description: "Weather, dearer" }))
          yield* seller.verify(yield* declaring(seller, { ...honest, amount: 2_500n }))
          const after = yield* eventually(shown, (current) => current?.["description"] === "Weather, dearer")
          expect(after["accepts"].map(({ amount }: Json) => amount)).toEqual(["2500"])
        })
      ),
    240_000
  )
})
