// Settlement records: filtered lists, the newest first, and one by its hash. What is not settled, failed or past its
// caller's time is not shown. Totals without an address or a resource come from the rollups (S154–S156, S160, S167,
// S178–S180).
import { Effect, Option } from "effect"
import type { Statement } from "effect/sql"
import { settlementColumns, type SettlementRow } from "../recording/SettlementRows.ts"
import type { Page, Window } from "./parameters.ts"
import type { SettlementRecords } from "./ReportWire.ts"
import { encodeRecord, standingDays, type Reporting, within } from "./Reporting.ts"

export interface TransactionFilter {
  readonly payer?: string | undefined
  readonly payTo?: string | undefined
  readonly network?: string | undefined
  readonly scheme?: string | undefined
  readonly asset?: string | undefined
  readonly status?: string | undefined
  readonly resourceId?: string | undefined
}

export const makeTransactions = (reporting: Reporting) => {
  const { sql } = reporting
  const columns = sql.literal(settlementColumns)

  const equal = (column: string, value: string | undefined): ReadonlyArray<Statement.Fragment> =>
    value === undefined ? [] : [sql`${sql.literal(column)} = ${value}`]
  const kinds = ({ asset, network, scheme, status }: TransactionFilter) => [
    ...equal("network", network),
    ...equal("scheme", scheme),
    ...equal("asset", asset),
    ...equal("status", status)
  ]

  const listed = (rows: ReadonlyArray<SettlementRow>, page: Page, total: bigint): typeof SettlementRecords.Type => ({
    items: rows.map((row) => encodeRecord(reporting, row)),
    pagination: { ...page, total: Number(total) }
  })

  const list = Effect.fn("Analytics.transactions")(function* (filter: TransactionFilter, window: Window, page: Page) {
    const { payTo, payer, resourceId } = filter
    const condition = sql.and([
      sql`status <> 'open'`,
      ...kinds(filter),
      ...equal("payer", payer),
      ...equal("pay_to", payTo),
      ...(resourceId === undefined ? [] : [sql`resource_id = ${resourceId}::bigint`]),
      within(sql, "occurred_at", window)
    ])
    const isNarrow = payer !== undefined || payTo !== undefined || resourceId !== undefined
    const [count] = isNarrow
      ? yield* sql<{ total: bigint }>`select count(*) as total from analytics_settlements where ${condition}`.unprepared
      : yield* sql<{ total: bigint }>`select coalesce(sum(transactions), 0)::bigint as total from analytics_totals
        where ${sql.and([sql`width = 'day'`, ...kinds(filter), within(sql, "starts_at", window)])}`.unprepared
    if (BigInt(page.offset) >= count!.total) return listed([], page, count!.total)
    // What is skipped is skipped in the index: rows are read for the page alone.
    const rows = yield* sql<SettlementRow>`select ${columns} from analytics_settlements s where s.id in (
        select p.id from (select id from analytics_settlements where ${condition} order by occurred_at desc, id desc limit ${page.limit} offset ${page.offset}) p)
      order by s.occurred_at desc, s.id desc`.unprepared
    return listed(rows, page, count!.total)
  })

  /** As payer or as recipient. */
  const ofAddress = Effect.fn("Analytics.transactionsOf")(function* (address: string, window: Window, page: Page) {
    const some = (column: string) =>
      sql`(select * from analytics_settlements where status <> 'open' and ${sql.literal(column)} = ${address} and ${within(sql, "occurred_at", window)}
        order by occurred_at desc, id desc limit ${page.limit + page.offset})`
    const [count] = yield* sql<{
      total: bigint
    }>`select coalesce(sum(transactions), 0)::bigint as total from analytics_standings
      where address = ${address} and ${standingDays(sql, window)}`.unprepared
    const rows = yield* sql<SettlementRow>`select ${columns} from (${some("payer")} union all ${some("pay_to")}) s
      order by occurred_at desc, s.id desc limit ${page.limit} offset ${page.offset}`.unprepared
    return listed(rows, page, count!.total)
  })

  const byHash = Effect.fn("Analytics.transaction")(function* (hash: string) {
    const [row] =
      yield* sql<SettlementRow>`select ${columns} from analytics_settlements where transaction_hash = ${hash.toLowerCase()} and status <> 'open'
      order by occurred_at desc, analytics_settlements.id desc limit 1`
    return Option.map(Option.fromUndefinedOr(row), (found) => encodeRecord(reporting, found))
  })

  return { list, ofAddress, byHash }
}
