// What time does to listings: they go stale and revive, unneeded rows are deleted, probes of origins are leased and
// fenced. The clock is the test's, the database a real one.
import { expect, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"
import { type CatalogValues, Config } from "../../../plugins/catalog/Config.ts"
import { changedFact } from "../../../plugins/catalog/contract.ts"
import type { Declaration } from "../../../plugins/catalog/declaration/Declaration.ts"
import { type Probed, Verdicts } from "../../../plugins/catalog/ownership/Verdicts.ts"
import { writing } from "../../../plugins/catalog/plugin.ts"
import { Changes } from "../../../plugins/catalog/store/Changes.ts"
import { Listings } from "../../../plugins/catalog/store/Listings.ts"
import { leaseProbes } from "../../../plugins/catalog/ownership/reconcileProbes.ts"
import { Sightings } from "../../../plugins/catalog/store/Sightings.ts"
import { ageCatalog, startAge } from "../../../plugins/catalog/store/reconcileAge.ts"
import { describeDatabases } from "../../support/databases.ts"
import { timed } from "../../support/timed.ts"

const hour = 3_600_000
const day = 24 * hour
const start = Date.parse("2031-03-01T00:00:00Z")

const config = {
  indexOn: "verified",
  staleAfterHours: 168,
  newResourcesPerDayMax: 1_000,
  versionsPerDayMax: 100,
  freeListingsPerHourMax: 1_000,
  declaredBytesPerDayMax: 1_000_000,
  probeOrigins: true,
  probePauseSeconds: 60,
  allowLocalOrigins: false
} as CatalogValues

const declarationOf = (resource: string, payTo = "GOWNER"): Declaration => ({
  identity: { type: "http", resource, toolName: "", origin: "https://a.example.com" },
  about: { description: "A thing" },
  operation: { method: "GET", info: { input: { type: "http", method: "GET" } }, schema: undefined },
  sentKey: "catalog",
  dialect: "ledger",
  extensions: ["catalog"],
  terms: {
    scheme: "exact",
    network: "ledger:testnet",
    asset: "CASSET",
    amount: Option.some(5n),
    amountText: "5",
    payTo,
    maxTimeoutSeconds: 60,
    extra: {}
  } as unknown as Declaration["terms"]
})

const unsaid = { declarations: [], life: "unknown", isLocal: false } as const

const open = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`truncate catalog_resources, catalog_observations, catalog_quotas, catalog_sales, kernel_facts restart
    identity cascade`
  yield* TestClock.setTime(start)
  const parts = yield* Layer.build(
    Layer.merge(writing, Sightings.layer).pipe(
      Layer.provideMerge(Layer.merge(Changes.layer, Layer.succeed(Config, config)))
    )
  )
  const recorder = Context.get(parts, Listings)
  let changes = 0
  yield* Context.get(parts, Changes).onChange(() => void changes++)
  const now = Effect.map(
    Effect.clockWith((clock) => clock.currentTimeMillis),
    (millis) => new Date(millis)
  )
  const list = (resource: string, payTo?: string) =>
    Effect.flatMap(now, (now) =>
      recorder.record(declarationOf(resource, payTo), {
        stage: "verified",
        payer: "GPAYER",
        grade: "claimed",
        authorization: () => Option.none(),
        now
      })
    )
  const stateOf = (resource: string) =>
    Effect.map(
      sql<{ state: string }>`select state from catalog_resources where resource = ${resource}`,
      ([row]) => row?.state
    )
  const moves = (resource: string) =>
    Effect.map(
      sql<{
        by: string
        move: string
        from: string
        to: string
        reason: string
      }>`select d.by, d.move, d.from_state as "from", d.to_state as "to", d.reason
        from catalog_decisions d join catalog_resources r on r.id = d.resource_id where r.resource = ${resource}
          order by d.id`,
      (rows) => rows.map(({ by, from, move, reason, to }) => `${by} ${move}: ${from} → ${to}, ${reason}`)
    )
  const reportedChanges = Effect.map(
    sql<{ change: string }>`select data->>'change' as change from kernel_facts where type = ${changedFact} order by id`,
    (rows) => rows.map(({ change }) => change)
  )
  return {
    sql,
    parts,
    list,
    stateOf,
    moves,
    reportedChanges,
    now,
    age: Effect.provideContext(ageCatalog, parts),
    journal: Context.get(parts, Sightings),
    apply: Context.get(parts, Verdicts).apply,
    changes: () => changes
  }
})

/** The due probes of both queues. */
const due = (sql: SqlClient.SqlClient, now: Date) =>
  Effect.map(Effect.all([leaseProbes(sql, now, true), leaseProbes(sql, now, false)]), (both) => both.flat())

const listed = "facilitator listed: null → active, payment_observed"
const wentStale = "facilitator went_stale: active → stale, not_seen"
const returned = "facilitator returned: stale → active, payment_observed"
const a = "https://a.example.com/a"
const b = "https://a.example.com/b"

describeDatabases(
  "time",
  (database) => {
    const services = Facts.layer.pipe(Layer.provideMerge(database), Layer.provideMerge(Supervisor.layer))
    // The database's own timers use the real clock: otherwise a week would be a hundred thousand of its ticks.
    layer(services, { timeout: "240 seconds", excludeTestServices: true })((it) => {
      it.effect(
        "a resource unseen beyond the limit goes stale; a sighting revives it [S98][S100][S290]",
        timed(
          Effect.gen(function* () {
            const { age, changes, journal, list, moves, now, stateOf, reportedChanges } = yield* open
            const { resourceId } = yield* list(a)
            yield* TestClock.adjust(168 * hour)
            yield* age
            expect(yield* stateOf(a)).toBe("active")
            yield* TestClock.adjust(1)
            yield* age
            expect([yield* stateOf(a), changes()]).toEqual(["stale", 1])
            yield* age
            expect(yield* moves(a)).toEqual([listed, wentStale])
            yield* journal.touch(resourceId!, yield* now, undefined)
            yield* journal.flush
            expect(yield* stateOf(a)).toBe("active")
            yield* age
            expect(yield* moves(a)).toEqual([listed, wentStale, returned])
            expect(yield* reportedChanges).toEqual(["listed", "went_stale", "returned"])
          })
        )
      )

      it.effect(
        "any sighting postpones staleness, and a declaration revives a stale resource [S98]",
        timed(
          Effect.gen(function* () {
            const { age, journal, list, moves, now, stateOf } = yield* open
            const { resourceId } = yield* list(a)
            yield* list(b)
            yield* TestClock.adjust(100 * hour)
            yield* journal.touch(resourceId!, yield* now, undefined)
            yield* journal.flush
            yield* TestClock.adjust(100 * hour)
            yield* age
            expect([yield* stateOf(a), yield* stateOf(b)]).toEqual(["active", "stale"])
            expect((yield* list(b)).decision).toBe("unchanged")
            expect([yield* stateOf(b), yield* moves(b)]).toEqual(["active", [listed, wentStale, returned]])
          })
        )
      )

      it.effect(
        "sightings do not move or revive a quarantined or removed resource [S98][S100]",
        timed(
          Effect.gen(function* () {
            const { age, journal, list, now, sql, stateOf } = yield* open
            const ids = [(yield* list(a)).resourceId!, (yield* list(b)).resourceId!]
            yield* sql`update catalog_resources set state = 'quarantined', state_reason = 'operator'
              where resource = ${a}`
            yield* sql`update catalog_resources set state = 'removed', state_reason = 'operator' where resource = ${b}`
            yield* TestClock.adjust(1_000 * hour)
            yield* age
            for (const id of ids) yield* journal.touch(id, yield* now, undefined)
            yield* journal.flush
            for (const [resource, detail] of [
              [a, "quarantined: operator"],
              [b, "removed: operator"]
            ] as const) {
              expect(yield* list(resource)).toMatchObject({
                decision: "rejected",
                reason: "catalog_unavailable",
                detail
              })
            }
            expect([yield* stateOf(a), yield* stateOf(b)]).toEqual(["quarantined", "removed"])
          })
        )
      )

      it.effect(
        "aging works in bounded steps within one actor run",
        timed(
          Effect.gen(function* () {
            const { age, list, parts, sql, reportedChanges } = yield* open
            yield* list(a)
            yield* sql`insert into catalog_resources (key, resource_key, type, resource, state, state_changed_at,
              verification, pay_tos, version, version_hash, declaration, extensions, document, first_seen_at,
              updated_at)
          select 'k' || n, 'k', 'http', 'r' || n, 'active', now(), 'payment_observed', array['G'], 1, 'h', '{}'::jsonb,
            array['catalog'], '{}', now(), now() from generate_series(1, 1100) n`
            yield* sql`insert into catalog_activity (resource_id, last_seen_at) select id, ${new Date(start)}
              from catalog_resources where resource <> ${a}`
            yield* TestClock.setTime(start + 169 * hour)
            const stale = Effect.map(
              sql<{ n: number }>`select count(*)::int as n from catalog_resources where state = 'stale'`,
              ([row]) => row!.n
            )
            expect([yield* age, yield* stale]).toEqual([true, 500])
            const done = yield* Deferred.make<void>()
            let steps = 0
            const { onChange } = Context.get(parts, Changes)
            yield* onChange(() => void (++steps === 2 && Deferred.doneUnsafe(done, Exit.void)))
            yield* Effect.provideContext(startAge, parts)
            yield* Deferred.await(done)
            expect(yield* stale).toBe(1_101)
            expect((yield* reportedChanges).filter((change) => change === "went_stale")).toHaveLength(1_101)
          })
        )
      )

      it.effect(
        "unneeded observations, quotas and counted sales are deleted on time",
        timed(
          Effect.gen(function* () {
            const { age, journal, list, now, sql } = yield* open
            const { resourceId } = yield* list(a)
            const observation = {
              resourceKey: undefined,
              resourceId: undefined,
              type: "http",
              toolName: "",
              payTo: "G",
              payer: "GPAYER",
              stage: "verified" as const,
              decision: "rejected" as const,
              reason: "schema_invalid",
              detail: undefined,
              lagMillis: 1
            }
            yield* journal.observe({ ...observation, url: "https://x.example.com/1", at: yield* now })
            yield* journal.touch(resourceId!, yield* now, {
              transaction: "t1",
              payer: "GPAYER",
              payTo: "GOWNER",
              amount: "1000"
            })
            yield* journal.flush
            const counts = Effect.map(
              sql<{
                observations: number
                quotas: number
                sales: number
              }>`select (select count(*)::int from catalog_observations) as observations,
            (select count(*)::int from catalog_quotas) as quotas, (select count(*)::int from catalog_sales) as sales`,
              ([row]) => row
            )
            expect(yield* counts).toEqual({ observations: 1, quotas: 5, sales: 1 })
            yield* TestClock.setTime(start + 7 * day)
            yield* age
            expect(yield* counts).toEqual({ observations: 1, quotas: 5, sales: 1 })
            yield* TestClock.setTime(start + 8 * day)
            yield* age
            expect(yield* counts).toEqual({ observations: 1, quotas: 0, sales: 1 })
            yield* TestClock.setTime(start + 30 * day + 1)
            yield* age
            expect(yield* counts).toEqual({ observations: 0, quotas: 0, sales: 1 })
            // A success reported again after a year is still no second sale.
            yield* TestClock.setTime(start + 399 * day)
            yield* age
            yield* journal.touch(resourceId!, yield* now, {
              transaction: "t1",
              payer: "GPAYER",
              payTo: "GOWNER",
              amount: "1000"
            })
            yield* journal.flush
            expect(yield* sql`select settled, payers from catalog_activity`).toEqual([{ settled: 1n, payers: 1n }])
            yield* TestClock.setTime(start + 400 * day + 1)
            yield* age
            expect(yield* counts).toEqual({ observations: 0, quotas: 0, sales: 0 })
          })
        )
      )

      it.effect("deletion removes everything due in bounded steps", () =>
        Effect.provide(
          Effect.gen(function* () {
            const { age, sql } = yield* open
            const old = new Date(start - 31 * day)
            yield* sql`insert into catalog_observations (digest, url, pay_to, stage, decision, first_at, last_at,
              lag_ms) select 'd' || n, 'u', 'G', 'verified', 'rejected', ${old}, ${old}, 1
              from generate_series(1, 4500) n`
            const left = Effect.map(
              sql<{ n: number }>`select count(*)::int as n from catalog_observations`,
              ([row]) => row!.n
            )
            const seen: Array<unknown> = []
            for (let step = 0; step < 3; step++) seen.push([yield* age, yield* left])
            expect(seen).toEqual([
              [true, 2_500],
              [true, 500],
              [false, 0]
            ])
          }),
          TestClock.layer()
        )
      )

      it.effect("daily observation rows are limited per payer, not across payers", () =>
        Effect.provide(
          Effect.gen(function* () {
            const { journal, now, sql } = yield* open
            const observe = Effect.fnUntraced(function* (payer: string, count: number, from = 0) {
              for (let at = from; at < from + count; at++) {
                yield* journal.observe({
                  resourceKey: undefined,
                  resourceId: undefined,
                  url: `https://x.example.com/${at}`,
                  type: "http",
                  toolName: "",
                  payTo: payer,
                  payer,
                  stage: "verified",
                  decision: "rejected",
                  reason: "schema_invalid",
                  detail: undefined,
                  at: yield* now,
                  lagMillis: 1
                })
              }
              yield* journal.flush
            })
            const rows = Effect.map(
              sql<{ n: number }>`select count(*)::int as n from catalog_observations`,
              ([row]) => row!.n
            )
            // A repeated sighting adds no row.
            for (let time = 0; time < 3; time++) yield* observe("GFLOOD", 1_990)
            expect(yield* rows).toBe(1_990)
            yield* observe("GFLOOD", 10, 5_000)
            yield* observe("GFLOOD", 50, 6_000)
            expect(yield* rows).toBe(2_000)
            yield* observe("GOTHER", 1)
            expect(yield* rows).toBe(2_001)
            yield* TestClock.adjust(day)
            yield* observe("GFLOOD", 1)
            expect(yield* rows).toBe(2_002)
          }),
          TestClock.layer()
        )
      )

      it.effect(
        "a probe is leased for a minute; late answers are fenced out [S317]",
        timed(
          Effect.gen(function* () {
            const { apply, list, moves, now, sql } = yield* open
            const { resourceId } = yield* list(a)
            const word = { ...unsaid, word: { payTos: ["GOWNER"], delisted: false }, detail: "well-known 200" }
            const lease = Effect.flatMap(now, (now) => due(sql, now))
            expect(yield* lease).toMatchObject([{ id: resourceId, fence: 1n }])
            yield* TestClock.adjust("60 seconds")
            expect(yield* lease).toEqual([])
            yield* TestClock.adjust(1)
            expect(yield* lease).toMatchObject([{ id: resourceId, fence: 2n }])
            expect(yield* apply(resourceId!, 1n, word, yield* now)).toBe(false)
            // The id and fence of a resource that was lost with the last commits of a database.
            const lost = { type: "http", resource: "https://lost.example/a", tool_name: "" } as Probed
            expect(yield* apply(resourceId!, 2n, word, yield* now, lost)).toBe(false)
            expect(yield* moves(a)).toEqual([listed])
            expect(yield* apply(resourceId!, 2n, word, yield* now)).toBe(true)
            expect(yield* moves(a)).toEqual([listed, "origin proven: active → active, origin_names_owner"])
            // The origin of a known owner is probed once a day.
            yield* TestClock.adjust(24 * hour - 1)
            expect(yield* lease).toEqual([])
            yield* TestClock.adjust(1)
            expect(yield* lease).toMatchObject([{ id: resourceId, fence: 3n }])
          })
        )
      )

      it.effect(
        "listings with evidence are probed however many claims are due",
        timed(
          Effect.gen(function* () {
            const { apply, list, now, sql } = yield* open
            const { resourceId: owned } = yield* list(a)
            const [first] = yield* due(sql, yield* now)
            const word = { ...unsaid, word: { payTos: ["GOWNER"], delisted: false }, detail: "well-known 200" }
            // A payment under its words has settled.
            yield* sql`update catalog_resources set standing_at = ${yield* now} where id = ${owned!}`
            yield* apply(owned!, first!.fence, word, yield* now)
            // A flood of claims is due long before the owner's listing.
            yield* sql`insert into catalog_resources (key, resource_key, type, resource, state, state_changed_at,
                verification, pay_tos, version, version_hash, declaration, extensions, document, first_seen_at,
                updated_at)
              select 'f' || n, 'f' || n, 'http', 'f' || n, 'active', ${yield* now}, 'payment_observed', array['GSPAM'],
                1, 'h', '{"about":{},"operations":[]}'::jsonb, array[]::text[], '{}', ${yield* now}, ${yield* now}
              from generate_series(1, 40) n`
            yield* sql`insert into catalog_probes (resource_id, due_at)
              select id, ${yield* now} from catalog_resources where key like 'f%'`
            yield* TestClock.adjust(24 * hour)
            const turn = yield* due(sql, yield* now)
            expect(turn[0]).toMatchObject({ id: owned, stands: true })
            expect(turn.filter(({ stands }) => !stands)).toHaveLength(8)
          })
        )
      )

      it.effect(
        "a silent origin is retried after a minute, ten minutes, hour, day [S317]",
        timed(
          Effect.gen(function* () {
            const { apply, list, now, sql } = yield* open
            const { resourceId } = yield* list(a)
            const silence = { ...unsaid, word: { payTos: [], delisted: false }, detail: "well-known 404" }
            for (const [attempt, seconds] of [60, 600, 3_600, 86_400, 86_400].entries()) {
              const [first] = yield* due(sql, yield* now)
              expect(first?.fence, `attempt ${attempt}`).toBe(BigInt(attempt + 1))
              expect(yield* apply(resourceId!, first!.fence, silence, yield* now)).toBe(false)
              yield* TestClock.adjust(seconds * 1_000 - 1)
              expect(yield* due(sql, yield* now)).toEqual([])
              yield* TestClock.adjust(1)
            }
          })
        )
      )
    })
  },
  ["kernel", "catalog"]
)
