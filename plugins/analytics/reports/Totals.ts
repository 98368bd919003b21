// Overview, series, breakdowns and daily volume: sums over rollups, never over settlements, so that their cost does not
// grow with the number of payments (S144–S153).
import { Context, Effect, Exit, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { CatalogRecords } from "../../catalog/contract.ts"
import { type AssetSum, mainAsset } from "./Amounts.ts"
import { within } from "./conditions.ts"
import { ofAll } from "./ofTenant.ts"
import type { Page, Window } from "./parameters.ts"
import type { Breakdowns, DailyVolumes, Overview, Timeseries } from "./ReportWire.ts"
import { Spelling } from "./Spelling.ts"

interface Total {
  readonly network: string
  readonly scheme: string
  readonly asset: string
  readonly status: "success" | "failed" | "unknown"
  readonly transactions: string
  readonly amount: string
  readonly fee: string
  readonly organicTransactions: string
  readonly organicAmount: string
}

interface OverviewRow {
  readonly totals: ReadonlyArray<Total>
  readonly members: Readonly<Record<string, string>>
  readonly valid: bigint
  readonly refused: bigint
  readonly first: Date | null
  readonly last: Date | null
}

/** Maximum points of one series; a longer one keeps its newest. */
const pointsMax = 10_000

const sum = <A>(items: ReadonlyArray<A>, of: (item: A) => bigint | string): bigint =>
  items.reduce((total, item) => total + BigInt(of(item)), 0n)

const sumsOf = (totals: ReadonlyArray<Pick<Total, "asset" | "transactions" | "amount">>): ReadonlyArray<AssetSum> =>
  totals.map(({ amount, asset, transactions }) => ({
    asset,
    amount: BigInt(amount),
    transactions: BigInt(transactions)
  }))

const countsOf = (totals: ReadonlyArray<Pick<Total, "status" | "transactions">>) => {
  const count = (status?: string) =>
    sum(
      totals.filter((total) => status === undefined || total.status === status),
      ({ transactions }) => transactions
    ).toString()
  return {
    total_transactions: count(),
    successful_transactions: count("success"),
    failed_transactions: count("failed"),
    unknown_transactions: count("unknown")
  }
}

/** Totals of a window by network, scheme, asset and status. */
const totalsOf = (sql: SqlClient.SqlClient, window: Window) =>
  sql`select network, scheme, asset, status, sum(transactions)::text as transactions, sum(amount)::text as amount,
      sum(fee_stroops)::text as fee, sum(organic_transactions)::text as "organicTransactions",
      sum(organic_amount)::text as "organicAmount"
    from analytics_totals where width = 'day' and ${within(sql, "starts_at", window)}
    group by network, scheme, asset, status having sum(transactions) > 0`

type Organic = Pick<Total, "asset" | "organicAmount" | "organicTransactions">

const organicOf = ({ amounts }: Spelling["Service"], totals: ReadonlyArray<Organic>, main: string | undefined) => ({
  successful_transactions: sum(totals, ({ organicTransactions }) => organicTransactions).toString(),
  ...amounts.report(
    totals.map(({ asset, organicAmount, organicTransactions }) => ({
      asset,
      amount: BigInt(organicAmount),
      transactions: BigInt(organicTransactions)
    })),
    main
  )
})

/** One statement, so that its parts are consistent. */
const readOverview = Effect.fnUntraced(function* (window: Window) {
  const sql = yield* SqlClient.SqlClient
  const activity = sql`from analytics_settlements where status <> 'open' and ${within(sql, "occurred_at", window)}`
  const verified = sql`from analytics_verifications where ${within(sql, "day", window, "day")}`
  const [row] = yield* sql<OverviewRow>`select
    (select coalesce(jsonb_agg(t), '[]') from (${totalsOf(sql, window)}) t) as totals,
    (select coalesce(jsonb_object_agg(kind, members), '{}') from (
      select kind, sum(members)::text as members from analytics_member_days
      where ${within(sql, "last_day", window, "day")} group by kind) m) as members,
    (select coalesce(sum(valid), 0)::bigint ${verified}) as valid,
    (select coalesce(sum(refused), 0)::bigint ${verified}) as refused,
    (select min(occurred_at) ${activity}) as first, (select max(occurred_at) ${activity}) as last`.unprepared
  return row!
})

interface Census {
  readonly states: Readonly<Record<"active" | "stale" | "quarantined" | "removed", bigint>>
  readonly origins: bigint
}

const encodeOverview = (
  spelling: Spelling["Service"],
  { first, last, members, refused, totals, valid }: OverviewRow,
  { origins, states }: Census,
  window: Window,
  asset: string | undefined
): typeof Overview.Type => {
  const main = mainAsset(sumsOf(totals), asset)
  const unique = (kind: string) => members[kind] ?? "0"
  return {
    days: window.days,
    since: window.since?.toISOString() ?? null,
    ...countsOf(totals),
    total_verifications: (valid + refused).toString(),
    valid_verifications: valid.toString(),
    ...spelling.amounts.report(sumsOf(totals), main),
    total_sponsored_fee_stroops: sum(totals, ({ fee }) => fee).toString(),
    unique_buyers: unique("buyer"),
    unique_sellers: unique("seller"),
    unique_facilitators: unique("facilitator"),
    unique_networks: unique("network"),
    unique_resources: unique("resource"),
    cataloged_resources: (states.active + states.stale + states.quarantined).toString(),
    active_resources: states.active.toString(),
    stale_resources: states.stale.toString(),
    quarantined_resources: states.quarantined.toString(),
    origins: origins.toString(),
    first_activity: first?.toISOString() ?? null,
    latest_activity: last?.toISOString() ?? null,
    organic: organicOf(spelling, totals, main)
  }
}

interface PointRow {
  readonly at: Date
  readonly totals: ReadonlyArray<Total>
  readonly buyers: bigint | null
  readonly sellers: bigint | null
}

/** Nonempty buckets, oldest first. */
const series = Effect.fn("Totals.series")(function* (
  window: Window,
  bucket: "hour" | "day",
  asset: string | undefined
) {
  const sql = yield* SqlClient.SqlClient
  const spelling = yield* Spelling
  const attended = (role: "buyer" | "seller") => sql`(select members from analytics_attendance a
    where a.width = ${bucket} and a.starts_at = t.starts_at and a.role = ${role})`
  const rows = yield* sql<PointRow>`
    select t.starts_at as at, jsonb_agg(jsonb_build_object('asset', t.asset, 'status', t.status,
        'transactions', t.transactions::text, 'amount', t.amount::text,
        'organicTransactions', t.organic_transactions::text, 'organicAmount', t.organic_amount::text)) as totals,
      ${attended("buyer")} as buyers, ${attended("seller")} as sellers
    from analytics_totals t where t.width = ${bucket} and t.transactions > 0 and ${within(sql, "t.starts_at", window)}
    group by t.starts_at order by t.starts_at desc limit ${pointsMax}`.unprepared
  const main = mainAsset(sumsOf(rows.flatMap(({ totals }) => totals)), asset)
  return {
    bucket,
    days: window.days,
    ...spelling.amounts.name(main),
    series: rows.toReversed().map(({ at, buyers, sellers, totals }) => ({
      bucket_start: at.toISOString(),
      ...countsOf(totals),
      ...spelling.amounts.report(sumsOf(totals), main),
      unique_buyers: (buyers ?? 0n).toString(),
      unique_sellers: (sellers ?? 0n).toString(),
      organic: organicOf(spelling, totals, main)
    }))
  } satisfies typeof Timeseries.Type
})

const byTransactions = (
  [a, of]: readonly [string, ReadonlyArray<Total>],
  [b, other]: readonly [string, ReadonlyArray<Total>]
): number => {
  const difference = sum(other, ({ transactions }) => transactions) - sum(of, ({ transactions }) => transactions)
  return difference === 0n ? (a < b ? -1 : 1) : difference > 0n ? 1 : -1
}

type ReasonRow = Pick<Total, "status" | "transactions" | "fee"> & { readonly reason: string }

/** Reasons of failed and pending settlements, the most frequent first. */
const reasonsOf = Effect.fnUntraced(function* (window: Window) {
  const sql = yield* SqlClient.SqlClient
  const { word } = yield* Spelling
  const rows = yield* sql<ReasonRow>`select reason, status, sum(transactions)::text as transactions,
      sum(fee_stroops)::text as fee
    from analytics_reasons where ${within(sql, "day", window, "day")} group by reason, status
    having sum(transactions) > 0`.unprepared
  const grouped = [...Map.groupBy(rows, ({ reason }) => word(reason))].map(([key, of]) => ({
    key,
    ...countsOf(of),
    sponsored_fee_stroops: sum(of, ({ fee }) => fee).toString()
  }))
  return grouped.sort((a, b) => {
    const difference = BigInt(b.total_transactions) - BigInt(a.total_transactions)
    return difference === 0n ? (a.key < b.key ? -1 : 1) : difference > 0n ? 1 : -1
  })
})

const breakdowns = Effect.fn("Totals.breakdowns")(function* (window: Window, asset: string | undefined) {
  const sql = yield* SqlClient.SqlClient
  const spelling = yield* Spelling
  const totals = yield* sql<Total>`${totalsOf(sql, window)}`.unprepared
  const main = mainAsset(sumsOf(totals), asset)
  const grouped = (keyOf: (total: Total) => string, mainOf: (key: string) => string | undefined = () => main) =>
    [...Map.groupBy(totals, keyOf)].sort(byTransactions).map(([key, of]) => ({
      key,
      ...countsOf(of),
      ...spelling.amounts.report(sumsOf(of), mainOf(key)),
      sponsored_fee_stroops: sum(of, ({ fee }) => fee).toString(),
      organic: organicOf(spelling, of, mainOf(key))
    }))
  return {
    days: window.days,
    networks: grouped(({ network }) => spelling.network(network)),
    schemes: grouped(({ scheme }) => scheme),
    assets: grouped(
      (total) => total.asset,
      (key) => key
    ),
    statuses: grouped(({ status }) => status),
    reasons: yield* reasonsOf(window)
  } satisfies typeof Breakdowns.Type
})

const daily = Effect.fn("Totals.daily")(function* (window: Window, page: Page) {
  const sql = yield* SqlClient.SqlClient
  const spelling = yield* Spelling
  const condition = sql`width = 'day' and transactions > 0 and ${within(sql, "starts_at", window)}`
  const rows = yield* sql<Total & { readonly at: Date }>`select starts_at as at, network, scheme, asset, status,
      transactions::text as transactions, amount::text as amount, fee_stroops::text as fee,
      organic_transactions::text as "organicTransactions", organic_amount::text as "organicAmount"
    from analytics_totals where ${condition}
    order by starts_at desc, network, scheme, asset, status limit ${page.limit} offset ${page.offset}`.unprepared
  const [count] = yield* sql<{ total: bigint }>`select count(*) as total from analytics_totals where ${condition}`
    .unprepared
  return {
    days: window.days,
    items: rows.map((row) => ({
      day: row.at.toISOString().slice(0, 10),
      network: spelling.network(row.network),
      scheme: row.scheme,
      ...spelling.amounts.name(row.asset),
      status: row.status,
      total_transactions: row.transactions,
      total_amount: row.amount,
      sponsored_fee_stroops: row.fee,
      organic: { successful_transactions: row.organicTransactions, total_amount: row.organicAmount }
    })),
    pagination: { ...page, total: Number(count!.total) }
  } satisfies typeof DailyVolumes.Type
})

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

export class Totals extends Context.Service<
  Totals,
  {
    readonly overview: (window: Window, asset: string | undefined) => Sql<typeof Overview.Type>
    readonly series: (window: Window, bucket: "hour" | "day", asset: string | undefined) => Sql<typeof Timeseries.Type>
    readonly breakdowns: (window: Window, asset: string | undefined) => Sql<typeof Breakdowns.Type>
    readonly daily: (window: Window, page: Page) => Sql<typeof DailyVolumes.Type>
  }
>()("tollkeeper/analytics/Totals") {
  static readonly layer = Layer.effect(
    Totals,
    Effect.gen(function* () {
      const services = yield* Effect.context<SqlClient.SqlClient | Spelling>()
      const spelling = yield* Spelling
      const records = yield* CatalogRecords
      // The catalog is counted at most once a second, at any request rate.
      const census = yield* Effect.cachedWithTTL(ofAll(records.census), (exit) =>
        Exit.isSuccess(exit) ? "1 second" : 0
      )
      const overview = Effect.fn("Totals.overview")(function* (window: Window, asset: string | undefined) {
        const row = yield* readOverview(window)
        return encodeOverview(spelling, row, yield* census, window, asset)
      })
      return Totals.of({
        overview: (window, asset) => Effect.provideContext(overview(window, asset), services),
        series: (window, bucket, asset) => Effect.provideContext(series(window, bucket, asset), services),
        breakdowns: (window, asset) => Effect.provideContext(breakdowns(window, asset), services),
        daily: (window, page) => Effect.provideContext(daily(window, page), services)
      })
    })
  )
}
