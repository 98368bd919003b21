// Claims against evidence, over HTTP: a listing hidden by a free payment, squatted declarations on a facilitator
// without keys, declarations signed by an account, and the meaning of an origin without a statement.
import { Keypair } from "@stellar/stellar-sdk"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { describe } from "vitest"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { databaseKinds } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import { sellingPage, startOrigin } from "./startOrigin.ts"
import {
  bindRecipients,
  bodyDeclaration,
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
import { catalogWorld } from "./catalogWorld.ts"

const start = (database: (typeof databaseKinds)[number], set: ReadonlyArray<string>, environment = {}) =>
  startFacilitator({
    database,
    environment,
    closeMillis: 1_000,
    set: ["plugins=[ledger-local, x402-exact, catalog]", "catalog_security.probe_pause_seconds=0", ...set]
  })

const listingOf = (facilitator: Facilitator, url: string) =>
  Effect.map(explain(facilitator, url), ({ listings }) => listings[0] as Json)

const shown = (facilitator: Facilitator, url: string) =>
  Effect.map(resolve(facilitator, url), ({ json, status }) => (status === 200 ? (json.resource as Json) : undefined))

/** Polls until the listing is as expected. */
const probeUntil = (facilitator: Facilitator, url: string, is: (listing: Json) => boolean) =>
  eventually(Effect.andThen(facilitator.sql`update catalog_probes set due_at = now()`, listingOf(facilitator, url)), is)

const settled = Effect.fnUntraced(function* (facilitator: Facilitator, body: unknown) {
  const answer = yield* facilitator.settle(body)
  expect(answer.json).toMatchObject({ success: true })
  return outcomes(answer)?.["catalog"] as Json | undefined
})

describe.each(databaseKinds)("evidence for a listing on %s", (database) => {
  it.live(
    "a POST-only seller regains its listing by settlement or key",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const otherKey = "other:0123456789abcdef-other"
          const keyed = yield* start(database, [], { FACILITATOR_API_KEYS: `${sellerKey},${otherKey}` })
          const facilitator = withKey(keyed, otherKey)
          const origin = yield* startOrigin
          // As in common frameworks, GET of a POST-only path is 404.
          const post = sellingPage({ payTo: "G", asset: testnetUsdc })
          for (const path of ["/settled", "/keyed"])
            origin.answers.set(path, ({ method }) => (method === "POST" ? post : { status: 404 }))
          const stranger = yield* facilitator.account()
          const buyer = yield* facilitator.account()
          const payTo = (yield* facilitator.account()).publicKey()
          const lie = { payer: stranger, payTo, about: { description: "Lies" } }
          const truth = { payer: buyer, payTo, extension: bodyDeclaration(), about: { description: "Reports" } }
          const hide = Effect.fnUntraced(function* (url: string) {
            yield* verified(facilitator, yield* declaring(facilitator, { ...lie, url }))
            const hidden = yield* probeUntil(facilitator, url, (one) => one["status"] === "stale")
            expect(hidden["reason"]).toBe("not_found")
            expect(hidden["raisedBy"]).toContain("/.well-known/x402")
          })
          const alive = { status: "active", operations: [{ method: "POST" }], description: "Reports" }
          const settledUrl = `${origin.url}/settled`
          yield* hide(settledUrl)
          yield* settled(facilitator, yield* declaring(facilitator, { ...truth, url: settledUrl }))
          yield* eventually(shown(facilitator, settledUrl), (one) => one?.["description"] === "Reports")
          expect(yield* shown(facilitator, settledUrl)).toMatchObject({ ...alive, grade: "claimed" })
          const keyedUrl = `${origin.url}/keyed`
          yield* hide(keyedUrl)
          yield* bindRecipients(facilitator, [payTo])
          const { outcome } = yield* verified(
            withKey(keyed),
            yield* declaring(facilitator, { ...truth, url: keyedUrl })
          )
          expect(outcome).toEqual({ status: "success" })
          expect(yield* shown(facilitator, keyedUrl)).toMatchObject({ ...alive, grade: "declared" })
          // Probes do not hide it again either: POST is never requested.
          yield* facilitator.sql`update catalog_probes set due_at = now()`
          yield* Effect.sleep("3 seconds")
          expect((yield* listingOf(facilitator, settledUrl))["status"]).toBe("active")
        })
      ),
    240_000
  )

  it.live(
    "without keys, settled payments outweigh claims, and no number of payers displaces them",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* start(database, ["catalog_security.probe_origins=false"])
          const url = "https://keyless.example.com/report"
          const other = "https://keyless.example.com/other"
          const stranger = yield* facilitator.account()
          const buyers = yield* Effect.forEach([1, 2, 3], () => facilitator.account())
          const payTo = (yield* facilitator.account()).publicKey()
          const own = { payTo, about: { description: "Reports" }, extension: bodyDeclaration() }
          const lie = { payer: stranger, payTo, url, about: { description: "Lies" } }
          yield* verified(facilitator, yield* declaring(facilitator, { ...lie, amount: 90_000_000n }))
          expect(yield* shown(facilitator, url)).toMatchObject({ description: "Lies" })
          // A hundredth of a cent does not count as evidence, and neither does a payment to oneself.
          yield* settled(facilitator, yield* declaring(facilitator, { ...own, payer: buyers[0]!, url, amount: 1n }))
          yield* Effect.sleep("2 seconds")
          expect(yield* shown(facilitator, url)).toMatchObject({ description: "Lies" })
          yield* settled(facilitator, yield* declaring(facilitator, { ...own, payer: buyers[0]!, url }))
          yield* eventually(shown(facilitator, url), (one) => one?.["description"] === "Reports")
          expect((yield* shown(facilitator, url))!["accepts"]).toMatchObject([{ amount: "1000", payTo }])
          // However many pay under other words, the words that a customer paid for stay.
          for (const payer of [stranger, buyers[1]!, buyers[2]!])
            yield* settled(facilitator, yield* declaring(facilitator, { ...lie, payer, amount: 500n }))
          yield* Effect.sleep("2 seconds")
          expect(yield* shown(facilitator, url)).toMatchObject({ description: "Reports" })
          // The settled payment also displaces another recipient's unpaid listing.
          const mine = (yield* facilitator.account()).publicKey()
          yield* verified(facilitator, yield* declaring(facilitator, { ...lie, url: other, payTo: mine }))
          yield* settled(facilitator, yield* declaring(facilitator, { ...own, payer: buyers[1]!, url: other }))
          yield* eventually(shown(facilitator, other), (one) => one?.["accepts"][0].payTo === payTo)
          expect(yield* shown(facilitator, other)).toMatchObject({ description: "Reports", payers: 1 })
        })
      ),
    240_000
  )

  it.live(
    "a stranger's recipient gives way to settlements under a key, and to the page of the method it did not name",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const otherKey = "other:0123456789abcdef-other"
          const keyed = yield* start(database, [], { FACILITATOR_API_KEYS: `${sellerKey},${otherKey}` })
          const facilitator = withKey(keyed, otherKey)
          const origin = yield* startOrigin
          const stranger = yield* facilitator.account()
          const buyer = yield* facilitator.account()
          const mine = (yield* facilitator.account()).publicKey()
          const payTo = (yield* facilitator.account()).publicKey()
          const page = sellingPage({ payTo, asset: testnetUsdc, description: "Page", declaration: queryDeclaration() })
          for (const path of ["/get", "/plain"]) origin.answers.set(path, page)
          origin.answers.set("/post", ({ method }) => (method === "POST" ? page : { status: 404 }))
          const squat = (path: string, extension: Json) =>
            Effect.flatMap(
              declaring(facilitator, { payer: stranger, payTo: mine, url: `${origin.url}${path}`, extension }),
              (body) => verified(facilitator, body)
            )
          const paidAt = (path: string) =>
            eventually(shown(facilitator, `${origin.url}${path}`), (one) => one?.["accepts"][0].payTo === payTo)
          // POST only, by a seller with a key: settled under it.
          yield* squat("/post", queryDeclaration())
          yield* bindRecipients(facilitator, [payTo])
          const own = { payer: buyer, payTo, url: `${origin.url}/post`, extension: bodyDeclaration() }
          const conflict = yield* verified(withKey(keyed), yield* declaring(facilitator, own))
          expect(conflict.outcome).toEqual({ status: "rejected", rejectedReason: "payto_conflict" })
          yield* settled(withKey(keyed), yield* declaring(facilitator, own))
          expect(yield* paidAt("/post")).toMatchObject({ status: "active", operations: [{ method: "POST" }] })
          yield* verified(withKey(keyed), yield* declaring(facilitator, own))
          expect(yield* shown(facilitator, own.url)).toMatchObject({ grade: "declared" })
          // GET, which the stranger declared as POST: the seller's claim triggers a probe of its page.
          yield* squat("/get", bodyDeclaration())
          const { url, ...got } = { payer: buyer, payTo, url: `${origin.url}/get` }
          yield* facilitator.verify(yield* declaring(facilitator, { ...got, url }))
          expect(yield* paidAt("/get")).toMatchObject({ ownership: "proven", operations: [{ method: "GET" }] })
          // GET, declared as a route without a variable part: its page is probed as well.
          yield* squat("/plain", queryDeclaration({ routeTemplate: "/plain" }))
          expect(yield* paidAt("/plain")).toMatchObject({ grade: "origin", description: "Page" })
        })
      ),
    240_000
  )

  it.live(
    "the recipient's account signature declares these terms once, without a key",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* start(database, ["catalog_security.probe_origins=false"])
          const url = "https://signed.example.com/report"
          const stranger = yield* facilitator.account()
          const seller = yield* facilitator.account()
          const payTo = seller.publicKey()
          const hashes = Effect.map(explain(facilitator, url), ({ listings }) => listings[0].versionHash as string)
          const declaredWith = (amount: bigint, more: Json) =>
            declaring(facilitator, {
              payer: stranger,
              payTo,
              url,
              amount,
              about: { description: "Reports" },
              extension: { ...queryDeclaration(), ...more }
            })
          const sign = (key: Keypair, text: string) => {
            const digest = createHash("sha256").update(`Stellar Signed Message:\n${text}`).digest()
            return Buffer.from(key.sign(digest)).toString("base64")
          }
          const priced = Effect.map(shown(facilitator, url), (one) => [one?.["grade"], one?.["accepts"][0].amount])
          yield* verified(facilitator, yield* declaredWith(1_000n, {}))
          const signature = sign(seller, yield* hashes)
          // Another account's signature, or this one for another price, declares nothing.
          yield* verified(facilitator, yield* declaredWith(1_000n, { signature: sign(stranger, yield* hashes) }))
          yield* facilitator.verify(yield* declaredWith(7_000n, { signature }))
          expect(yield* priced).toEqual(["claimed", "1000"])
          const first = yield* declaredWith(1_000n, { signature })
          yield* verified(facilitator, first)
          expect(yield* priced).toEqual(["declared", "1000"])
          // The next price needs a signature over the hash of the listing with that price.
          const listing = (yield* shown(facilitator, url))!
          const { canonicalJson } = yield* Effect.promise(() => import("../../../kernel/payment/wire/canonicalJson.ts"))
          const { lastingOf } = yield* Effect.promise(() => import("../../../plugins/catalog/contract.ts"))
          const dearer = JSON.parse(JSON.stringify(listing).replaceAll('"amount":"1000"', '"amount":"2000"')) as Json
          const hash = createHash("sha256")
            .update(canonicalJson(lastingOf(dearer)))
            .digest("hex")
          const signedAt = "2031-03-01"
          const second = yield* declaredWith(2_000n, { signedAt, signature: sign(seller, `${hash} ${signedAt}`) })
          yield* verified(facilitator, second)
          expect(yield* priced).toEqual(["declared", "2000"])
          yield* facilitator.verify(yield* declaredWith(1_000n, { signature }))
          yield* Effect.sleep("1 second")
          expect(yield* priced).toEqual(["declared", "2000"])
        })
      ),
    240_000
  )

  it.live(
    "hidden or respelled paths never resolve to another seller's template",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { facilitator, payer, payTo } = yield* catalogWorld(start(database, []))
          const origin = yield* startOrigin
          const mine = (yield* facilitator.account()).publicKey()
          const accepts = [
            {
              scheme: "exact",
              network: "ledger:testnet",
              asset: testnetUsdc,
              amount: "1000",
              payTo,
              maxTimeoutSeconds: 60
            }
          ]
          origin.answers.set("/.well-known/x402", {
            status: 200,
            body: {
              payTo,
              resources: [{ resource: "/v1/unlisted" }, { resource: "/v1/report", accepts }],
              delist: ["/v1/gone"]
            }
          })
          const declare = (path: string, to: string, more: Json = {}) =>
            Effect.flatMap(declaring(facilitator, { payer, payTo: to, url: `${origin.url}${path}`, ...more }), (body) =>
              facilitator.verify(body)
            )
          yield* declare("/v1/report", payTo)
          const first = yield* eventually(shown(facilitator, `${origin.url}/v1/report`), (one) => one !== undefined)
          expect(first!["accepts"][0].payTo).toBe(payTo)
          const template = { extension: queryDeclaration({ routeTemplate: "/v1/:name" }) }
          yield* declare("/v1/anything", mine, template)
          yield* declare("/v2/anything", payTo, { extension: queryDeclaration({ routeTemplate: "/v2/:name" }) })
          yield* eventually(listingOf(facilitator, `${origin.url}/v2/7`), (one) => one?.["ownership"] === "proven")
          const stateOf = (path: string) =>
            Effect.map(resolve(facilitator, `${origin.url}${path}`), ({ status }) => status)
          // The document names only the recipient: a template claimed by a payment answers once it is established.
          expect(yield* stateOf("/v2/7")).toBe(404)
          yield* facilitator.sql`update catalog_resources set standing_at = 'epoch' where resource like '%/:name'`
          expect((yield* shown(facilitator, `${origin.url}/v2/7`))!["accepts"][0].payTo).toBe(payTo)
          // Another seller's template never answers, for any path or method; nor does the owner's for an explicitly
          // listed path.
          yield* facilitator.sql`update catalog_resources set state = 'stale', state_reason = 'not_found'
            where resource = ${`${origin.url}/v1/report`}`
          yield* facilitator.sql`update catalog_resources set ownership = 'proven', state = 'active',
              state_reason = null
            where resource like '%/:name'`
          const paths = [
            "report",
            "REPORT",
            "report;x=1",
            "report.",
            "report%2E",
            "%72eport",
            "unlisted",
            "gone",
            "Unlisted;a"
          ]
          for (const path of paths) expect([path, yield* stateOf(`/v1/${path}`)]).toEqual([path, 404])
          expect(yield* stateOf("/v1/other")).toBe(200)
          yield* facilitator.sql`update catalog_resources set ownership = 'provisional', grade = 'claimed',
              pay_tos = array[${mine}]
            where resource like '%/v1/:name'`
          expect(yield* stateOf("/v1/other")).toBe(404)
        })
      ),
    240_000
  )
})
