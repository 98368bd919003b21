// Queries with no result, or only the nearest ones, visible only to the operator, with the number of callers that asked
// them. Words are stored in a form that a reader may see: in lower case, cut, without words that could identify a
// person or leak a secret (addresses, links, long numbers, keys), and without the caller. They are written behind, in
// batches, bounded in number by the day, and deleted by age; with `search.missed_days` 0 none is stored. The database
// counts them by their words as they come and go, so that a report over all of them costs little.
import { Clock, Effect, Queue } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { reconciler } from "../../../../kernel/actor/Actor.ts"
import { Crypto } from "../../../../kernel/platform/Crypto.ts"
import { ageMillis, trustedClock } from "../../../../kernel/time/trustedTime.ts"
import { Search, SearchSettings } from "../../contract.ts"
import { cleanString } from "../../declaration/cleanText.ts"
import { sessionOfDay } from "./recordImpressions.ts"
import type { MissedSearches } from "./SearchReportWire.ts"

const wordsLengthMax = 128
const wordLengthMax = 24
const waitingMax = 2_000
/** Maximum rows of one day; later ones of that day are dropped. */
const ofDayMax = 20_000
const millisPerDay = 86_400_000
/** Delay from the first row of a batch to its write. */
const gather = "1 second"

/** Whether a word may name a person or be a secret: an address, a link, a key, a long number. */
const isReporting = (word: string): boolean =>
  word.length > wordLengthMax || word.includes("@") || word.includes("/") || word.replace(/[^0-9]/g, "").length > 5

/** The stored form of a query; may be empty. */
export const keptWords = (query: string): string => {
  const words = cleanString(query)
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")
    .map((word) => (isReporting(word) ? "…" : word))
  return words.every((word) => word === "…") ? "" : [...words.join(" ")].slice(0, wordsLengthMax).join("").trim()
}

export interface Missed {
  readonly words: string
  readonly session: string
  readonly at: number
}

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

export const writeMissed = (sql: SqlClient.SqlClient, crypto: Crypto["Service"], batch: ReadonlyArray<Missed>) => {
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
    group by day, words, session order by day, words, session
    on conflict (day, words, session) do update set times = t.times + excluded.times,
      last_at = greatest(t.last_at, excluded.last_at)`
}

/** Deletes rows older than this many days; 0 deletes all. */
export const pruneMissed = (sql: SqlClient.SqlClient, now: number, days: number) =>
  sql`delete from catalog_missed_searches where day < ${dayOf(now - days * millisPerDay)}::date or ${days === 0}`

export const startMissedSearches = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const search = yield* Search
  const { missed_days: days } = yield* SearchSettings
  const waiting = yield* Queue.sliding<Missed>(waitingMax)
  let prunedOn = 0

  const flush = Effect.gen(function* () {
    const all = yield* Queue.clear(waiting)
    if (all.length > 0) yield* writeMissed(sql, crypto, all)
    const now = yield* Clock.currentTimeMillis
    if (now - prunedOn < millisPerDay / 24) return
    prunedOn = now
    yield* pruneMissed(sql, yield* ageMillis, days)
  })

  const trusted = yield* trustedClock
  const writing = yield* reconciler({ id: "missed-searches", every: "1 minute", gather, turn: flush })
  yield* search.observe(
    Effect.fnUntraced(function* ({ ids, isAnswered, missing, offset, query, session }) {
      // A result that an unavailable branch would have found is not missing.
      if (days === 0 || (isAnswered && ids.length > 0) || offset > 0 || missing.length > 0) return
      const words = keptWords(query)
      if (words === "") return
      yield* Queue.offer(waiting, { words, session, at: yield* trusted })
      yield* writing.wake
    })
  )
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(flush, "2 seconds")))
})

interface MissedRow {
  readonly words: string
  readonly sessions: bigint
  readonly times: bigint
  readonly last_at: Date
  readonly total: bigint
  readonly examined: bigint
}

interface MissedPage {
  readonly report: typeof MissedSearches.Type
  /** Rows that were scanned. */
  readonly examined: bigint
}

/** The words of the days since then: counts over all days are stored; over fewer days they are counted here. */
const countedWords = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, since: string) {
  // The least day is the index's first; whether there is one before that day could be a scan of all of them.
  const [kept] = yield* sql<{ readonly whole: boolean }>`select coalesce(min(day) >= ${since}::date, true) as whole
    from catalog_missed_searches`
  return kept!.whole
    ? sql`not materialized (select words, sessions, times, last_at, 1 as rows from catalog_missed_words)`
    : sql`materialized (
        select words, count(*) as sessions, sum(times)::int8 as times, max(last_at) as last_at, count(*) as rows
        from catalog_missed_searches where day >= ${since}::date group by words
      )`
})

/**
 * Covers the UTC days that overlap the hours, the most asked first, by callers, then by times. Counts are decimal
 * strings. Words are grouped once for page and total; days outside the period are not read.
 */
export const missedSearches = Effect.fn("Catalog.missedSearches")(function* (
  sql: SqlClient.SqlClient,
  { hours, limit, offset }: { readonly hours: number; readonly limit: number; readonly offset: number }
): Effect.fn.Return<MissedPage, SqlError.SqlError> {
  const since = dayOf((yield* Clock.currentTimeMillis) - hours * 3_600_000)
  const words = yield* countedWords(sql, since)
  const rows = yield* sql<MissedRow>`with counted as ${words}, summed as (
      select count(*) as total, coalesce(sum(rows), 0)::int8 as examined from counted
    )
    select page.words, page.sessions, page.times, page.last_at, total, examined from summed left join lateral (
      select * from counted order by sessions desc, times desc, words limit ${limit} offset ${offset}
    ) page on true order by page.sessions desc, page.times desc, page.words`.unprepared
  const { examined, total } = rows[0]!
  return {
    examined,
    report: {
      items: rows
        .filter(({ words }) => words !== null)
        .map(({ last_at, sessions, times, words }) => ({
          words,
          sessions: sessions.toString(),
          times: times.toString(),
          last_at: last_at.toISOString()
        })),
      pagination: { limit, offset, total: Number(total) }
    }
  }
})
