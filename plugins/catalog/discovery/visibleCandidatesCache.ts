// A cache of resource visibility: a search checks a hundred candidates, and querying the database for them costs this
// process as much as finding them. It holds until the journal reports a change, polled before an answer that is older
// than a second and after each change of this process's own, so that a candidate may be a second too many or too few.
// The bodies that a page shows are always read from the database (`batchBodies.ts`). One byte a resource.
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { ReadTarget, type ReadTargetName } from "../../../kernel/database/ReadReplica.ts"
import { batched } from "../../../kernel/database/batched.ts"
import { perReadTarget } from "../../../kernel/database/perReadTarget.ts"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { withSpanIfSampled } from "../../../kernel/effect/withSpanIfSampled.ts"
import { Config } from "../Config.ts"
import { changedFact } from "../contract.ts"
import { Changes } from "../store/Changes.ts"
import { conditionOf } from "./conditions.ts"

/** The journal is polled again after this. */
const pollMillis = 1_000
/** After a longer pause the cache is cleared, instead of reading from the old mark: many facts may follow it. */
const restMillis = 60_000
/** Resources of higher ids are not cached. */
const keptMax = 4_000_000
const keptMin = 4_096

const [unknown, visible, hidden] = [0, 1, 2]

type Ids = ReadonlyArray<bigint>

/** A byte for each id up to the highest that was read. */
class Verdicts {
  #bytes = new Uint8Array(keptMin)

  of(id: bigint): number {
    return this.#bytes[Number(id)] ?? unknown
  }

  put(id: bigint, verdict: number): void {
    const at = Number(id)
    if (at >= keptMax) return
    if (at >= this.#bytes.length) {
      const bytes = new Uint8Array(Math.min(keptMax, 2 * at))
      bytes.set(this.#bytes)
      this.#bytes = bytes
    }
    this.#bytes[at] = verdict
  }

  forget(subjects: ReadonlyArray<string> | undefined): void {
    if (subjects === undefined) this.#bytes.fill(unknown)
    else
      for (const subject of subjects) if (Number(subject) < this.#bytes.length) this.#bytes[Number(subject)] = unknown
  }
}

/** The cache of one read target, and the poll of the journal that invalidates it. */
const follow = Effect.fnUntraced(function* (source: ReadTargetName) {
  const facts = yield* Facts
  const { onChange } = yield* Changes
  const verdicts = new Verdicts()
  // Changes of this process's own, and how many of them the last poll came after; all that were ever reported.
  const state = { own: 0, seen: 0, changes: 0, polledAt: -Infinity }
  let mark: string | undefined
  yield* onChange(() => {
    state.own += 1
    state.changes += 1
  })
  const poll = Effect.gen(function* () {
    const [at, own] = [yield* monotonicMillis, state.own]
    const isRested = at - state.polledAt > restMillis
    const reported = yield* facts.publishedSince(changedFact, isRested ? undefined : mark)
    if (reported.published) {
      state.changes += 1
      verdicts.forget(reported.subjects)
    }
    mark = reported.mark
    state.seen = own
    state.polledAt = at
  })
  const polled = yield* batched({
    maxBatchSize: 1_000,
    runBatch: (calls: ReadonlyArray<void>) => Effect.as(Effect.provideService(poll, ReadTarget, source), calls)
  })
  const followed = Effect.gen(function* () {
    const isDue = state.seen !== state.own || (yield* monotonicMillis) - state.polledAt >= pollMillis
    if (isDue) yield* polled(undefined)
  })
  return { verdicts, followed, changes: () => state.changes }
})

/** The visible resources by one read target. */
const visibleFrom = Effect.fnUntraced(function* (source: ReadTargetName) {
  const sql = yield* SqlClient.SqlClient
  const config = yield* Config
  const { changes, followed, verdicts } = yield* follow(source)

  const ask = Effect.fnUntraced(function* (ids: Ids) {
    const before = changes()
    const [row] = yield* sql<{ ids: string | null }>`select string_agg(r.id::text, ',') as ids from catalog_resources r
      where r.id = any(${`{${ids.join(",")}}`}::int8[]) and ${conditionOf(sql, config, {})}`
    const seen = new Set(row?.ids?.split(",").map(BigInt) ?? [])
    // A read that overlapped a change may be stale, so do not cache it.
    if (before === changes()) for (const id of ids) verdicts.put(id, seen.has(id) ? visible : hidden)
    return seen
  })

  const visibleOf = Effect.fnUntraced(function* (ids: Ids, snapshot: bigint): Effect.fn.Return<Ids, SqlError.SqlError> {
    yield* followed
    const known = ids.map((id) => verdicts.of(id))
    const strange = ids.filter((_, at) => known[at] === unknown)
    const seen = strange.length === 0 ? undefined : yield* ask(strange)
    return ids.filter((id, at) => id <= snapshot && (known[at] === visible || seen?.has(id) === true))
  })

  return { visible: visibleOf, changes: Effect.map(followed, changes) }
})

/**
 * `visible`: the given resources that are public and existed at the snapshot, in their order. `edition`: changes when
 * the journal has reported a change, and differs for each read target.
 */
export const visibleCandidatesCache = Effect.gen(function* () {
  let places = 0
  const from = yield* perReadTarget((source) =>
    Effect.map(visibleFrom(source), (cached) => ({ ...cached, place: (places += 1) }))
  )
  return {
    visible: Effect.fnUntraced(function* (ids: Ids, snapshot: bigint) {
      return yield* (yield* from).visible(ids, snapshot)
    }, withSpanIfSampled("Catalog.visible")),
    edition: Effect.gen(function* () {
      const { changes, place } = yield* from
      return `${place} ${yield* changes}`
    })
  }
})
