// Settlement records: filtered lists, the newest first, and one by its hash. A settlement is listed once it is settled,
// failed or past its caller's time. Totals without an address or a resource come from the rollups (S154–S156, S160,
// S167, S178–S180).
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { Row } from "../../../kernel/database/table.ts"
import { settlements } from "../recording/SettlementFact.ts"
import { leaderboardDays, within } from "./conditions.ts"
import type { Page, Window } from "./parameters.ts"
import { recordOf, type SettlementRecord, type SettlementRecords } from "./SettlementRecord.ts"
import { Spelling } from "./Spelling.ts"

interface TransactionFilter {
  readonly payer?: string | undefined
  readonly payTo?: string | undefined
  readonly network?: string | undefined
  readonly scheme?: string | undefined
  readonly asset?: string | undefined
  readonly status?: string | undefined
  readonly resourceId?: string | undefined
}

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

export class Transactions extends Context.Service<
  Transactions,
  {
    readonly list: (filter: TransactionFilter, window: Window, page: Page) => Sql<typeof SettlementRecords.Type>
    /** As payer or as recipient. */
    readonly ofAddress: (address: string, window: Window, page: Page) => Sql<typeof SettlementRecords.Type>
    /** The newest with this hash. */
    readonly byHash: (hash: string) => Sql<Option.Option<typeof SettlementRecord.Type>>
  }
>()("tollkeeper/analytics/Transactions") {
  static readonly layer = Layer.effect(
    Transactions,
    Effect.map(Effect.context<SqlClient.SqlClient | Spelling>(), (services) =>
      Transactions.of({
        list: (filter, window, page) => Effect.provideContext(list(filter, window, page), services),
        ofAddress: (address, window, page) => Effect.provideContext(ofAddress(address, window, page), services),
        byHash: (hash) => Effect.provideContext(byHash(hash), services)
      })
    )
  )
}

const equal = (
  sql: SqlClient.SqlClient,
  values: Readonly<Record<string, string | undefined>>
): ReadonlyArray<Statement.Fragment> =>
  Object.entries(values).flatMap(([column, value]) =>
    value === undefined ? [] : [sql`${sql.literal(column)} = ${value}`]
  )

const listed = (
  spelling: Spelling["Service"],
  rows: ReadonlyArray<Row>,
  page: Page,
  total: bigint
): typeof SettlementRecords.Type => ({
  items: rows.map(settlements.decode).map(recordOf(spelling)),
  pagination: { ...page, total: Number(total) }
})

/** Number of matches: from the rollup that covers the filter; without such a rollup, settlements are counted. */
const countOf = (
  sql: SqlClient.SqlClient,
  { asset, network, payTo, payer, resourceId, scheme, status }: TransactionFilter,
  window: Window,
  condition: Statement.Fragment
): Statement.Fragment => {
  const sum = sql.literal("coalesce(sum(transactions), 0)::bigint as total")
  const people = [payer, payTo].filter((address) => address !== undefined)
  if (people.length === 0 && resourceId === undefined)
    return sql`select ${sum} from analytics_totals where ${sql.and([
      sql`width = 'day'`,
      ...equal(sql, { network, scheme, asset, status }),
      within(sql, "starts_at", window)
    ])}`
  const isBroad = network === undefined && scheme === undefined && status === undefined
  if (isBroad && people.length === 1 && resourceId === undefined)
    return sql`select ${sum} from analytics_standings where ${sql.and([
      ...equal(sql, { role: payer === undefined ? "seller" : "buyer", address: people[0], asset }),
      leaderboardDays(sql, window)
    ])}`
  return isBroad && people.length === 0 && window.since === undefined
    ? sql`select ${sum} from analytics_resources
        where ${sql.and([sql`resource_id = ${resourceId}::bigint`, ...equal(sql, { asset })])}`
    : sql`select count(*) as total from analytics_settlements where ${condition}`
}

const list = Effect.fn("Transactions.list")(function* (filter: TransactionFilter, window: Window, page: Page) {
  const sql = yield* SqlClient.SqlClient
  const spelling = yield* Spelling
  const { asset, network, payTo, payer, resourceId, scheme, status } = filter
  const kinds = equal(sql, { network, scheme, asset, status })
  const condition = sql.and([
    sql`status <> 'open'`,
    ...kinds,
    ...equal(sql, { payer, pay_to: payTo }),
    ...(resourceId === undefined ? [] : [sql`resource_id = ${resourceId}::bigint`]),
    within(sql, "occurred_at", window)
  ])
  const [count] = yield* sql<{ total: bigint }>`${countOf(sql, filter, window, condition)}`.unprepared
  if (BigInt(page.offset) >= count!.total) return listed(spelling, [], page, count!.total)
  // The offset is skipped in the index: only the page's rows are read.
  const rows = yield* sql`select ${sql.literal(settlements.selected)} from analytics_settlements s
    where s.id in (
      select p.id from (select id from analytics_settlements where ${condition}
        order by occurred_at desc, id desc limit ${page.limit} offset ${page.offset}) p)
    order by s.occurred_at desc, s.id desc`.unprepared
  return listed(spelling, rows, page, count!.total)
})

const ofAddress = Effect.fn("Transactions.ofAddress")(function* (address: string, window: Window, page: Page) {
  const sql = yield* SqlClient.SqlClient
  const spelling = yield* Spelling
  const some = (column: string) => sql`(select * from analytics_settlements
    where status <> 'open' and ${sql.literal(column)} = ${address} and ${within(sql, "occurred_at", window)}
    order by occurred_at desc, id desc limit ${page.limit + page.offset})`
  const [count] = yield* sql<{ total: bigint }>`select coalesce(sum(transactions), 0)::bigint as total
    from analytics_standings where address = ${address} and ${leaderboardDays(sql, window)}`.unprepared
  const rows = yield* sql`select ${sql.literal(settlements.selected)}
    from (${some("payer")} union all ${some("pay_to")}) s
    order by occurred_at desc, s.id desc limit ${page.limit} offset ${page.offset}`.unprepared
  return listed(spelling, rows, page, count!.total)
})

const byHash = Effect.fn("Transactions.byHash")(function* (hash: string) {
  const sql = yield* SqlClient.SqlClient
  const record = recordOf(yield* Spelling)
  const [row] = yield* sql`select ${sql.literal(settlements.selected)} from analytics_settlements
    where transaction_hash = ${hash.toLowerCase()} and status <> 'open'
    order by occurred_at desc, analytics_settlements.id desc limit 1`
  return Option.map(Option.fromUndefinedOr(row), (one) => record(settlements.decode(one)))
})
