// How resources in each state appear in browse, in search and by URL, under either setting; how they are counted; and
// their history as operators read it.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"
import {
  bindRecipients,
  browse,
  declaring,
  explain,
  type Json,
  queryDeclaration,
  resolve,
  sellerKey,
  verified,
  withKey
} from "./support.ts"

const urlOf = (name: string) => `https://shop.example.com/${name}`
const states = ["active", "stale", "quarantined"] as const
/** Its example does not match its schema. */
const broken = { ...queryDeclaration(), schema: { required: ["nothing"] } }

/** One resource in each state, seen in this order, and a facilitator that shows them by its settings. */
const opened = Effect.fnUntraced(function* (database: (typeof databaseKinds)[number], set: ReadonlyArray<string>) {
  const facilitator = yield* startFacilitator({
    database,
    channels: 1,
    environment: { FACILITATOR_API_KEYS: sellerKey },
    set: [
      "plugins=[ledger-local, x402-exact, catalog, search-lexical, analytics]",
      "server.host=127.0.0.1",
      "limits.verify_per_second=0",
      "catalog_security.probe_origins=false",
      ...set
    ]
  })
  const seller = withKey(facilitator)
  const payer = yield* facilitator.account()
  const payTo = (yield* facilitator.account()).publicKey()
  yield* bindRecipients(facilitator, [payTo])
  const declare = Effect.fnUntraced(function* (name: string, more: Json = {}) {
    const about = { description: `The ${name} almanac of weather.` }
    const body = yield* declaring(facilitator, { payer, payTo, url: urlOf(name), about, ...more })
    return (yield* verified(seller, body)).outcome
  })
  for (const state of states) {
    expect(yield* declare(state)).toEqual({ status: "success" })
    // Use another reason than being unseen: a recent payment is recorded as a sighting and would revive it.
    yield* facilitator.sql`update catalog_resources set state = ${state}, state_reason = 'operator'
      where resource = ${urlOf(state)}`
  }
  const report = (path: string) => Effect.map(seller.ask(`/analytics/v1${path}`), ({ json }) => json as Json)
  return { declare, report, seller }
})

const names = (items: ReadonlyArray<Json>) => items.map(({ resource }) => new URL(resource).pathname.slice(1)).sort()
const found = (seller: Parameters<typeof browse>[0]) =>
  Effect.map(seller.ask("/discovery/search?query=weather%20almanac&mode=lexical"), ({ json }) => json.resources as [])

describe.each(databaseKinds)("what is shown on %s", (database) => {
  it.live(
    "only active resources are shown by default; stale and quarantined are counted [S99, S100, S114, S148, S288, S291]",
    () =>
      Effect.gen(function* () {
        const { declare, report, seller } = yield* opened(database, [])
        expect(names(yield* eventually(found(seller), (items) => items.length > 0))).toEqual(["active"])
        expect(names((yield* browse(seller))["items"])).toEqual(["active"])
        for (const state of states)
          expect((yield* resolve(seller, urlOf(state))).status).toBe(state === "active" ? 200 : 404)
        expect(yield* report("/overview")).toMatchObject({
          cataloged_resources: "3",
          active_resources: "1",
          stale_resources: "1",
          quarantined_resources: "1",
          origins: "1"
        })
        expect(yield* declare("broken", { extension: broken })).toEqual({
          status: "rejected",
          rejectedReason: "schema_invalid"
        })
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "stale resources are shown when configured, quarantined ones never [S99, S114, S291]",
    () =>
      Effect.gen(function* () {
        const set = ["discovery.include_stale=true", "indexing.require_valid_schema=false"]
        const { declare, seller } = yield* opened(database, set)
        const both = ["active", "stale"]
        expect(names(yield* eventually(found(seller), (items) => items.length > 1))).toEqual(both)
        expect(names((yield* browse(seller))["items"])).toEqual(both)
        expect((yield* resolve(seller, urlOf("stale"))).json.resource.status).toBe("stale")
        expect((yield* resolve(seller, urlOf("quarantined"))).status).toBe(404)
        // The operator's other waivers apply as well: a schema that its own example violates is listed.
        expect(yield* declare("broken", { extension: broken })).toEqual({ status: "success" })
        expect(names((yield* browse(seller))["items"])).toEqual(["active", "broken", "stale"])
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "operators read hidden resources newest first, with version and price history [S163, S165]",
    () =>
      Effect.gen(function* () {
        const { declare, report, seller } = yield* opened(database, [])
        const items: ReadonlyArray<Json> = (yield* report("/resources"))["items"]
        expect(items.map(({ id }) => id)).toEqual(["3", "2", "1"])
        yield* declare("active", { amount: 2_000n })
        yield* eventually(explain(seller, urlOf("active")), ({ listings }) => listings[0].version === 2)
        const detail = yield* report("/resources/1")
        expect(detail["versions"].map(({ version }: Json) => version)).toEqual([2, 1])
        expect(
          detail["payment_options"].map(({ amount, retired_at }: Json) => [amount, retired_at === null]).sort()
        ).toEqual([
          ["1000", false],
          ["2000", true]
        ])
        // An untouched resource keeps its place.
        expect((yield* report("/resources"))["items"].map(({ id }: Json) => id)).toEqual(["3", "2", "1"])
      }).pipe(Effect.scoped),
    240_000
  )
})
