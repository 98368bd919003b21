// The number of resources that pass a set of filters, the first of them, and the snapshot of both. A count holds until
// the catalog changes: this process notifies its own changes, and the journal of facts, polled about once a second, has
// those of other replicas. Requests for one count share one run. Only a few different counts run concurrently, and the
// queue rejects the rest, so that a flood of unusual filters leaves the database to other work (S106–S109, S312).
import { Context, Deferred, Effect, Layer, Schema, Semaphore } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { LruCache } from "../../../kernel/cache/LruCache.ts"
import { type CatalogValues, Config } from "../Config.ts"
import { changedFact, type Filters } from "../contract.ts"
import { Changes } from "../store/Changes.ts"
import { pageSize, type Seller, spreadSellers } from "../search/rank/spreadSellers.ts"
import { conditionOf, hadEvidence, isYoung } from "./conditions.ts"

const countedMax = 1_000
/** Concurrent counts, and counts that may wait for their turn. */
const concurrentMax = 2
const waitingMax = 64
/**
 * The journal is polled after this, in the background; a request waits for the poll when the last one is older than
 * the second.
 */
const pollMillis = 1_000
const blindMillis = 3_000
/** After a longer pause the journal is not read from the old mark: many facts of others may follow it. */
const restMillis = 60_000
/**
 * In a catalog of more resources, a stale count is served for a while and refreshed in the background.
 */
const largeFrom = 10_000n
const laggingMillis = 2_000

interface Counted {
  readonly snapshot: bigint
  readonly total: number
  /** Milliseconds; resources that had evidence by then come first. */
  readonly asOf: number
  /** The first of them in the order of browsing; few of one seller, unless a filter names the recipient. */
  readonly first: ReadonlyArray<bigint>
}

interface Kept extends Counted {
  /** The number of known changes when counting began. */
  readonly changes: number
  readonly at: number
}

/** Rows to choose a first page from, and a second window for when one seller has most of the first. */
const windows = [100, 1_000]

/** Too many different counts are waiting. */
export class CatalogOverloaded extends Schema.TaggedError<CatalogOverloaded>()("CatalogOverloaded", {}) {}

/** Single flight by key. Runs belong to the scope and to no request. */
const shareRuns = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const running = new Map<string, Deferred.Deferred<any, any>>()
  const share = <A, E>(key: string, work: Effect.Effect<A, E>): Effect.Effect<Deferred.Deferred<A, E>> =>
    Effect.suspend(() => {
      const known = running.get(key)
      if (known !== undefined) return Effect.succeed(known)
      const answer = Deferred.makeUnsafe<A, E>()
      running.set(key, answer)
      const run = Effect.flatMap(Effect.exit(work), (exit) =>
        Effect.sync(() => {
          running.delete(key)
          Deferred.doneUnsafe(answer, exit)
        })
      )
      return Effect.as(Effect.forkIn(run, scope), answer)
    })
  return { share, isRunning: (key: string) => running.has(key) }
})

/** The number of known changes: this process's own, and those of others that the journal reports. */
const followChanges = Effect.gen(function* () {
  const facts = yield* Facts
  const { onChange } = yield* Changes
  const state = { changes: 0, polledAt: -Infinity }
  let mark: string | undefined
  yield* onChange(() => void (state.changes += 1))
  const poll = Effect.gen(function* () {
    const at = yield* monotonicMillis
    const reported = yield* facts.publishedSince(changedFact, at - state.polledAt > restMillis ? undefined : mark)
    if (reported.published) state.changes += 1
    mark = reported.mark
    state.polledAt = at
  })
  return { state, poll }
})

interface Candidate extends Seller {
  readonly id: bigint
}

/** The order of a first page: established and claims newest first, young evidence in between, oldest first. */
const tiers = ["established", "young", "claimed"] as const

const chooseFirst = Effect.fnUntraced(function* (filters: Filters, config: CatalogValues, asOf: number) {
  const sql = yield* SqlClient.SqlClient
  const condition = conditionOf(sql, config, filters)
  const had = hadEvidence(sql, asOf)
  const isOf = {
    established: sql`${had} and not ${isYoung(sql)}`,
    young: sql`${had} and ${isYoung(sql)}`,
    claimed: sql`(${had}) is not true`
  }
  const tier = (of: (typeof tiers)[number], window: number) => {
    const order = sql.literal(of === "young" ? "r.standing_at, r.id" : "r.id desc")
    return sql`(select r.id, r.origin, r.pay_tos, ${tiers.indexOf(of)}::int as tier,
        row_number() over (order by ${order}) as place
      from catalog_resources r where ${isOf[of]} and ${condition} order by ${order}
      limit ${sql.literal(String(window))})`
  }
  for (const window of windows) {
    const rows = yield* sql<Candidate>`select id, origin, pay_tos as "payTos" from (${tier("established", window)}
        union all ${tier("young", window)} union all ${tier("claimed", window)}) found
      order by tier, place limit ${sql.literal(String(window))}`.unprepared
    if (filters.payTo !== undefined) return rows.slice(0, pageSize).map(({ id }) => id)
    const byId = new Map(rows.map((row) => [row.id, row]))
    const { hits, isCrowded } = spreadSellers(rows, (id) => byId.get(id))
    if (!isCrowded || rows.length < window || window === windows.at(-1))
      return hits.slice(0, pageSize).map(({ id }) => id)
  }
  return []
})

export class Counts extends Context.Service<
  Counts,
  {
    readonly count: (
      filters: Filters,
      fingerprint: string
    ) => Effect.Effect<Counted, SqlError.SqlError | CatalogOverloaded>
  }
>()("tollkeeper/catalog/Counts") {
  static readonly layer = Layer.effect(
    Counts,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const config = yield* Config
      const { isRunning, share } = yield* shareRuns
      const { poll, state } = yield* followChanges
      const kept = new LruCache<string, Kept>({ name: "counts", capacity: countedMax })
      const permits = yield* Semaphore.make(concurrentMax)
      let waiting = 0

      const countNow = (filters: Filters, fingerprint: string): Effect.Effect<Kept, SqlError.SqlError> =>
        Effect.gen(function* () {
          const before = state.changes
          // The last committed rise, not the current time: a rise that comes in between is not of this snapshot.
          const [row] = yield* sql<{ snapshot: bigint; asOf: Date; total: bigint }>`
            select (select coalesce(max(id), 0) from catalog_resources) as snapshot, count(*) as total,
              (select coalesce(max(standing_at), 'epoch') from catalog_resources) as "asOf"
            from catalog_resources r where ${conditionOf(sql, config, filters)}`.unprepared
          const asOf = row!.asOf.getTime()
          const choosing = chooseFirst(filters, config, asOf)
          const first = yield* Effect.provideService(choosing, SqlClient.SqlClient, sql)
          const fresh: Kept = {
            snapshot: row!.snapshot,
            total: Number(row!.total),
            asOf,
            first: first.filter((id) => id <= row!.snapshot),
            changes: before,
            at: yield* monotonicMillis
          }
          kept.set(fingerprint, fresh)
          return fresh
        }).pipe(permits.withPermits(1), Effect.ensuring(Effect.sync(() => (waiting -= 1))))

      const count = Effect.fnUntraced(function* (
        filters: Filters,
        fingerprint: string
      ): Effect.fn.Return<Counted, SqlError.SqlError | CatalogOverloaded> {
        const now = yield* monotonicMillis
        if (now - state.polledAt >= pollMillis) {
          const age = now - state.polledAt
          const polling = yield* share("poll", poll)
          if (age >= blindMillis) yield* Deferred.await(polling)
        }
        const current = kept.get(fingerprint, ({ changes }) => changes === state.changes)
        if (current !== undefined) return current
        const known = kept.peek(fingerprint)
        const key = `${state.changes} ${fingerprint}`
        if (!isRunning(key)) {
          if (waiting >= concurrentMax + waitingMax) return yield* new CatalogOverloaded()
          waiting += 1
        }
        const counting: Deferred.Deferred<Kept, SqlError.SqlError> = yield* share(key, countNow(filters, fingerprint))
        return known !== undefined && known.snapshot >= largeFrom && now - known.at < laggingMillis
          ? known
          : yield* Deferred.await(counting)
      })

      return Counts.of({ count })
    })
  )
}
