// Impressions are written behind, in batches, and never wait for: the queue is bounded and drops the oldest when the
// database is slower than the searches. A session is a hash of the caller and the UTC day, so that it identifies no
// caller and ends at midnight; that of a caller with a key is marked so.
import { Clock, Effect, Queue } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient } from "effect/sql"
import { reconciler } from "../../../../kernel/actor/Actor.ts"
import { Crypto } from "../../../../kernel/platform/Crypto.ts"
import { oldBefore, trustedClock } from "../../../../kernel/time/trustedTime.ts"
import { type Impression, Search, SearchSettings } from "../../contract.ts"

const waitingMax = 10_000
const batchMax = 1_000
const millisPerDay = 86_400_000
/** Delay from the first impression of a batch to its write. */
const gather = "1 second"

interface Waiting extends Impression {
  readonly at: number
}

/** The caller's session, for the UTC day. */
export const sessionOfDay = (crypto: Crypto["Service"], session: string, at: number): string =>
  Hex.encode(crypto.sha256(new TextEncoder().encode(`${session} ${Math.floor(at / millisPerDay)}`))).slice(0, 16)

/** Prefix of the sessions of callers with a key: what callers without one add to a report is bounded. */
export const keyedMark = "key:"

export const startImpressions = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const search = yield* Search
  const { impressions_days: days } = yield* SearchSettings
  const waiting = yield* Queue.sliding<Waiting>(waitingMax)
  let prunedOn = 0

  const write = (batch: ReadonlyArray<Waiting>) => {
    const rows = batch.map(({ at, ids, isKeyed, milliseconds, missing, mode, offset, reranking, session }) => ({
      at: new Date(at).toISOString(),
      session: `${isKeyed ? keyedMark : ""}${sessionOfDay(crypto, session, at)}`,
      mode,
      first_position: offset,
      resource_ids: ids.map(String),
      milliseconds: Math.max(0, Math.round(milliseconds)),
      missing,
      reranking
    }))
    return sql`insert into catalog_impressions (at, session, mode, first_position, resource_ids, milliseconds, missing,
      reranking)
      select at, session, mode, first_position, resource_ids, milliseconds, missing, reranking
        from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
        as r (at timestamptz, session text, mode text, first_position integer, resource_ids bigint[], milliseconds
          integer, missing text[], reranking text)`
  }

  const flush = Effect.gen(function* () {
    const all = yield* Queue.clear(waiting)
    for (let from = 0; from < all.length; from += batchMax) yield* write(all.slice(from, from + batchMax))
    const now = yield* Clock.currentTimeMillis
    if (now - prunedOn < millisPerDay / 24) return
    prunedOn = now
    yield* sql`delete from catalog_impressions where at < ${yield* oldBefore(days * millisPerDay)}`
  })

  const trusted = yield* trustedClock
  const writing = yield* reconciler({ id: "search-impressions", every: "1 minute", gather, turn: flush })
  yield* search.observe((impression) =>
    Effect.flatMap(trusted, (at) => Effect.andThen(Queue.offer(waiting, { ...impression, at }), writing.wake))
  )
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(flush, "2 seconds")))
})
