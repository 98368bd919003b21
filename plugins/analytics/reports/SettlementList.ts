// Settlements as the pages list them: filters, four orders, and pages by cursor. A page costs its rows and not the
// history before it, since every order and filter has an index that ends in the cursor's own columns
// (migrations/analytics/0005). Nothing is counted beyond a bound. Amounts are only compared within one asset.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { Row } from "../../../kernel/database/table.ts"
import { neutralReason } from "../../../kernel/Dialect.ts"
import { settlements } from "../recording/SettlementFact.ts"
import type { SettlementsListed } from "./ListWire.ts"
import { listedOf } from "./SettlementRecord.ts"
import { Spelling } from "./Spelling.ts"

export type Sort = "newest" | "oldest" | "largest" | "smallest"

/** A cursor of amounts has larger keys than times have. */
export const isCursorOf = (sort: Sort, cursor: string): boolean =>
  !orders[sort].isTime || /^-?[0-9]{1,17}_/.test(cursor)

/** The filter of a list; absent members do not filter. */
export interface ListFilter {
  readonly status?: string | undefined
  readonly reason?: string | undefined
  readonly network?: string | undefined
  readonly scheme?: string | undefined
  readonly asset?: string | undefined
  readonly principal?: string | undefined
  readonly payer?: string | undefined
  readonly payTo?: string | undefined
  /** Matches the payer or the recipient. */
  readonly party?: string | undefined
  readonly resourceId?: string | undefined
  readonly origin?: string | undefined
  /** In atomic units of `asset`. */
  readonly min?: string | undefined
  readonly max?: string | undefined
  /** `from` inclusive, `to` exclusive; ISO 8601. */
  readonly from?: string | undefined
  readonly to?: string | undefined
}

interface ListPage {
  readonly sort: Sort
  readonly limit: number
  /** `KEY_ID` of the previous page's last row. */
  readonly cursor: string | undefined
}

/** Maximum number of counted matches; above it the answer is “more than”. */
const countedMax = 1_000

type Sql = SqlClient.SqlClient

/** A row with its place in the order, as text. */
interface PlacedRow extends Row {
  readonly id: string
  readonly place: string
}

const equal = (sql: Sql, column: string, value: string | undefined): ReadonlyArray<Statement.Fragment> =>
  value === undefined ? [] : [sql`${sql.literal(column)} = ${value}`]

/** All conditions except the party and the cursor. */
const conditionsOf = (sql: Sql, filter: ListFilter): ReadonlyArray<Statement.Fragment> => [
  sql`status <> 'open'`,
  ...equal(sql, "status", filter.status),
  ...equal(sql, "error_reason", filter.reason === undefined ? undefined : neutralReason(filter.reason)),
  ...equal(sql, "network", filter.network),
  ...equal(sql, "scheme", filter.scheme),
  ...equal(sql, "asset", filter.asset),
  ...equal(sql, "principal", filter.principal),
  ...equal(sql, "payer", filter.payer),
  ...equal(sql, "pay_to", filter.payTo),
  ...equal(sql, "resource_origin", filter.origin),
  ...(filter.resourceId === undefined ? [] : [sql`resource_id = ${filter.resourceId}::bigint`]),
  ...(filter.min === undefined ? [] : [sql`amount_meant >= ${filter.min}::numeric`]),
  ...(filter.max === undefined ? [] : [sql`amount_meant <= ${filter.max}::numeric`]),
  ...(filter.from === undefined ? [] : [sql`occurred_at >= ${filter.from}::timestamptz`]),
  ...(filter.to === undefined ? [] : [sql`occurred_at < ${filter.to}::timestamptz`])
]

const microseconds = "(extract(epoch from occurred_at) * 1000000)::bigint"

/**
 * The column of an order, its direction, and the SQL of a cursor's key. Times are in microseconds, so no row is
 * skipped.
 */
const orders: Readonly<
  Record<Sort, { readonly column: string; readonly isDown: boolean; readonly key: string; readonly isTime: boolean }>
> = {
  newest: { column: "occurred_at", isDown: true, key: microseconds, isTime: true },
  oldest: { column: "occurred_at", isDown: false, key: microseconds, isTime: true },
  largest: { column: "amount_meant", isDown: true, key: "amount_meant", isTime: false },
  smallest: { column: "amount_meant", isDown: false, key: "amount_meant", isTime: false }
}

const beyond = (sql: Sql, { cursor, sort }: ListPage): ReadonlyArray<Statement.Fragment> => {
  if (cursor === undefined) return []
  const { column, isDown, isTime } = orders[sort]
  const [key = "0", id = ""] = cursor.split("_")
  const at = isTime ? sql`timestamptz 'epoch' + ${key}::bigint * interval '1 microsecond'` : sql`${key}::numeric`
  return [
    sql`(${sql.literal(column)}, analytics_settlements.id) ${sql.literal(isDown ? "<" : ">")} (${at}, ${id}::uuid)`
  ]
}

/** A page. If the party matches either side, each side is read separately from its own index. */
const readPage = (sql: Sql, filter: ListFilter, page: ListPage): Statement.Statement<PlacedRow> => {
  const { column, isDown, key } = orders[page.sort]
  const way = isDown ? "desc" : "asc"
  const order = sql.literal(`${column} ${way}, analytics_settlements.id ${way}`)
  const some = (own: ReadonlyArray<Statement.Fragment>) => sql`(select * from analytics_settlements
    where ${sql.and([...conditionsOf(sql, filter), ...own, ...beyond(sql, page)])}
    order by ${order} limit ${page.limit + 1})`
  const source =
    filter.party === undefined
      ? some([])
      : sql`(${some([sql`payer = ${filter.party}`])}
          union all ${some([sql`pay_to = ${filter.party}`, sql`payer <> ${filter.party}`])})`
  return sql<PlacedRow>`select ${sql.literal(settlements.selected)}, (${sql.literal(key)})::text as place
    from ${source} s order by ${sql.literal(`s.${column} ${way}, s.id ${way}`)} limit ${page.limit + 1}`
}

/** Matches, at most one more than `countedMax`. */
const countOf = (sql: Sql, filter: ListFilter): Statement.Statement<{ total: bigint }> => {
  const some = (own: ReadonlyArray<Statement.Fragment>) => sql`(select 1 as one from analytics_settlements
    where ${sql.and([...conditionsOf(sql, filter), ...own])} limit ${countedMax + 1})`
  const source =
    filter.party === undefined
      ? some([])
      : sql`(${some([sql`payer = ${filter.party}`])}
          union all ${some([sql`pay_to = ${filter.party}`, sql`payer <> ${filter.party}`])} limit ${countedMax + 1})`
  return sql<{ total: bigint }>`select count(*) as total from ${source} s`
}

/** If no settlement has this principal, it is the label of a key: the principal is `key:LABEL`. */
const spelledKey = Effect.fnUntraced(function* (filter: ListFilter) {
  const { principal } = filter
  if (principal === undefined) return filter
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ known: boolean }>`select exists (select 1 from analytics_settlements
    where principal = ${principal} and status <> 'open') as known`.unprepared
  return row?.known === true ? filter : { ...filter, principal: `key:${principal.replace(/^key:/, "")}` }
})

const list = Effect.fn("SettlementList.list")(function* (requestedFilter: ListFilter, page: ListPage) {
  const sql = yield* SqlClient.SqlClient
  const filter = yield* spelledKey(requestedFilter)
  const listed = listedOf(yield* Spelling)
  // Planned for its own values; no generic plan fits all filters.
  const rows = yield* readPage(sql, filter, page).unprepared
  const total = page.cursor === undefined ? Number((yield* countOf(sql, filter).unprepared)[0]!.total) : undefined
  const shown = rows.slice(0, page.limit)
  const last = rows.length > page.limit ? shown.at(-1) : undefined
  return {
    items: shown.map(settlements.decode).map(listed),
    pagination: {
      limit: page.limit,
      cursor: last === undefined ? null : `${last.place}_${last.id}`,
      ...(total === undefined ? {} : { total: Math.min(total, countedMax), more: total > countedMax })
    }
  } satisfies typeof SettlementsListed.Type
})

export class SettlementList extends Context.Service<
  SettlementList,
  {
    readonly list: (
      filter: ListFilter,
      page: ListPage
    ) => Effect.Effect<typeof SettlementsListed.Type, SqlError.SqlError>
  }
>()("tollkeeper/analytics/SettlementList") {
  static readonly layer = Layer.effect(
    SettlementList,
    Effect.map(Effect.context<SqlClient.SqlClient | Spelling>(), (services) =>
      SettlementList.of({ list: (filter, page) => Effect.provideContext(list(filter, page), services) })
    )
  )
}
