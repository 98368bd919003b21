// Attacks on the pages and their requests: invalid positions, sessions of another role, and an unreachable database.
// None of it is answered as success or as an internal error.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"

const [shop, ops] = ["shop-secret-0123456789", "operator-secret-012345"]
const environment = { FACILITATOR_API_KEYS: `shop:${shop}`, OPERATOR_API_KEYS: `ops:${ops}` }
const set = ["plugins=[ledger-local,x402-exact,catalog,search-lexical,analytics,dashboard]"]
const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

const pages = ["/", "/seller", "/receipts", "/dashboard", "/docs", "/dashboard/web/style.css"]
/** The requests of the pages, and the tables behind them. */
const asked = [
  "/dashboard/v1/standing",
  `/dashboard/v1/settlements/${"a".repeat(64)}`,
  "/dashboard/v1/moves",
  "/analytics/v1/overview",
  "/analytics/v1/transactions",
  "/analytics/v1/sellers",
  "/analytics/v1/resources",
  "/analytics/v1/search/missed",
  "/analytics/v1/search/conversion",
  "/catalog/v1/observations?url=http://127.0.0.1:9/x"
]
/** Parts of a database error or a trace in an answer; a sheet's `select {` is neither. */
const leaked = /relation|select (?!\{)|traceId/
const tables = [
  "kernel_settlements",
  "kernel_attempts",
  "kernel_operator_acts",
  "analytics_totals",
  "analytics_standings",
  "analytics_members",
  "catalog_resources",
  "catalog_missed_searches",
  "catalog_impressions"
]

describe.each(databaseKinds)("requests of the pages on %s", (database) => {
  it.live(
    "a report is unavailable while its tables are unreachable, the pages stay",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ database, environment, set, channels: 1 })
        const { sql } = facilitator
        const statuses = (paths: ReadonlyArray<string>) =>
          Effect.forEach(paths, (path) =>
            Effect.map(facilitator.ask(path, { headers: bearer(ops) }), (answer) => {
              expect([path, answer.text]).not.toEqual([path, expect.stringMatching(leaked)])
              return `${answer.status} ${path}`
            })
          )
        for (const table of tables) yield* sql`alter table ${sql.literal(`${table} rename to away_${table}`)}`
        expect(yield* statuses(pages)).toEqual(pages.map((path) => `200 ${path}`))
        expect(yield* statuses(asked)).toEqual(asked.map((path) => `503 ${path}`))
        for (const table of tables) yield* sql`alter table ${sql.literal(`away_${table} rename to ${table}`)}`
        expect(yield* statuses(asked)).toEqual(
          asked.map((path) => (path.includes("/settlements/") ? `404 ${path}` : `200 ${path}`))
        )
      }).pipe(Effect.scoped),
    240_000
  )
})

describe("a list's parameters", () => {
  it.live(
    "malformed parameters are refused before the database reads them",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ environment, set, channels: 1 })
        const uuid = "0".repeat(8) + "-0000".repeat(3) + "-" + "0".repeat(12)
        const refused = [
          ...["2026-02-30", "2026-13-01", "0000-01-01", "2026-01-31T25:00Z"].flatMap((time) =>
            ["settlements?from", "settlements?to", "refusals?from", "refusals?to", "pulse?to"].map(
              (path) => `${path}=${time}`
            )
          ),
          `settlements?cursor=1_${"-".repeat(36)}`,
          `settlements?cursor=${"9".repeat(19)}_${uuid}`,
          `sellers?cursor=1_${"9".repeat(19)}_G${"A".repeat(55)}`,
          `refusals?cursor=${"9".repeat(19)}:verify:a:key:shop`
        ]
        const statuses = yield* Effect.forEach(refused, (path) =>
          Effect.map(facilitator.ask(`/analytics/v1/${path}`, { headers: bearer(ops) }), ({ status }) => [path, status])
        )
        expect(statuses).toEqual(refused.map((path) => [path, 400]))
        const large = `settlements?sort=largest&asset=C&cursor=${"9".repeat(39)}_${uuid}`
        expect((yield* facilitator.ask(`/analytics/v1/${large}`, { headers: bearer(ops) })).status).toBe(200)
        const life = yield* facilitator.ask(`/dashboard/v1/settlements/${"-".repeat(36)}`, { headers: bearer(ops) })
        expect(life.status).toBe(404)
      }).pipe(Effect.scoped),
    240_000
  )
})

describe("a stream of settlements", () => {
  it.live(
    "a settlement stream refuses an invalid position, by header and by query",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ environment, set, channels: 1 })
        const bogus = ["x", "-1", "1e3", "0x10", "1.5", "9".repeat(20), "9223372036854775808", "1 2", "%00", "null"]
        for (const position of bogus) {
          const header = { headers: { ...bearer(ops), "last-event-id": position } }
          const path = `/analytics/v1/events?after=${encodeURIComponent(position)}`
          for (const answer of [
            yield* facilitator.ask("/analytics/v1/events", header),
            yield* facilitator.ask(path, { headers: bearer(ops) })
          ])
            expect([position, answer.status, answer.json.error]).toEqual([position, 400, "invalid_cursor"])
        }
      }).pipe(Effect.scoped),
    240_000
  )
})

describe("a session", () => {
  it.live(
    "wrong keys of an address delay no sign-in with a listed key",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ environment, set, channels: 1 })
        const signIn = (key: string) =>
          Effect.map(
            facilitator.ask("/dashboard/session", {
              method: "POST",
              headers: { "content-type": "application/json", "x-tollkeeper-page": "1" },
              body: JSON.stringify({ key })
            }),
            ({ status }) => status
          )
        const guesses = Array.from({ length: 12 }, (_, at) => signIn(`a-wrong-secret-${at}`))
        const answered = yield* Effect.all(guesses, { concurrency: "unbounded" })
        expect(new Set(answered)).toEqual(new Set([401, 429]))
        expect(yield* Effect.all([signIn(ops), signIn("a-wrong-secret-0"), signIn(shop)])).toEqual([200, 429, 200])
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a session keeps its role and key, whatever its cookie says",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ environment, set, channels: 1 })
        const opened = yield* facilitator.ask("/dashboard/session", {
          method: "POST",
          headers: { "content-type": "application/json", "x-tollkeeper-page": "1" },
          body: JSON.stringify({ key: shop })
        })
        const cookie = opened.headers.get("set-cookie")!.split(";", 1)[0]!
        const status = (given: string, path: string) =>
          Effect.map(facilitator.ask(path, { headers: { cookie: given } }), (answer) => answer.status)
        expect(yield* status(cookie, "/analytics/v1/overview")).toBe(200)
        const token = cookie.split("=")[1]!
        const [, , until, ...rest] = token.split(".")
        for (const forged of [
          `operator.ops.${until}.${rest.join(".")}`,
          `operator.shop.${until}.${rest.join(".")}`,
          `caller.ops.${until}.${rest.join(".")}`,
          `caller.shop.${Number(until) + 1}.${rest.join(".")}`,
          `${token}.`,
          token.replace(/.$/, (last) => (last === "A" ? "B" : "A"))
        ])
          for (const path of ["/dashboard/v1/standing", "/analytics/v1/overview", "/analytics/v1/search/missed"])
            expect([forged, yield* status(`tollkeeper_session=${forged}`, path)]).toEqual([forged, 401])
        // Its name does not make it an account's, and a second cookie does not make it an operator's.
        expect(yield* status(`tollkeeper_account=${token}`, "/catalog/v1/account")).toBe(401)
        expect(yield* status(`${cookie}; tollkeeper_account=${token}`, "/analytics/v1/account")).toBe(401)
        expect(yield* status(`${cookie}; tollkeeper_session=operator.ops.1.2.3`, "/dashboard/v1/standing")).toBe(401)
      }).pipe(Effect.scoped),
    240_000
  )
})
