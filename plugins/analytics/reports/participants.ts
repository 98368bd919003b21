// Payers and recipients: leaderboards by amount with their concentration, one participant's totals, and whom it dealt
// with. Sums come from rollups by day; a leaderboard is ranked in one asset, the one asked for or the one with the most
// settlements (S157–S161).
import { Effect, Option } from "effect"
import { type AssetSum, mainAsset } from "./amounts.ts"
import type { Page, Window } from "./parameters.ts"
import type { Counterparties, Leaderboard, Participant } from "./ReportWire.ts"
import { networkOut, standingDays, type Reporting, within } from "./Reporting.ts"

export type Role = "buyer" | "seller"

interface RankRow {
  readonly address: string
  readonly transactions: string
  readonly successful: string
  /** Milliseconds. */
  readonly last: number
}

interface PartRow {
  readonly address: string
  readonly asset: string
  readonly networks: ReadonlyArray<string>
  readonly schemes: ReadonlyArray<string>
  readonly facilitators: ReadonlyArray<string>
  readonly transactions: bigint
  readonly successful: bigint
  readonly failed: bigint
  readonly amount: string
  readonly first: Date
  readonly last: Date
}

interface CounterpartyRow {
  readonly address: string
  readonly transactions: bigint
  readonly successful: bigint
  readonly first: Date
  readonly last: Date
  readonly total: bigint
  readonly amounts: ReadonlyArray<{ readonly asset: string; readonly transactions: string; readonly amount: string }>
}

const sharePlaces = 1_000_000n
/** A part of a whole, 0 to 1. */
const shareOf = (part: bigint, whole: bigint): number =>
  whole === 0n ? 0 : Number((part * sharePlaces) / whole) / Number(sharePlaces)

const add = (items: ReadonlyArray<bigint>): bigint => items.reduce((sum, item) => sum + item, 0n)
const sorted = (items: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(items)].sort()
const sumsOf = (parts: ReadonlyArray<PartRow>): ReadonlyArray<AssetSum> =>
  parts.map(({ amount, asset, transactions }) => ({ asset, transactions, amount: BigInt(amount) }))

export const makeParticipants = (reporting: Reporting) => {
  const { amounts, dialect, redaction, sql } = reporting
  const [own, other] = [
    (role: Role) => sql.literal(role === "buyer" ? "payer" : "pay_to"),
    (role: Role) => sql.literal(role === "buyer" ? "pay_to" : "payer")
  ]

  /** The rollup's rows of some addresses. */
  const partsOf = (role: Role, addresses: ReadonlyArray<string>, window: Window) =>
    sql<PartRow>`select address, asset, networks, schemes, facilitators, transactions, successful, failed, amount::text as amount, first_at as first, last_at as last
      from analytics_standings where role = ${role} and address in (select value from jsonb_array_elements_text(${JSON.stringify(addresses)}::jsonb)) and ${standingDays(sql, window)}`
      .unprepared

  /** How many an address dealt with. */
  const counterpartyCounts = (role: Role, addresses: ReadonlyArray<string>, window: Window) =>
    Effect.map(
      sql<{
        address: string
        count: bigint
      }>`select ${own(role)} as address, count(distinct ${other(role)}) as count from analytics_pairs
        where ${own(role)} in (select value from jsonb_array_elements_text(${JSON.stringify(addresses)}::jsonb)) and ${within(sql, "last_at", window)} group by ${own(role)}`
        .unprepared,
      (rows) => new Map(rows.map(({ address, count }) => [address, count]))
    )

  const assetTotals = (window: Window) =>
    Effect.map(
      sql<{
        asset: string
        transactions: bigint
        amount: string
      }>`select asset, sum(transactions)::bigint as transactions, sum(amount)::text as amount
        from analytics_totals where width = 'day' and ${within(sql, "starts_at", window)} group by asset`.unprepared,
      (rows): ReadonlyArray<AssetSum> => rows.map(({ amount, ...row }) => ({ ...row, amount: BigInt(amount) }))
    )

  const leaderboard = Effect.fn("Analytics.leaderboard")(function* (
    role: Role,
    window: Window,
    page: Page,
    asset: string | undefined
  ) {
    const all = yield* assetTotals(window)
    const main = mainAsset(all, asset)
    const [row] = yield* sql<{
      page: ReadonlyArray<RankRow> | null
      top: ReadonlyArray<string> | null
    }>`with ranked as materialized (
        select address, sum(transactions)::bigint as transactions, sum(successful)::bigint as successful, max(last_at) as last, coalesce(sum(amount) filter (where asset = ${main ?? ""}), 0) as amount
        from analytics_standings where role = ${role} and ${standingDays(sql, window)} group by address
      ) select (select jsonb_agg(jsonb_build_object('address', address, 'transactions', transactions::text, 'successful', successful::text, 'last', extract(epoch from last) * 1000)
          order by amount desc, transactions desc, address) from (select * from ranked order by amount desc, transactions desc, address limit ${page.limit} offset ${page.offset}) p) as page,
        (select jsonb_agg(amount::text order by amount desc) from (select amount from ranked order by amount desc limit 10) t) as top`
      .unprepared
    const [rows, top] = [row!.page ?? [], row!.top ?? []]
    const [count] = yield* sql<{
      total: bigint
    }>`select coalesce(sum(members), 0)::bigint as total from analytics_member_days
      where kind = ${role} and ${within(sql, "last_day", window, "day")}`.unprepared
    const addresses = rows.map(({ address }) => address)
    const parts = addresses.length === 0 ? [] : yield* partsOf(role, addresses, window)
    const counterparties =
      addresses.length === 0 ? new Map<string, bigint>() : yield* counterpartyCounts(role, addresses, window)
    const whole = all.find((sum) => sum.asset === main)?.amount ?? 0n
    const topShare = (first: number) => shareOf(add(top.slice(0, first).map(BigInt)), whole)
    return {
      days: window.days,
      items: rows.map(({ address, last, successful, transactions }) => {
        const own = parts.filter((part) => part.address === address)
        return {
          address: redaction.show(address),
          tx_count: transactions,
          successful_transactions: successful,
          ...amounts.tell(sumsOf(own), main),
          unique_counterparties: (counterparties.get(address) ?? 0n).toString(),
          networks: sorted(own.flatMap(({ networks }) => networks.map((network) => networkOut(dialect, network)))),
          facilitators: sorted(own.flatMap(({ facilitators }) => facilitators)),
          latest_activity: new Date(Math.floor(last)).toISOString()
        }
      }),
      pagination: { ...page, total: Number(count!.total) },
      concentration: {
        total_transactions: add(all.map(({ transactions }) => transactions)).toString(),
        ...amounts.tell(all, main),
        top1_share: topShare(1),
        top5_share: topShare(5),
        top10_share: topShare(10)
      }
    } satisfies typeof Leaderboard.Type
  })

  /** Whether an address ever had the role. */
  const isKnown = (role: Role, address: string) =>
    Effect.map(
      sql`select 1 from analytics_members where kind = ${role} and name = ${address}`,
      (rows) => rows.length > 0
    )

  /** None for an address that never had the role. */
  const one = Effect.fn("Analytics.participant")(function* (
    role: Role,
    address: string,
    window: Window,
    asset: string | undefined
  ) {
    if (!(yield* isKnown(role, address))) return Option.none()
    const parts = yield* partsOf(role, [address], window)
    const counterparties = yield* counterpartyCounts(role, [address], window)
    const [transactions, successful, failed] = [
      add(parts.map((part) => part.transactions)),
      add(parts.map((part) => part.successful)),
      add(parts.map((part) => part.failed))
    ]
    const times = (of: (part: PartRow) => Date) => parts.map(of).sort((a, b) => a.getTime() - b.getTime())
    const { total_amount, ...told } = amounts.tell(sumsOf(parts), mainAsset(sumsOf(parts), asset))
    return Option.some({
      address: redaction.show(address),
      days: window.days,
      total_transactions: transactions.toString(),
      successful_transactions: successful.toString(),
      failed_transactions: failed.toString(),
      unknown_transactions: (transactions - successful - failed).toString(),
      total_amount,
      successful_amount: total_amount,
      ...told,
      unique_counterparties: (counterparties.get(address) ?? 0n).toString(),
      schemes: sorted(parts.flatMap(({ schemes }) => schemes)),
      networks: sorted(parts.flatMap(({ networks }) => networks.map((network) => networkOut(dialect, network)))),
      facilitators: sorted(parts.flatMap(({ facilitators }) => facilitators)),
      first_activity: times(({ first }) => first)[0]?.toISOString() ?? null,
      latest_activity:
        times(({ last }) => last)
          .at(-1)
          ?.toISOString() ?? null
    } satisfies typeof Participant.Type)
  })

  /** Whom an address dealt with in its role, the ones it dealt with most first. */
  const counterparties = Effect.fn("Analytics.counterparties")(function* (
    role: Role,
    address: string,
    window: Window,
    page: Page,
    asset: string | undefined
  ) {
    if (!(yield* isKnown(role, address))) return Option.none()
    const pairs =
      window.since === undefined
        ? sql`select ${other(role)} as address, asset, transactions, successful, amount, first_at, last_at from analytics_pairs where ${own(role)} = ${address}`
        : sql`select ${other(role)} as address, asset, count(*) as transactions, count(*) filter (where status = 'success') as successful,
          coalesce(sum(amount) filter (where status = 'success'), 0) as amount, min(occurred_at) as first_at, max(occurred_at) as last_at
        from analytics_settlements where ${own(role)} = ${address} and status <> 'open' and ${within(sql, "occurred_at", window)} group by ${other(role)}, asset`
    const rows =
      yield* sql<CounterpartyRow>`select address, sum(transactions)::bigint as transactions, sum(successful)::bigint as successful, min(first_at) as first, max(last_at) as last,
        jsonb_agg(jsonb_build_object('asset', asset, 'transactions', transactions::text, 'amount', amount::text)) as amounts, count(*) over () as total
      from (${pairs}) p group by address order by sum(transactions) desc, address limit ${page.limit} offset ${page.offset}`
        .unprepared
    const [count] =
      rows.length > 0
        ? rows
        : yield* sql<{ total: bigint }>`select count(distinct address) as total from (${pairs}) p`.unprepared
    return Option.some({
      days: window.days,
      items: rows.map((row) => {
        const sums = row.amounts.map(({ amount, asset, transactions }) => ({
          asset,
          amount: BigInt(amount),
          transactions: BigInt(transactions)
        }))
        return {
          address: redaction.show(row.address),
          tx_count: row.transactions.toString(),
          successful_transactions: row.successful.toString(),
          ...amounts.tell(sums, mainAsset(sums, asset)),
          first_activity: row.first.toISOString(),
          latest_activity: row.last.toISOString()
        }
      }),
      pagination: { ...page, total: Number(count!.total) }
    } satisfies typeof Counterparties.Type)
  })

  return { leaderboard, one, counterparties, isKnown }
}
