// Which searches led to payments: a payment is attributed once to each session that was shown its resource within the
// window before it, at the best position shown, so that a caller that asks sixty times counts once. That is a
// direction, not a cause (S174–S177). Impressions count all searches of callers with a key. A search without a key
// costs nothing, so in such a session (one address, one day) each list counts once, up to the first few, and resources
// that only further lists showed get no attribution. Verified payments come from the catalog's observations, which keep
// the first and the last of equal ones; settled ones are the catalog's sales, each for the single listing that was
// paid: a tool does not get credit for its server's other tools.
import { Clock, Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { keyedMark } from "./recordImpressions.ts"
import type { SearchConversion } from "./SearchReportWire.ts"

const attributionHours = 24
/** Impressions that count of one session without a key. */
const ofFreeSessionMax = 20
const millisPerHour = 3_600_000

interface ModeRow {
  readonly mode: string
  readonly impressions: bigint
  readonly p50: number | null
  readonly p95: number | null
  readonly semanticFallbacks: bigint
  readonly rerankerFallbacks: bigint
}

interface TotalRow {
  readonly impressions: bigint
  readonly empty: bigint
  readonly sessions: bigint
  readonly verified: bigint
  readonly settled: bigint
  readonly attributed: bigint
  readonly at1: bigint
  readonly at3: bigint
  readonly at5: bigint
  /** Impressions that were read, counted or not. */
  readonly examined: bigint
  readonly journal: bigint | null
}

interface Conversion {
  readonly report: typeof SearchConversion.Type
  /** Facts of the journal and impressions that were scanned, about. */
  readonly examined: bigint
}

/** The impressions since then that are counted, as a table. */
const countedSince = (sql: SqlClient.SqlClient, since: Date) => sql`(
    select at, session, mode, milliseconds, missing, reranking, resource_ids, first_position from catalog_impressions
      where at >= ${since} and starts_with(session, ${keyedMark})
    union all
    select at, session, mode, milliseconds, missing, reranking, resource_ids, first_position from (
      select i.*, row_number() over (partition by session order by at, id) as number from (
        select *, row_number() over (partition by session, mode, first_position, resource_ids order by at, id) as copy
          from catalog_impressions where at >= ${since} and not starts_with(session, ${keyedMark})) i
        where copy = 1) free
      where number <= ${ofFreeSessionMax})`

/** Searches since then, by how they were answered. */
const modesOf = (sql: SqlClient.SqlClient, since: Date) =>
  sql<ModeRow>`select mode, count(*) as impressions,
      percentile_disc(0.5) within group (order by milliseconds) as p50, percentile_disc(0.95) within
        group (order by milliseconds) as p95,
      count(*) filter (where 'semantic' = any (missing)) as "semanticFallbacks", count(*)
        filter (where reranking = 'failed') as "rerankerFallbacks"
    from ${countedSince(sql, since)} counted group by mode order by mode`

const reportOf = (hours: number, total: TotalRow, modes: ReadonlyArray<ModeRow>): Conversion["report"] => ({
  hours,
  attribution: "resource_within_window",
  attribution_window_hours: attributionHours,
  impressions: String(total.impressions),
  impressions_without_results: String(total.empty),
  sessions: String(total.sessions),
  verified_impressions: String(total.verified),
  settled_impressions: String(total.settled),
  settlements_attributed: String(total.attributed),
  settlements_at_1: String(total.at1),
  settlements_at_3: String(total.at3),
  settlements_at_5: String(total.at5),
  byMode: Object.fromEntries(
    modes.map(({ impressions, mode, p50, p95, rerankerFallbacks, semanticFallbacks }) => [
      mode,
      {
        impressions: String(impressions),
        latency_ms: { p50, p95 },
        semantic_fallbacks: String(semanticFallbacks),
        reranker_fallbacks: String(rerankerFallbacks)
      }
    ])
  )
})

/** `hours` back from now. Counts are decimal strings. */
export const conversion = Effect.fn("Catalog.conversion")(function* (
  sql: SqlClient.SqlClient,
  hours: number
): Effect.fn.Return<Conversion, SqlError.SqlError> {
  const since = new Date((yield* Clock.currentTimeMillis) - hours * millisPerHour)
  const window = sql.literal(`interval '${attributionHours} hours'`)
  const [total] = yield* sql<TotalRow>`
    with searched as materialized (
      select at, session, resource_ids, first_position from ${countedSince(sql, since)} counted
    ), shown as (
      -- A session is one caller's day: however often it asks, it has seen a resource once, at the best place.
      select i.session, s.resource_id, min(i.at) as since, max(i.at) as until,
        min(i.first_position + s.place) as position
      from searched i, unnest(i.resource_ids) with ordinality as s (resource_id, place)
        group by i.session, s.resource_id
    ), paid as (
      select resource_id, at from catalog_sales where at >= ${since}
    ), happened as (
      select resource_id, at, 1 as step, 'paid' as kind, null as session, null::bigint as position from paid
      union all select o.resource_id, unnest(array[o.first_at, o.last_at]), 1, 'verified', null, null
      from catalog_observations o where o.resource_id is not null and o.last_at >= ${since}
      union all select resource_id, since, 0, 'since', session, position from shown
      union all select resource_id, until + ${window}, 2, 'until', session, position from shown
    ), counted as (
      -- How many had happened by then: the difference of a session's two ends is what fell between them.
      select session, resource_id, position, kind, count(*) filter (where kind = 'paid') over forth as paid,
        count(*) filter (where kind in ('paid', 'verified')) over forth as verified
      from happened window forth as (partition by resource_id order by at, step rows unbounded preceding)
    ), attributed as (
      select session, resource_id, position, sum(case kind when 'until' then paid else -paid end) as paid,
        sum(case kind when 'until' then verified else -verified end) as verified
      from counted where kind in ('since', 'until') group by session, resource_id, position
    )
    select (select count(*) from searched) as impressions,
      (select count(*) from searched where resource_ids = '{}' and first_position = 0) as empty,
      (select count(distinct session) from catalog_impressions where at >= ${since}) as sessions,
      count(*) filter (where verified > 0) as verified, count(*) filter (where paid > 0) as settled,
      coalesce(sum(paid), 0)::bigint as attributed,
      coalesce(sum(paid) filter (where position <= 1), 0)::bigint as at1,
      coalesce(sum(paid) filter (where position <= 3), 0)::bigint as at3,
      coalesce(sum(paid) filter (where position <= 5), 0)::bigint as at5,
      (select count(*) from catalog_impressions where at >= ${since}) as examined,
      (select max(position) - min(position) from kernel_facts) as journal
    from attributed`
  const modes = yield* modesOf(sql, since)
  return { report: reportOf(hours, total!, modes), examined: total!.examined + (total!.journal ?? 0n) }
})
