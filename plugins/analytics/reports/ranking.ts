// A page of a role's leaderboard: addresses by their amount of one asset, then by their settlements in it, then by
// name; addresses that never dealt in the asset come last. It is read in the order it is kept in, and summed where its
// window is not kept yet (S157, S158).
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { within } from "./conditions.ts"
import type { Page, Window } from "./parameters.ts"

export type Role = "buyer" | "seller"

export interface Ranked {
  readonly addresses: ReadonlyArray<string>
  /** Amounts of the first ten. */
  readonly top: ReadonlyArray<bigint>
}

interface Row {
  readonly kept: boolean
  readonly page: ReadonlyArray<string> | null
  readonly top: ReadonlyArray<string> | null
  /** Number of addresses that dealt in the asset; null when the page is full without knowing. */
  readonly dealt: bigint | null
}

const order = "order by amount desc, transactions desc, address"

const ranked = ({ page, top }: Pick<Row, "page" | "top">): Ranked => ({
  addresses: page ?? [],
  top: (top ?? []).map(BigInt)
})

const readKept = Effect.fnUntraced(function* (role: Role, since: string, page: Page, asset: string) {
  const sql = yield* SqlClient.SqlClient
  const window = sql`role = ${role} and since = ${since}::date`
  const inOrder = sql.literal(order)
  const [row] = yield* sql<Row>`with paged as materialized (
      select address, amount, transactions from analytics_rankings where ${window} and asset = ${asset}
      ${inOrder} limit ${page.limit} offset ${page.offset}
    )
    select exists (select 1 from analytics_ranking_windows where since = ${since}::date) as kept,
      (select jsonb_agg(address ${inOrder}) from paged) as page,
      (select jsonb_agg(amount::text order by amount desc) from (
        select amount from analytics_rankings where ${window} and asset = ${asset} ${inOrder} limit 10) t) as top,
      case when (select count(*) from paged) < ${page.limit}
        then (select count(*) from analytics_rankings where ${window} and asset = ${asset}) end as dealt`.unprepared
  return row!
})

/** Addresses that dealt in other assets alone. */
const others = Effect.fnUntraced(function* (role: Role, since: string, page: Page, asset: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ address: string }>`select address from analytics_rankings r
    where role = ${role} and since = ${since}::date and not exists (select 1 from analytics_rankings m
      where m.role = r.role and m.since = r.since and m.address = r.address and m.asset = ${asset})
    group by address order by address limit ${page.limit} offset ${page.offset}`.unprepared
  return rows.map(({ address }) => address)
})

const sumUp = Effect.fnUntraced(function* (role: Role, window: Window, page: Page, asset: string) {
  const sql = yield* SqlClient.SqlClient
  const inOrder = sql.literal(order)
  const [row] = yield* sql<Pick<Row, "page" | "top">>`with ranked as materialized (
      select address, coalesce(sum(transactions) filter (where asset = ${asset}), 0) as transactions,
        coalesce(sum(amount) filter (where asset = ${asset}), 0) as amount
      from analytics_standings where role = ${role} and ${within(sql, "day", window, "day")} group by address
    )
    select (select jsonb_agg(address ${inOrder})
        from (select * from ranked ${inOrder} limit ${page.limit} offset ${page.offset}) p) as page,
      (select jsonb_agg(amount::text order by amount desc)
        from (select amount from ranked order by amount desc limit 10) t) as top`.unprepared
  return row!
})

/** A page of a role's addresses by an asset, and the largest amounts of all. */
export const rank = Effect.fn("ranking.rank")(function* (
  role: Role,
  window: Window,
  page: Page,
  asset: string | undefined
) {
  const main = asset ?? ""
  const since = window.since?.toISOString().slice(0, 10) ?? "-infinity"
  const row = yield* readKept(role, since, page, main)
  if (!row.kept) return ranked(yield* sumUp(role, window, page, main))
  const found = ranked(row)
  if (row.dealt === null) return found
  const rest = {
    limit: page.limit - found.addresses.length,
    offset: Math.max(0, page.offset - Number(row.dealt))
  }
  return { ...found, addresses: [...found.addresses, ...(yield* others(role, since, rest, main))] }
})
