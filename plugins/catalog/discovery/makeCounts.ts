// How many resources a set of filters shows, and the snapshot that the number is of. A count holds until the catalog
// changes: this process says so itself, and the journal of facts tells, asked about once a second, what other replicas
// have changed. All who want one count share one statement; of different counts only a few run at once, and what does
// not fit the queue is refused, so that a flood of strange filters leaves the database to the rest (S106–S109, S312).
import { Clock, Deferred, Effect, Schema, Semaphore, type Scope } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import type { Facts } from "../../../kernel/Facts.ts"
import type { CatalogValues } from "../Config.ts"
import { changedFact, type Filters } from "../contract.ts"
import { conditionOf } from "./conditions.ts"

/** Filters whose counts are kept. */
const countedMax = 1_000
/** Counts that run at once, and those that may wait for their turn. */
const atOnceMax = 2
const waitingMax = 64
/**
 * The journal is asked after this, beside the requests; a request waits for the answer when the last one is older than
 * the second.
 */
const lookMillis = 1_000
const blindMillis = 3_000
/** After a longer rest the journal is not read from the old mark: it may hold much of others. */
const restMillis = 60_000
/**
 * In a catalog of more resources, a count that something has changed since is served for a while, and made anew beside
 * it.
 */
const largeFrom = 10_000n
const laggingMillis = 2_000

export interface Counted {
  /** Highest resource id there was. */
  readonly snapshot: bigint
  readonly total: number
}

interface Kept extends Counted {
  /** The number of changes that were known when counting began. */
  readonly changes: number
  readonly at: number
}

/** Too many different counts are required at once. */
export class CatalogBusy extends Schema.TaggedError<CatalogBusy>()("CatalogBusy", {}) {}

export interface CountParts {
  readonly sql: SqlClient.SqlClient
  readonly config: CatalogValues
  readonly facts: Facts["Service"]
  /** Counts belong to it and to no request, so that no client which hangs up ends one for the others. */
  readonly scope: Scope.Scope
}

export const makeCounts = ({ config, facts, scope, sql }: CountParts) => {
  const kept = new Map<string, Kept>()
  const running = new Map<string, Deferred.Deferred<any, any>>()
  const permits = Semaphore.makeUnsafe(atOnceMax)
  let changes = 0
  let mark: string | undefined
  let lookedAt = -Infinity
  let waiting = 0

  /** One run for everybody who asks at the same time under one key. */
  const shared = <A, E>(key: string, work: Effect.Effect<A, E>): Effect.Effect<Deferred.Deferred<A, E>> =>
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

  const look = Effect.gen(function* () {
    const at = yield* Clock.currentTimeMillis
    const told = yield* facts.publishedSince(changedFact, at - lookedAt > restMillis ? undefined : mark)
    if (told.published) changes += 1
    mark = told.mark
    lookedAt = at
  })

  const countNow = (filters: Filters, fingerprint: string): Effect.Effect<Kept, SqlError.SqlError> =>
    Effect.gen(function* () {
      const before = changes
      const [row] = yield* sql<{
        snapshot: bigint
        total: bigint
      }>`select (select coalesce(max(id), 0) from catalog_resources) as snapshot, count(*) as total
        from catalog_resources r where ${conditionOf(sql, config, filters)}`.unprepared
      const fresh: Kept = {
        snapshot: row!.snapshot,
        total: Number(row!.total),
        changes: before,
        at: yield* Clock.currentTimeMillis
      }
      kept.delete(fingerprint)
      kept.set(fingerprint, fresh)
      if (kept.size > countedMax) kept.delete(kept.keys().next().value!)
      return fresh
    }).pipe(permits.withPermits(1), Effect.ensuring(Effect.sync(() => (waiting -= 1))))

  const count = Effect.fnUntraced(function* (
    filters: Filters,
    fingerprint: string
  ): Effect.fn.Return<Counted, SqlError.SqlError | CatalogBusy> {
    const now = yield* Clock.currentTimeMillis
    if (now - lookedAt >= lookMillis) {
      const looking = yield* shared("look", look)
      if (now - lookedAt >= blindMillis) yield* Deferred.await(looking)
    }
    const known = kept.get(fingerprint)
    if (known?.changes === changes) return known
    const key = `${changes} ${fingerprint}`
    if (!running.has(key)) {
      if (waiting >= atOnceMax + waitingMax) return yield* new CatalogBusy()
      waiting += 1
    }
    const counting: Deferred.Deferred<Kept, SqlError.SqlError> = yield* shared(key, countNow(filters, fingerprint))
    return known !== undefined && known.snapshot >= largeFrom && now - known.at < laggingMillis
      ? known
      : yield* Deferred.await(counting)
  })

  return {
    count,
    /** This process has changed something that discovery shows. */
    changed: (): void => {
      changes += 1
    }
  }
}
