// Payers and recipients: leaderboards by amount with their concentration, one participant's totals, and its
// counterparties. Sums come from rollups by day. A leaderboard ranks one asset: the requested one, otherwise the one
// with the most settlements (S157–S161).
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type AssetSum, mainAsset } from "./Amounts.ts"
import { leaderboardDays, within } from "./conditions.ts"
import type { Page, Window } from "./parameters.ts"
import { type RankEntry, rank, type RankPage, type Role } from "./ranking.ts"
import type { Counterparties, Leaderboard, Participant } from "./ReportWire.ts"
import { Spelling } from "./Spelling.ts"

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

/** A page of a leaderboard: after the previous page's cursor, otherwise after `offset` rows. */
interface BoardPage extends Page {
  readonly cursor?: string | undefined
  /** Minimum amount, in atomic units of the asset that the leaderboard ranks. */
  readonly min?: string | undefined
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
/** A share, 0 to 1. */
const shareOf = (part: bigint, whole: bigint): number =>
  whole === 0n ? 0 : Number((part * sharePlaces) / whole) / Number(sharePlaces)

const add = (items: ReadonlyArray<bigint>): bigint => items.reduce((sum, item) => sum + item, 0n)
const sorted = (items: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(items)].sort()
const sumsOf = (parts: ReadonlyArray<PartRow>): ReadonlyArray<AssetSum> =>
  parts.map(({ amount, asset, transactions }) => ({ asset, transactions, amount: BigInt(amount) }))

const ownColumn = (role: Role) => (role === "buyer" ? "payer" : "pay_to")
const otherColumn = (role: Role) => (role === "buyer" ? "pay_to" : "payer")

/** The rollup's rows of some addresses. */
const partsOf = Effect.fnUntraced(function* (role: Role, addresses: ReadonlyArray<string>, window: Window) {
  const sql = yield* SqlClient.SqlClient
  if (addresses.length === 0) return []
  return yield* sql<PartRow>`select address, asset, networks, schemes, facilitators, transactions, successful, failed,
      amount::text as amount, first_at as first, last_at as last
    from analytics_standings where role = ${role} and ${leaderboardDays(sql, window)}
      and address in (select value from jsonb_array_elements_text(${JSON.stringify(addresses)}::jsonb))`.unprepared
})

const counterpartyCounts = Effect.fnUntraced(function* (role: Role, addresses: ReadonlyArray<string>, window: Window) {
  const sql = yield* SqlClient.SqlClient
  if (addresses.length === 0) return new Map<string, bigint>()
  const rows = yield* sql<{ address: string; count: bigint }>`select address, sum(members)::bigint as count
    from analytics_partner_days where role = ${role} and ${within(sql, "last_day", window, "day")}
      and address in (select value from jsonb_array_elements_text(${JSON.stringify(addresses)}::jsonb))
    group by address`.unprepared
  return new Map(rows.map(({ address, count }) => [address, count]))
})

const assetTotals = Effect.fnUntraced(function* (window: Window) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ asset: string; transactions: bigint; amount: string }>`select asset,
      sum(transactions)::bigint as transactions, sum(amount)::text as amount
    from analytics_totals where width = 'day' and ${within(sql, "starts_at", window)} group by asset`.unprepared
  return rows.map(({ amount, ...row }): AssetSum => ({ ...row, amount: BigInt(amount) }))
})

const membersOf = Effect.fnUntraced(function* (role: Role, window: Window) {
  const sql = yield* SqlClient.SqlClient
  const [count] = yield* sql<{ total: bigint }>`select coalesce(sum(members), 0)::bigint as total
    from analytics_member_days where kind = ${role} and ${within(sql, "last_day", window, "day")}`.unprepared
  return Number(count!.total)
})

/** The page's items, in its order. */
const itemsOf = (
  { amounts, network, redaction }: Spelling["Service"],
  addresses: ReadonlyArray<string>,
  parts: ReadonlyArray<PartRow>,
  counterparties: ReadonlyMap<string, bigint>,
  main: string | undefined
): (typeof Leaderboard.Type)["items"] => {
  const byAddress = Map.groupBy(parts, ({ address }) => address)
  return addresses.flatMap((address) => {
    const own = byAddress.get(address) ?? []
    if (own.length === 0) return []
    return [
      {
        address: redaction.show(address),
        tx_count: add(own.map(({ transactions }) => transactions)).toString(),
        successful_transactions: add(own.map(({ successful }) => successful)).toString(),
        ...amounts.report(sumsOf(own), main),
        unique_counterparties: (counterparties.get(address) ?? 0n).toString(),
        networks: sorted(own.flatMap(({ networks }) => networks.map(network))),
        facilitators: sorted(own.flatMap(({ facilitators }) => facilitators)),
        latest_activity: new Date(Math.max(...own.map(({ last }) => last.getTime()))).toISOString()
      }
    ]
  })
}

/** A page's last place as a cursor; its address has the form that reports show. */
const cursorOf = ({ redaction }: Spelling["Service"], { address, amount, transactions }: RankEntry): string =>
  `${amount}_${transactions}_${redaction.show(address)}`

/** The place of a cursor; None if its address is an unknown pseudonym. */
const placeOf = Effect.fnUntraced(function* ({ redaction }: Spelling["Service"], cursor: string) {
  const [amount = "0", transactions = "0", ...shown] = cursor.split("_")
  return Option.map(yield* redaction.resolve(shown.join("_")), (address): RankEntry => ({
    address,
    amount,
    transactions
  }))
})

const leaderboard = Effect.fn("Participants.leaderboard")(function* (
  role: Role,
  window: Window,
  page: BoardPage,
  asset: string | undefined
) {
  const spelling = yield* Spelling
  const all = yield* assetTotals(window)
  const main = mainAsset(all, asset)
  const { cursor, limit, min, offset } = page
  const after = cursor === undefined ? Option.none<RankEntry>() : yield* placeOf(spelling, cursor)
  const rankPage: RankPage = { limit: limit + 1, offset, min, after: Option.getOrUndefined(after) }
  const isUnknown = cursor !== undefined && Option.isNone(after)
  const { entries, top } = isUnknown ? { entries: [], top: [] } : yield* rank(role, window, rankPage, main)
  const addresses = entries.slice(0, limit).map(({ address }) => address)
  const total = yield* membersOf(role, window)
  const parts = yield* partsOf(role, addresses, window)
  const counterparties = yield* counterpartyCounts(role, addresses, window)
  const whole = all.find((sum) => sum.asset === main)?.amount ?? 0n
  const topShare = (first: number) => shareOf(add(top.slice(0, first)), whole)
  return {
    days: window.days,
    items: itemsOf(spelling, addresses, parts, counterparties, main),
    pagination: {
      limit,
      offset,
      total,
      cursor: entries.length > limit ? cursorOf(spelling, entries[limit - 1]!) : null
    },
    concentration: {
      total_transactions: add(all.map(({ transactions }) => transactions)).toString(),
      ...spelling.amounts.report(all, main),
      top1_share: topShare(1),
      top5_share: topShare(5),
      top10_share: topShare(10)
    }
  } satisfies typeof Leaderboard.Type
})

const isKnown = (role: Role, address: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql`select 1 from analytics_members where kind = ${role} and name = ${address}`,
      (rows) => rows.length > 0
    )
  )

/** None for an address that never had the role. */
const one = Effect.fn("Participants.one")(function* (
  role: Role,
  address: string,
  window: Window,
  asset: string | undefined
) {
  if (!(yield* isKnown(role, address))) return Option.none<typeof Participant.Type>()
  const spelling = yield* Spelling
  const parts = yield* partsOf(role, [address], window)
  const counterparties = yield* counterpartyCounts(role, [address], window)
  const [transactions, successful, failed] = [
    add(parts.map((part) => part.transactions)),
    add(parts.map((part) => part.successful)),
    add(parts.map((part) => part.failed))
  ]
  const times = (of: (part: PartRow) => Date) => parts.map(of).sort((a, b) => a.getTime() - b.getTime())
  const { total_amount, ...reported } = spelling.amounts.report(sumsOf(parts), mainAsset(sumsOf(parts), asset))
  return Option.some({
    address: spelling.redaction.show(address),
    days: window.days,
    total_transactions: transactions.toString(),
    successful_transactions: successful.toString(),
    failed_transactions: failed.toString(),
    unknown_transactions: (transactions - successful - failed).toString(),
    total_amount,
    successful_amount: total_amount,
    ...reported,
    unique_counterparties: (counterparties.get(address) ?? 0n).toString(),
    schemes: sorted(parts.flatMap(({ schemes }) => schemes)),
    networks: sorted(parts.flatMap(({ networks }) => networks.map(spelling.network))),
    facilitators: sorted(parts.flatMap(({ facilitators }) => facilitators)),
    first_activity: times(({ first }) => first)[0]?.toISOString() ?? null,
    latest_activity:
      times(({ last }) => last)
        .at(-1)
        ?.toISOString() ?? null
  } satisfies typeof Participant.Type)
})

interface Counterparty {
  readonly role: Role
  readonly address: string
  readonly window: Window
}

/** Counterparties of an address, by asset: for all history from the pairs, for a window from the settlements. */
const pairsOf = (sql: SqlClient.SqlClient, { address, role, window }: Counterparty) => {
  const [own, other] = [sql.literal(ownColumn(role)), sql.literal(otherColumn(role))]
  return window.since === undefined
    ? sql`select ${other} as address, asset, transactions, successful, amount, first_at, last_at from analytics_pairs
        where ${own} = ${address}`
    : sql`select ${other} as address, asset, count(*) as transactions,
          count(*) filter (where status = 'success') as successful,
          coalesce(sum(amount) filter (where status = 'success'), 0) as amount,
          min(occurred_at) as first_at, max(occurred_at) as last_at
        from analytics_settlements
        where ${own} = ${address} and status <> 'open' and ${within(sql, "occurred_at", window)}
        group by ${other}, asset`
}

/** Counterparties of an address in its role, the most frequent first. */
const counterparties = Effect.fn("Participants.counterparties")(function* (
  role: Role,
  address: string,
  window: Window,
  page: Page,
  asset: string | undefined
) {
  const sql = yield* SqlClient.SqlClient
  const { amounts, redaction } = yield* Spelling
  if (!(yield* isKnown(role, address))) return Option.none<typeof Counterparties.Type>()
  const pairs = pairsOf(sql, { role, address, window })
  const rows = yield* sql<CounterpartyRow>`select address, sum(transactions)::bigint as transactions,
      sum(successful)::bigint as successful, min(first_at) as first, max(last_at) as last,
      jsonb_agg(jsonb_build_object('asset', asset, 'transactions', transactions::text,
        'amount', amount::text)) as amounts,
      count(*) over () as total
    from (${pairs}) p group by address
    order by sum(transactions) desc, address limit ${page.limit} offset ${page.offset}`.unprepared
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
        ...amounts.report(sums, mainAsset(sums, asset)),
        first_activity: row.first.toISOString(),
        latest_activity: row.last.toISOString()
      }
    }),
    pagination: { ...page, total: Number(count!.total) }
  } satisfies typeof Counterparties.Type)
})

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

export class Participants extends Context.Service<
  Participants,
  {
    readonly leaderboard: (
      role: Role,
      window: Window,
      page: BoardPage,
      asset: string | undefined
    ) => Sql<typeof Leaderboard.Type>
    readonly isKnown: (role: Role, address: string) => Sql<boolean>
    /** None for an address that never had the role. */
    readonly one: (
      role: Role,
      address: string,
      window: Window,
      asset: string | undefined
    ) => Sql<Option.Option<typeof Participant.Type>>
    /** Counterparties of an address in its role, the most frequent first; None as for `one`. */
    readonly counterparties: (
      role: Role,
      address: string,
      window: Window,
      page: Page,
      asset: string | undefined
    ) => Sql<Option.Option<typeof Counterparties.Type>>
  }
>()("tollkeeper/analytics/Participants") {
  static readonly layer = Layer.effect(
    Participants,
    Effect.map(Effect.context<SqlClient.SqlClient | Spelling>(), (services) =>
      Participants.of({
        leaderboard: (...asked) => Effect.provideContext(leaderboard(...asked), services),
        isKnown: (...asked) => Effect.provideContext(isKnown(...asked), services),
        one: (...asked) => Effect.provideContext(one(...asked), services),
        counterparties: (...asked) => Effect.provideContext(counterparties(...asked), services)
      })
    )
  )
}
