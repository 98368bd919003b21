// A page of a role's leaderboard: addresses by their amount of one asset, then by their settlements in it, then by
// name; addresses that never dealt in the asset come last. It reads the stored order, or sums a window that is not
// stored yet (S157, S158).
import { Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { leaderboardDays } from "./conditions.ts"
import type { Page, Window } from "./parameters.ts"

export type Role = "buyer" | "seller"

/** An entry of the order; an address without a settlement in the asset has 0 and 0. */
export interface RankEntry {
  readonly address: string
  /** Atomic units. */
  readonly amount: string
  readonly transactions: string
}

/** `after` is the previous page's last entry; `min` excludes smaller amounts, in atomic units. */
export interface RankPage extends Page {
  readonly after?: RankEntry | undefined
  readonly min?: string | undefined
}

interface Ranking {
  readonly entries: ReadonlyArray<RankEntry>
  /** Amounts of the first ten. */
  readonly top: ReadonlyArray<bigint>
}

interface Row {
  readonly kept: boolean
  readonly page: ReadonlyArray<RankEntry> | null
  readonly top: ReadonlyArray<string> | null
  /** Number of addresses that dealt in the asset; null if no offset needs it. */
  readonly dealt: bigint | null
}

const order = "order by amount desc, transactions desc, address"

const entryObject = "jsonb_build_object('address', address, 'amount', amount::text, 'transactions', transactions::text)"

const ranked = ({ page, top }: Pick<Row, "page" | "top">): Ranking => ({
  entries: page ?? [],
  top: (top ?? []).map(BigInt)
})

/** Condition: after the page's last entry, and at least its minimum amount. */
const behind = (sql: SqlClient.SqlClient, { after, min }: RankPage): Statement.Fragment =>
  sql.and([
    sql`true`,
    ...(min === undefined ? [] : [sql`amount >= ${min}::numeric`]),
    ...(after === undefined
      ? []
      : [
          sql`amount <= ${after.amount}::numeric`,
          sql`(amount < ${after.amount}::numeric or transactions < ${after.transactions}::bigint
            or (transactions = ${after.transactions}::bigint and address > ${after.address}))`
        ])
  ])

const readKept = Effect.fnUntraced(function* (role: Role, since: string, page: RankPage, asset: string) {
  const sql = yield* SqlClient.SqlClient
  const window = sql`role = ${role} and since = ${since}::date`
  const inOrder = sql.literal(order)
  const [row] = yield* sql<Row>`with paged as materialized (
      select address, amount, transactions from analytics_rankings where ${window} and asset = ${asset}
        and ${behind(sql, page)} ${inOrder} limit ${page.limit} offset ${page.offset}
    )
    select exists (select 1 from analytics_ranking_windows where since = ${since}::date) as kept,
      (select jsonb_agg(${sql.literal(entryObject)} ${inOrder}) from paged) as page,
      (select jsonb_agg(amount::text order by amount desc) from (
        select amount from analytics_rankings where ${window} and asset = ${asset} ${inOrder} limit 10) t) as top,
      case when ${page.after === undefined} and (select count(*) from paged) < ${page.limit}
        then (select count(*) from analytics_rankings where ${window} and asset = ${asset}) end as dealt`.unprepared
  return row!
})

/** Addresses that only dealt in other assets. */
const others = Effect.fnUntraced(function* (role: Role, since: string, page: RankPage, asset: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ address: string }>`select address from analytics_rankings r
    where role = ${role} and since = ${since}::date and asset <> ${asset}
      and address > ${page.after?.address ?? ""}
      and not exists (select 1 from analytics_rankings m
        where m.role = r.role and m.since = r.since and m.address = r.address and m.asset = ${asset})
    group by address order by address limit ${page.limit} offset ${page.offset}`.unprepared
  return rows.map(({ address }): RankEntry => ({ address, amount: "0", transactions: "0" }))
})

const sumUp = Effect.fnUntraced(function* (role: Role, window: Window, page: RankPage, asset: string) {
  const sql = yield* SqlClient.SqlClient
  const inOrder = sql.literal(order)
  const [row] = yield* sql<Pick<Row, "page" | "top">>`with ranked as materialized (
      select address, coalesce(sum(transactions) filter (where asset = ${asset}), 0) as transactions,
        coalesce(sum(amount) filter (where asset = ${asset}), 0) as amount
      from analytics_standings where role = ${role} and ${leaderboardDays(sql, window)} group by address
    )
    select (select jsonb_agg(${sql.literal(entryObject)} ${inOrder})
        from (select * from ranked where ${behind(sql, page)} ${inOrder}
          limit ${page.limit} offset ${page.offset}) p) as page,
      (select jsonb_agg(amount::text order by amount desc)
        from (select amount from ranked order by amount desc limit 10) t) as top`.unprepared
  return row!
})

/** A page of a role's addresses by an asset, and the largest amounts of all. */
export const rank = Effect.fn("ranking.rank")(function* (
  role: Role,
  window: Window,
  page: RankPage,
  asset: string | undefined
) {
  const main = asset ?? ""
  const since = window.since?.toISOString().slice(0, 10) ?? "-infinity"
  const row = yield* readKept(role, since, page, main)
  if (!row.kept) return ranked(yield* sumUp(role, window, page, main))
  const ranking = ranked(row)
  if (ranking.entries.length >= page.limit || (page.min ?? "0") !== "0") return ranking
  const rest = {
    limit: page.limit - ranking.entries.length,
    offset: page.after === undefined ? Math.max(0, page.offset - Number(row.dealt ?? 0)) : 0,
    after: page.after?.transactions === "0" ? page.after : undefined
  }
  return { ...ranking, entries: [...ranking.entries, ...(yield* others(role, since, rest, main))] }
})
