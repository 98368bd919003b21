// A listing matches its origin's statements: no payment, by any payer and key, changes a listing of a higher grade or
// refuses an honest declaration.
import { expect, it } from "@effect/vitest"
import type { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { describe } from "vitest"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { databaseKinds } from "../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { lastingOf } from "../../../plugins/catalog/contract.ts"
import { sellingPage, startOrigin } from "./startOrigin.ts"
import { eventually } from "../../support/eventually.ts"
import {
  bindRecipients,
  bodyDeclaration,
  type Declared,
  declaring,
  explain,
  type Json,
  outcomes,
  queryDeclaration,
  resolve,
  sellerKey,
  verified,
  withKey
} from "./support.ts"

const attackerKey = "attacker:0123456789abcdef-attack"
const nativeXlm = "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC"
/** The input of a version hash. */
const lasting = (resource: Json): Json => lastingOf(resource)

const start = (database: (typeof databaseKinds)[number], ...set: ReadonlyArray<string>) =>
  startFacilitator({
    database,
    closeMillis: 1_000,
    set: ["plugins=[ledger-local, x402-exact, catalog]", "catalog_security.probe_pause_seconds=0", ...set],
    environment: { FACILITATOR_API_KEYS: `${sellerKey},${attackerKey}` }
  })

/** Ways to declare something else about a listing, each in a valid payment. */
const lies: ReadonlyArray<Partial<Declared>> = [
  { about: { description: "Owned", serviceName: "Evil", tags: ["evil"], iconUrl: "https://evil.example.com/i.png" } },
  { amount: 1n },
  { amount: 2_000n },
  { asset: nativeXlm, amount: 3n },
  { extension: bodyDeclaration() },
  { extension: queryDeclaration({ input: { city: "Evil" } }) },
  { key: "bazaar", network: "stellar:testnet" }
]

/**
 * Verifies and settles every false declaration with several payers and both keys; returns the seller's response to
 * each.
 */
const attack = Effect.fnUntraced(function* (
  facilitator: Facilitator,
  { payTo, url }: { readonly payTo: string; readonly url: string },
  payers: ReadonlyArray<Keypair>
) {
  const results: Array<unknown> = []
  for (const [at, lie] of lies.entries()) {
    const asked = withKey(facilitator, at % 2 === 0 ? attackerKey : sellerKey)
    const body = yield* declaring(asked, { payer: payers[at % payers.length]!, payTo, url, ...lie })
    results.push(outcomes(yield* asked.verify(body))?.[lie.key ?? "catalog"])
    if (at < 3) results.push(outcomes(yield* asked.settle(body))?.["catalog"])
  }
  return results
})

describe.each(databaseKinds)("the text of a listing on %s", (database) => {
  it.live(
    "a listing proven by its origin changes only by its origin [S256][S317]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* start(database)
          const origin = yield* startOrigin
          const url = `${origin.url}/weather`
          const payTo = (yield* facilitator.account()).publicKey()
          const payers = [yield* facilitator.account(), yield* facilitator.account(), yield* facilitator.account()]
          const page = { payTo, asset: testnetUsdc, description: "Weather", declaration: queryDeclaration() }
          origin.answers.set("/weather", sellingPage(page))
          const seller = withKey(facilitator)
          const honest = yield* declaring(seller, {
            payer: payers[0]!,
            payTo,
            url,
            about: { description: "Weather" }
          })
          yield* verified(seller, honest)
          const probe = Effect.map(resolve(seller, url), ({ json }) => json.resource as Json)
          const proven = yield* eventually(probe, (one) => one?.["grade"] === "origin")
          expect(proven).toMatchObject({ ownership: "proven", description: "Weather", grade: "origin" })

          const results = yield* attack(facilitator, { payTo, url }, payers)
          for (const one of results) expect((one as Json | undefined)?.["status"]).not.toBe("rejected")
          expect(JSON.stringify(lasting(yield* probe))).toBe(JSON.stringify(lasting(proven)))
          // Even the recipient's own key does not override the origin.
          yield* bindRecipients(facilitator, [payTo])
          yield* attack(facilitator, { payTo, url }, payers)
          expect((yield* probe)["versionHash"]).toBe(proven["versionHash"])
          expect((yield* verified(seller, honest)).outcome).toEqual({ status: "success" })
          expect((yield* explain(seller, url))["listings"][0]).toMatchObject({ version: 1, grade: "origin" })

          origin.answers.set("/weather", sellingPage({ ...page, amount: "2500", description: "Weather, dearer" }))
          yield* facilitator.sql`update catalog_probes set due_at = now()`
          const dearer = yield* eventually(probe, (one) => one?.["description"] === "Weather, dearer")
          expect(dearer["accepts"].map(({ amount }: Json) => amount)).toEqual(["2500"])
          expect((yield* explain(seller, url))["listings"][0]).toMatchObject({ version: 2, grade: "origin" })
        })
      ),
    240_000
  )

  it.live(
    "an unproven listing keeps its first settled text until its recipient declares [S23][S256]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* start(database, "catalog_security.probe_origins=false")
          const url = "https://shop.example.com/item"
          const payTo = (yield* facilitator.account()).publicKey()
          const payers = [yield* facilitator.account(), yield* facilitator.account()]
          const seller = withKey(facilitator)
          const about = { description: "An item" }
          const first = yield* declaring(seller, { payer: payers[0]!, payTo, url, about })
          expect((yield* verified(seller, first)).outcome).toEqual({ status: "success" })
          // Text settled by one payer: no false declaration below settles for more, and of equals the first stays.
          const paid = yield* declaring(seller, { payer: payers[1]!, payTo, url, about })
          expect((yield* seller.settle(paid)).json["success"]).toBe(true)
          const read = Effect.map(resolve(seller, url), ({ json }) => json.resource as Json)
          const claimed = yield* read
          expect(claimed).toMatchObject({ grade: "claimed", ownership: "provisional" })
          const results = yield* attack(facilitator, { payTo, url }, payers)
          for (const one of results) expect((one as Json | undefined)?.["status"]).not.toBe("rejected")
          expect(JSON.stringify(lasting(yield* read))).toBe(JSON.stringify(lasting(claimed)))

          yield* bindRecipients(facilitator, [payTo])
          const own = yield* declaring(seller, { payer: payers[0]!, payTo, url, about: { description: "Right" } })
          // The grade from before the binding is cached for seconds.
          yield* eventually(
            Effect.map(seller.verify(own), (answer) => outcomes(answer)?.["catalog"].status as string),
            (status) => status === "success"
          )
          const declared = yield* read
          expect(declared).toMatchObject({ grade: "declared", description: "Right" })
          const asAttacker = withKey(facilitator, attackerKey)
          expect(outcomes(yield* asAttacker.verify(first))?.["catalog"].status).not.toBe("rejected")
          expect(lasting(yield* read)).toEqual(lasting(declared))
          const kept = yield* facilitator.sql<{ grade: string }>`select w.grade from catalog_words w
            join catalog_resources r on r.id = w.resource_id where r.resource = ${url} order by w.grade`
          expect(kept).toEqual([{ grade: "claimed" }, { grade: "declared" }])
        })
      ),
    240_000
  )

  it.live(
    "a signed challenge binds a recipient to its own key alone",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* start(database, "catalog_security.probe_origins=false")
          const owner = yield* facilitator.account()
          const payTo = owner.publicKey()
          const seller = withKey(facilitator)
          const post = (asked: Facilitator, body: Json) =>
            asked.ask("/catalog/v1/challenge", { method: "POST", body: JSON.stringify(body) })
          expect((yield* post(facilitator, { payTo })).status).toBe(401)
          expect((yield* post(seller, { payTo: "GNOBODY" })).status).toBe(400)
          const { challenge } = (yield* post(seller, { payTo })).json
          const sign = (pair: Keypair, text: string) =>
            Buffer.from(pair.sign(createHash("sha256").update(`Stellar Signed Message:\n${text}`).digest())).toString(
              "base64"
            )
          const stranger = yield* facilitator.account()
          const right = { payTo, challenge, signature: sign(owner, challenge) }
          for (const [asked, body] of [
            [seller, { ...right, signature: sign(stranger, challenge) }],
            [seller, { ...right, payTo: stranger.publicKey(), signature: sign(stranger, challenge) }],
            [seller, { ...right, challenge: `${challenge}x`, signature: sign(owner, `${challenge}x`) }],
            [withKey(facilitator, attackerKey), right]
          ] as const)
            expect((yield* post(asked, body)).status).toBe(403)
          expect((yield* post(seller, right)).json).toEqual({ payTo, grade: "declared" })
          const url = "https://shop.example.com/own"
          const payer = yield* facilitator.account()
          yield* verified(seller, yield* declaring(seller, { payer, payTo, url, about: { description: "One" } }))
          expect((yield* resolve(seller, url)).json.resource.grade).toBe("declared")
          for (const [amount, description] of [
            [2_000n, "Two"],
            [3_000n, "Three"]
          ] as const) {
            const body = yield* declaring(seller, { payer, payTo, url, amount, about: { description } })
            expect((yield* verified(seller, body)).outcome).toEqual({ status: "success" })
          }
          const shown = (yield* resolve(seller, url)).json.resource
          expect([shown.description, shown.accepts[0].amount, shown.accepts.length]).toEqual(["Three", "3000", 1])
          expect(Date.parse(shown.priceChangedAt)).toBeGreaterThan(0)
          expect(shown.lastSettledAt).toBeUndefined()
          const read = yield* facilitator.ask(`/discovery/history?resource=${encodeURIComponent(url)}`)
          expect(read.json).toMatchObject({ x402Version: 2, resource: url, type: "http" })
          expect(read.json.versions.map(({ grade, version }: Json) => `${version} ${grade}`)).toEqual([
            "3 declared",
            "2 declared",
            "1 declared"
          ])
          expect(read.json.versions[0].versionHash).toBe(shown.versionHash)
          const prices = read.json.prices as ReadonlyArray<Json>
          expect(prices.map(({ amount, method }) => `${method} ${amount}`)).toEqual([
            "GET 3000",
            "GET 2000",
            "GET 1000"
          ])
          expect([prices[0]!["until"], prices[1]!["until"]]).toEqual([null, prices[0]!["from"]])
          for (const query of ["", `?resource=${encodeURIComponent(url)}&type=mcp`])
            expect((yield* facilitator.ask(`/discovery/history${query}`)).status).toBe(400)
          expect((yield* facilitator.ask("/discovery/history?resource=https://none.example.com/")).status).toBe(404)
          // A sale is reported as the last success within a second.
          yield* seller.settle(
            yield* declaring(seller, { payer, payTo, url, amount: 3_000n, about: { description: "Three" } })
          )
          const sold = yield* eventually(resolve(seller, url), ({ json }) => json.resource.lastSettledAt !== undefined)
          expect(sold.json.resource).toMatchObject({ settlements: 1, payers: 1, versionHash: shown.versionHash })
          const [history] = yield* facilitator.sql<{ options: number; versions: number }>`select
            (select count(*)::int from catalog_options) as options,
            (select count(*)::int from catalog_versions where grade = 'declared') as versions`
          expect(history).toEqual({ options: 3, versions: 3 })
        })
      ),
    240_000
  )

  it.live(
    "the version hash ignores extensions that a buyer adds [S194][S310]",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* start(database, "catalog_security.probe_origins=false")
          const url = "https://shop.example.com/hash"
          const payTo = (yield* facilitator.account()).publicKey()
          const payer = yield* facilitator.account()
          const seller = withKey(facilitator)
          const identifier = { info: { required: false, id: "pay_0123456789abcdef0123456789abcdef" } }
          const sets: ReadonlyArray<Json> = [
            { "payment-identifier": identifier, "offer-receipt": { info: {} } },
            {},
            { "payment-identifier": { ...identifier, schema: { type: "object" } } },
            { "sign-in-with-x": { info: { nonce: "n" } }, "com.example.buyer": { any: [1, 2, 3] } }
          ]
          const hashes: Array<string> = []
          for (const extensions of sets) {
            const body = yield* declaring(seller, { payer, payTo, url, extensions })
            expect((yield* verified(seller, body)).outcome).toEqual({ status: "success" })
            const { resource } = (yield* resolve(seller, url)).json
            hashes.push(resource.versionHash)
            expect(Object.keys(resource.extensions)).toEqual(["catalog"])
          }
          expect(new Set(hashes).size).toBe(1)
        })
      ),
    240_000
  )
})
