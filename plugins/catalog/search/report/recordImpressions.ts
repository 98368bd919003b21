// Impressions are written behind, in batches, and searches never wait for them: the queue is bounded and drops the
// oldest if the database is slower than the searches. The impressions of callers without a key are sampled: all of a
// session's first ones of a day, then one in ten, up to a bound for the session and one for all, so that the table has
// a ceiling. A session is a hash of the caller and the UTC day, so that it identifies no caller and ends at midnight;
// sessions of callers with a key are marked.
import { Clock, Effect, Queue } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient } from "effect/sql"
import { reconciler } from "../../../../kernel/actor/Actor.ts"
import { BoundedMap } from "../../../../kernel/cache/BoundedMap.ts"
import { Crypto } from "../../../../kernel/platform/Crypto.ts"
import { oldBefore, trustedClock } from "../../../../kernel/time/trustedTime.ts"
import { type Impression, Search, SearchSettings } from "../../contract.ts"

const waitingMax = 10_000
const batchMax = 1_000
const millisPerDay = 86_400_000
/** Delay from the first impression of a batch to its write. */
const gather = "1 second"

/** Impressions of a session without a key that are kept a day: all of the first, of the next a tenth. */
export const sessionWholeMax = 200
export const sessionDayMax = 300
/** Impressions of all sessions without a key that one replica keeps a day. */
export const anonymousDayMax = 20_000
const oneOf = 10
/** Maximum counted sessions; an evicted one restarts from zero, within the day's bound of all. */
const sessionsMax = 50_000
/** Largest value of a column of type integer: a caller may ask for any offset. */
const integerMax = 2_147_483_647
/** Ids of one impression that are kept, from the first result on; a page has fewer. */
const idsMax = 100

/** Decides whether to keep an impression of a session without a key, by the number already kept of the day. */
export const makeSample = () => {
  const asked = new BoundedMap<string, number>(sessionsMax)
  let [day, kept] = [0, 0]
  return (session: string, at: number): boolean => {
    const today = Math.floor(at / millisPerDay)
    if (today !== day) [day, kept] = [today, 0]
    const key = `${today} ${session}`
    const before = asked.get(key) ?? 0
    asked.set(key, before + 1)
    const beyond = before - sessionWholeMax
    const isKept = beyond < 0 || (beyond % oneOf === 0 && beyond < (sessionDayMax - sessionWholeMax) * oneOf)
    if (!isKept || kept >= anonymousDayMax) return false
    kept += 1
    return true
  }
}

interface Waiting extends Impression {
  readonly at: number
}

export const sessionOfDay = (crypto: Crypto["Service"], session: string, at: number): string =>
  Hex.encode(crypto.sha256(new TextEncoder().encode(`${session} ${Math.floor(at / millisPerDay)}`))).slice(0, 16)

/** Prefix of the sessions of callers with a key; other callers' contribution to a report is bounded. */
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
      first_position: Math.min(integerMax, offset),
      resource_ids: ids.slice(0, idsMax).map(String),
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
  const isSampled = makeSample()
  yield* search.observe((impression) =>
    Effect.flatMap(trusted, (at) =>
      impression.isKeyed || isSampled(impression.session, at)
        ? Effect.andThen(Queue.offer(waiting, { ...impression, at }), writing.wake)
        : Effect.void
    )
  )
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(flush, "2 seconds")))
})
