// What was looked for and not found, for the operator alone: the words of searches without a result, and by how many
// callers they were asked. Words are kept as a reader may see them: in lower case, cut, without what could name or
// betray somebody (addresses, links, long numbers, keys), and without who asked. They are written behind, in batches,
// bounded in number by the day, and leave by age; with `search.missed_days` 0 none is kept.
import { Clock, Effect, Queue } from "effect"
import { SqlClient } from "effect/sql"
import { reconciler } from "../../../kernel/Actor.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Search, SearchSettings } from "../contract.ts"
import { cleanString } from "../declaration/cleanText.ts"
import { sessionOfDay } from "./recordImpressions.ts"
import type { MissedSearches } from "./SearchReportWire.ts"

const wordsLengthMax = 128
const wordLengthMax = 24
const waitingMax = 2_000
/** Rows of one day; what comes later that day is not kept. */
const ofDayMax = 20_000
const millisPerDay = 86_400_000

/** Whether a word may name somebody or be a secret: an address, a link, a key, a long number. */
const isTelling = (word: string): boolean =>
  word.length > wordLengthMax || word.includes("@") || word.includes("/") || word.replace(/[^0-9]/g, "").length > 5

/** A query as it is kept; empty when nothing of it is. */
export const keptWords = (query: string): string => {
  const words = cleanString(query)
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")
    .map((word) => (isTelling(word) ? "…" : word))
  return words.every((word) => word === "…") ? "" : [...words.join(" ")].slice(0, wordsLengthMax).join("").trim()
}

interface Missed {
  readonly words: string
  readonly session: string
  readonly at: number
}

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

export const startMissedSearches = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const search = yield* Search
  const { missed_days: days } = yield* SearchSettings
  const waiting = yield* Queue.sliding<Missed>(waitingMax)
  let prunedOn = 0

  const write = (batch: ReadonlyArray<Missed>) => {
    const rows = batch.map(({ at, session, words }) => ({
      day: dayOf(at),
      words,
      session: sessionOfDay(crypto, session, at),
      at: new Date(at).toISOString()
    }))
    const today = rows.at(-1)!.day
    return sql`insert into catalog_missed_searches as t (day, words, session, times, last_at)
      select day, words, session, count(*), max(at)
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
        as r (day date, words text, session text, at timestamptz)
      where (select count(*) from catalog_missed_searches where day = ${today}::date) < ${ofDayMax}
      group by day, words, session
      on conflict (day, words, session) do update set times = t.times + excluded.times,
        last_at = greatest(t.last_at, excluded.last_at)`
  }

  const flush = Effect.gen(function* () {
    const all = yield* Queue.clear(waiting)
    if (all.length > 0) yield* write(all)
    const now = yield* Clock.currentTimeMillis
    if (now - prunedOn < millisPerDay / 24) return
    prunedOn = now
    yield* sql`delete from catalog_missed_searches where day < ${dayOf(now - days * millisPerDay)}::date
      or ${days === 0}`
  })

  yield* search.observe(
    Effect.fnUntraced(function* ({ ids, missing, offset, query, session }) {
      // What a branch that was away would have found is not missing.
      if (days === 0 || ids.length > 0 || offset > 0 || missing.length > 0) return
      const words = keptWords(query)
      if (words !== "") yield* Queue.offer(waiting, { words, session, at: yield* Clock.currentTimeMillis })
    })
  )
  yield* reconciler({ id: "missed-searches", every: "1 second", turn: flush })
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(flush, "2 seconds")))
})

/** The most asked first, by callers, then by times. Counts are decimal strings. */
export const missedSearches = Effect.fn("Catalog.missedSearches")(function* (
  sql: SqlClient.SqlClient,
  { hours, limit, offset }: { readonly hours: number; readonly limit: number; readonly offset: number }
) {
  const since = new Date((yield* Clock.currentTimeMillis) - hours * 3_600_000)
  const rows = yield* sql<{ words: string; sessions: bigint; times: bigint; last_at: Date }>`
    select words, count(*) as sessions, sum(times)::int8 as times, max(last_at) as last_at
    from catalog_missed_searches where last_at >= ${since} group by words
    order by count(*) desc, sum(times) desc, words limit ${limit} offset ${offset}`
  const [count] = yield* sql<{ total: number }>`select count(distinct words)::int as total
    from catalog_missed_searches where last_at >= ${since}`
  return {
    items: rows.map(({ last_at, sessions, times, words }) => ({
      words,
      sessions: sessions.toString(),
      times: times.toString(),
      last_at: last_at.toISOString()
    })),
    pagination: { limit, offset, total: count!.total }
  } satisfies typeof MissedSearches.Type
})
