// The consumer of facts and the actor of deadlines. Both change settlements the same way, serialized over all replicas.
// A batch of facts becomes one change per settlement, written with its rollups in the transaction that moves the
// cursor; so each fact counts exactly once, and facts that are read again change nothing. No payment waits for any of
// it (S96, S143, S154–S155).
import { Context, Duration, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Limits } from "../../../kernel/config/Limits.ts"
import { inTransaction } from "../../../kernel/database/Database.ts"
import type { Fact } from "../../../kernel/facts/Facts.ts"
import { measure } from "../../../kernel/telemetry/Measure.ts"
import { CatalogRecords } from "../../catalog/contract.ts"
import { metrics } from "../metrics.ts"
import { acquireAnalyticsLock } from "./Containment.ts"
import type { Change } from "./contributions.ts"
import { concerns, readFact, type RecordedFact } from "./FactWire.ts"
import { keepWindows } from "./Rankings.ts"
import { Rollups } from "./Rollups.ts"
import { attribute, begin, end, overdue, type SettlementFact, settlements } from "./SettlementFact.ts"

// A statement with lookups is planned again for each batch; a cached plan from the time when its table was empty would
// stay in use.

const overdueMax = 500

const tables = [
  "settlements",
  "totals",
  "attendance",
  "members",
  "member_days",
  "standings",
  "rankings",
  "pairs",
  "partner_days",
  "resources",
  "reasons"
]

/** Empties the tables that the journal can rebuild. */
export const clearRecords = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* acquireAnalyticsLock
  for (const table of tables) yield* sql`delete from ${sql(`analytics_${table}`)}`
})

const write = Effect.fnUntraced(function* (changes: ReadonlyArray<Change>) {
  if (changes.length === 0) return
  const sql = yield* SqlClient.SqlClient
  yield* (yield* Rollups).write(changes)
  const rows = JSON.stringify(changes.map(({ after }) => settlements.encode(after)))
  yield* sql`insert into analytics_settlements (${sql.literal(settlements.names)})
    select * from jsonb_to_recordset(${rows}::jsonb) as r (${sql.literal(settlements.typed)})
    on conflict (id) do update set amount = excluded.amount, fee_stroops = excluded.fee_stroops,
      status = excluded.status, resource_id = excluded.resource_id, resource_origin = excluded.resource_origin,
      error_reason = excluded.error_reason, transaction_hash = excluded.transaction_hash`
})

interface Pair {
  readonly payer: string
  readonly payTo: string
}

/** Those of the given pairs `payer payTo` that have paid before. */
const paidBefore = Effect.fnUntraced(function* (pairs: ReadonlyArray<Pair>) {
  if (pairs.length === 0) return new Set<string>()
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<Pair>`select r.payer, r."payTo"
    from jsonb_to_recordset(${JSON.stringify(pairs)}::jsonb) as r (payer text, "payTo" text)
    where exists (select 1 from analytics_settlements s where s.payer = r.payer and s.pay_to = r."payTo")`.unprepared
  return new Set(rows.map(({ payTo, payer }) => `${payer} ${payTo}`))
})

/**
 * Lookups for settlements that begin in this batch: their resources, and whether the recipient has paid the payer
 * before.
 */
const beginnings = Effect.fnUntraced(function* (born: ReadonlyArray<SettlementFact>) {
  const records = yield* CatalogRecords
  const urls = born.flatMap(({ payTo, resourceUrl }) => (resourceUrl === null ? [] : [{ url: resourceUrl, payTo }]))
  const distinctUrls = [...new Map(urls.map((one) => [JSON.stringify(one), one])).entries()]
  const resources = distinctUrls.length === 0 ? [] : yield* records.attribute(distinctUrls.map(([, one]) => one))
  const byUrl = new Map(distinctUrls.map(([key], at) => [key, resources[at]]))
  const paid = yield* paidBefore([
    ...new Map(born.map(({ payTo, payer }) => [`${payTo} ${payer}`, { payer: payTo, payTo: payer }])).values()
  ])
  return born.map((fact) => {
    const organic = !paid.has(`${fact.payTo} ${fact.payer}`)
    paid.add(`${fact.payer} ${fact.payTo}`)
    const resource =
      fact.resourceUrl === null ? undefined : byUrl.get(JSON.stringify({ url: fact.resourceUrl, payTo: fact.payTo }))
    return { ...(resource === undefined ? fact : attribute(fact, resource)), organic }
  })
})

/** The current state of the settlements that facts name. */
const load = Effect.fnUntraced(function* (reported: ReadonlyArray<RecordedFact>) {
  const sql = yield* SqlClient.SqlClient
  const columns = sql.literal(settlements.selected)
  const ids = reported.flatMap((one) => (one._tag === "Sold" ? [] : [one.id]))
  const hashes = reported.flatMap((one) =>
    one._tag === "Sold" ? one.data.sales.map(({ transaction }) => transaction) : []
  )
  const rows = yield* sql`select ${columns} from analytics_settlements
    where id in (select value::uuid from jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb))
    union select ${columns} from analytics_settlements
    where transaction_hash in (select value from jsonb_array_elements_text(${JSON.stringify(hashes)}::jsonb))`
    .unprepared
  return new Map(rows.map(settlements.decode).map((fact) => [fact.id, fact]))
})

const skip = (type: string, id: bigint | string) =>
  Effect.andThen(
    measure(metrics.skipped, 1),
    Effect.logWarning("analytics skipped an unreadable fact").pipe(Effect.annotateLogs({ type, id: String(id) }))
  )

/** The decoded facts of a batch; unreadable ones are skipped. */
const readFacts = Effect.fnUntraced(function* (facts: ReadonlyArray<Fact>) {
  const reported: Array<RecordedFact> = []
  for (const fact of facts.filter(concerns)) {
    const read = readFact(fact)
    if (Option.isSome(read)) reported.push(read.value)
    else yield* skip(fact.type, fact.id)
  }
  return reported
})

/** In the transaction that moves the cursor. */
const handle = Effect.fn("Recorder.handle")(function* (facts: ReadonlyArray<Fact>) {
  const reported = yield* readFacts(facts)
  if (reported.length === 0) return
  const waitMillis = Duration.toMillis((yield* Limits).settleTimeout)
  yield* acquireAnalyticsLock
  const before = yield* load(reported)
  const after = new Map(before)
  const born = reported.flatMap((one) =>
    one._tag === "Recorded" && !before.has(one.id) ? [begin(one, waitMillis)] : []
  )
  for (const fact of yield* beginnings([...new Map(born.map((fact) => [fact.id, fact])).values()]))
    after.set(fact.id, fact)
  const byHash = new Map([...after.values()].map((fact) => [fact.transactionHash, fact.id]))
  for (const one of reported) {
    if (one._tag === "Ended") {
      const fact = after.get(one.id)
      if (fact === undefined) yield* skip(`settlement.${one.state}`, one.id)
      else {
        const ended = end(fact, one)
        after.set(one.id, ended)
        byHash.set(ended.transactionHash, one.id)
      }
    } else if (one._tag === "Sold") {
      for (const { origin, resourceId, transaction } of one.data.sales) {
        const fact = after.get(byHash.get(transaction) ?? "")
        if (fact !== undefined) after.set(fact.id, attribute(fact, { id: BigInt(resourceId), origin }))
      }
    }
  }
  yield* write(
    [...after.values()].flatMap((fact) =>
      before.get(fact.id) === fact ? [] : [{ before: before.get(fact.id), after: fact }]
    )
  )
})

/**
 * Marks settlements without an answer to their caller in time. Returns milliseconds until there may be more, 0 for
 * immediately. The maximum is the settle timeout, since a settlement recorded now has that long.
 */
const lapse = Effect.gen(function* () {
  const readMillisMax = Duration.toMillis((yield* Limits).settleTimeout)
  const sql = yield* SqlClient.SqlClient
  const isOverdue = sql.literal("status = 'open' and due_at <= clock_timestamp()")
  const [next] = yield* sql<{ millis: number | null }>`select
    (extract(epoch from min(due_at) - clock_timestamp()) * 1000)::float8 as millis
    from analytics_settlements where status = 'open'`
  const millis = Math.ceil(next?.millis ?? readMillisMax)
  if (millis > 0) return Math.min(millis, readMillisMax)
  return yield* inTransaction(
    Effect.gen(function* () {
      yield* acquireAnalyticsLock
      const rows = yield* sql`select ${sql.literal(settlements.selected)} from analytics_settlements
        where ${isOverdue} order by due_at limit ${overdueMax}`
      yield* write(rows.map(settlements.decode).map((fact) => ({ before: fact, after: overdue(fact) })))
      return rows.length === overdueMax ? 0 : 1
    })
  )
}).pipe(Effect.withSpan("Recorder.lapse"))

export class Recorder extends Context.Service<
  Recorder,
  {
    /** In the transaction that moves the cursor. */
    readonly handle: (facts: ReadonlyArray<Fact>) => Effect.Effect<void, SqlError.SqlError>
    /**
     * Marks settlements without an answer to their caller in time. Returns milliseconds until there may be more, 0 for
     * immediately.
     */
    readonly lapse: Effect.Effect<number, SqlError.SqlError>
    /** Builds the leaderboards of today's windows. */
    readonly keepWindows: Effect.Effect<void, SqlError.SqlError>
  }
>()("tollkeeper/analytics/Recorder") {
  static readonly layer = Layer.effect(
    Recorder,
    Effect.map(Effect.context<SqlClient.SqlClient | CatalogRecords | Rollups | Limits>(), (services) =>
      Recorder.of({
        handle: (facts) => Effect.provideContext(handle(facts), services),
        lapse: Effect.provideContext(lapse, services),
        keepWindows: Effect.provideContext(keepWindows, services)
      })
    )
  )
}
