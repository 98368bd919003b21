// Which searches led to payments: a payment is attributed to the impressions of its resource within the window before
// it. That is a direction, not a cause (S174–S177). Verified payments come from the catalog's observations, which keep
// the first and the last of equal ones; settled ones from the journal.
import { Clock, Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { endedType, recordedType } from "../../../kernel/settlement/facts.ts"

const attributionHours = 24
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
  readonly at1: bigint
  readonly at3: bigint
  readonly at5: bigint
  readonly journal: bigint | null
}

export interface Conversion {
  readonly report: Readonly<Record<string, unknown>>
  /** Facts of the journal and impressions that were looked through, about. */
  readonly examined: bigint
}

/** `hours` back from now. Counts are decimal strings. */
export const conversion = Effect.fn("Catalog.conversion")(function* (
  sql: SqlClient.SqlClient,
  hours: number
): Effect.fn.Return<Conversion, SqlError.SqlError> {
  const since = new Date((yield* Clock.currentTimeMillis) - hours * millisPerHour)
  const window = sql.literal(`interval '${attributionHours} hours'`)
  const [total] = yield* sql<TotalRow>`
    with shown as (
      select i.id as impression, i.at, i.session, s.resource_id, i.first_position + s.place as position
      from catalog_impressions i, unnest(i.resource_ids) with ordinality as s (resource_id, place)
        where i.at >= ${since}
    ), paid as (
      select r.id as resource_id, ended.at from kernel_facts ended
      join kernel_facts begun on begun.subject = ended.subject and begun.type = ${recordedType}
      join catalog_resources r on r.resource = split_part(split_part(begun.data->>'resourceUrl', '?', 1), '#', 1)
      where ended.type = ${endedType("settled")} and ended.at >= ${since}
    ), verified as (
      select o.resource_id, unnest(array[o.first_at, o.last_at]) as at from catalog_observations o
        where o.resource_id is not null and o.last_at >= ${since}
      union all select * from paid
    ), judged as (
      select s.*, exists (select 1 from verified v where v.resource_id = s.resource_id and v.at between s.at
        and s.at + ${window}) as verified,
        exists (select 1 from paid p where p.resource_id = s.resource_id and p.at between s.at
          and s.at + ${window}) as settled
      from shown s
    )
    select (select count(*) from catalog_impressions where at >= ${since}) as impressions,
      (select count(*) from catalog_impressions where at >= ${since} and resource_ids = '{}'
        and first_position = 0) as empty,
      (select count(distinct session) from catalog_impressions where at >= ${since}) as sessions,
      count(distinct impression) filter (where verified) as verified, count(distinct impression)
        filter (where settled) as settled,
      count(*) filter (where settled and position <= 1) as at1, count(*) filter (where settled
        and position <= 3) as at3, count(*) filter (where settled and position <= 5) as at5,
      (select max(position) - min(position) from kernel_facts) as journal
    from judged`
  const modes = yield* sql<ModeRow>`select mode, count(*) as impressions,
      percentile_disc(0.5) within group (order by milliseconds) as p50, percentile_disc(0.95) within
        group (order by milliseconds) as p95,
      count(*) filter (where 'semantic' = any (missing)) as "semanticFallbacks", count(*)
        filter (where reranking = 'failed') as "rerankerFallbacks"
    from catalog_impressions where at >= ${since} group by mode order by mode`
  const report = {
    hours,
    attribution: "resource_within_window",
    attribution_window_hours: attributionHours,
    impressions: String(total!.impressions),
    impressions_without_results: String(total!.empty),
    sessions: String(total!.sessions),
    verified_impressions: String(total!.verified),
    settled_impressions: String(total!.settled),
    settlements_at_1: String(total!.at1),
    settlements_at_3: String(total!.at3),
    settlements_at_5: String(total!.at5),
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
  }
  return { report, examined: total!.impressions + (total!.journal ?? 0n) }
})
