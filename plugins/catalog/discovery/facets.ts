// Counts of listings by kind, scheme, asset, price and evidence, as choices for a list. Counted are the results of a
// query, or the listings that pass the filters: those with evidence first, two thousand at most. Listings with evidence
// decide a value's place, so that free claims with invented terms displace none.
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Config } from "../Config.ts"
import type { Filters } from "../contract.ts"
import { PricedAssets } from "../ownership/PricedAssets.ts"
import { conditionOf } from "./conditions.ts"
import { weightText } from "../store/ResourceWire.ts"

export const countedMax = 2_000
const valuesMax = 20
/** Limits of a price, in thousandths of an asset's unit. */
const priceLimits = [1, 10, 100, 1_000, 10_000]

interface Row {
  readonly facet: string
  readonly value: string
  readonly asset: string | null
  readonly count: number
  readonly evidenced: number
}

export const makeFacets = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const config = yield* Config
  const { assets } = yield* PricedAssets
  const limits = assets.flatMap(({ contract, decimals }) =>
    priceLimits.map((limit) => ({
      asset: contract,
      most: ((BigInt(limit) * 10n ** BigInt(decimals)) / 1_000n).toString()
    }))
  )
  /** `ids`: the results of a query, instead of all that pass the filters. */
  return Effect.fnUntraced(function* (
    filters: Filters,
    ids: ReadonlyArray<bigint> | undefined
  ): Effect.fn.Return<{ readonly counted: number; readonly rows: ReadonlyArray<Row> }, SqlError.SqlError> {
    const among = ids === undefined ? sql`true` : sql`r.id = any(${`{${ids.slice(0, countedMax).join(",")}}`}::int8[])`
    const tier = (isEvidenced: boolean) => sql`(select r.id, r.type, ${sql.literal(weightText)} as weight
      from catalog_resources r where r.standing_at is ${sql.literal(isEvidenced ? "not null" : "null")} and ${among}
        and ${conditionOf(sql, config, filters)} order by r.id desc limit ${sql.literal(String(countedMax))})`
    const counts = sql.literal(
      "count(distinct id)::int as count, " + "(count(distinct id) filter (where weight <> 'none'))::int as evidenced"
    )
    const rows = yield* sql<Row>`with listed as materialized (
        select * from (${tier(true)} union all ${tier(false)}) tiers limit ${sql.literal(String(countedMax))}
      ), offers as materialized (
        select l.id, l.weight, o.scheme, o.asset, o.amount from listed l
        join catalog_options o on o.resource_id = l.id and o.retired_at is null
      ), counted as (
        select 'counted' as facet, '' as value, null as asset, ${counts} from listed
        union all select 'type', type, null, ${counts} from listed group by type
        union all select 'evidence', weight, null, ${counts} from listed group by weight
        union all select 'scheme', scheme, null, ${counts} from offers group by scheme
        union all select 'asset', asset, null, ${counts} from offers group by asset
        union all select 'maxPrice', most::text, v.asset, ${counts} from offers o
          join jsonb_to_recordset(${JSON.stringify(limits)}::jsonb) as v (asset text, most numeric)
            on v.asset = o.asset and o.amount <= v.most group by v.asset, most
      )
      select facet, value, asset, count, evidenced from (
        select *, row_number() over (partition by facet order by evidenced desc, count desc, value) as place
        from counted
      ) ranked where place <= ${sql.literal(String(valuesMax))} order by facet, place`.unprepared
    return { counted: rows.find(({ facet }) => facet === "counted")?.count ?? 0, rows }
  })
})
