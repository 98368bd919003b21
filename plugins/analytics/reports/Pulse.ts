// The money that moves in a range, compared with the range of equal length before it: sums, a figure for each hour or
// day, shares by scheme, asset and network, and the reasons of failures; optionally for one asset only. It reads
// rollups, so its cost depends on the number of buckets and not on the length of the history. A bucket before the first
// settlement has no figure, as opposed to zero.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { Pulse as PulseWire } from "./ListWire.ts"
import { mainAsset } from "./Amounts.ts"
import { Spelling } from "./Spelling.ts"

const millisPer = { hour: 3_600_000, day: 86_400_000 } as const
type Bucket = keyof typeof millisPer

/** Longer ranges use days. */
const hourlyMillisMax = 8 * millisPer.day
/** Buckets of the longest range: a little more than two years of days. */
const bucketsMax = 800
const reasonsMax = 50

/** Whole buckets, in milliseconds since the epoch; `to` is excluded. */
interface Range {
  readonly from: number
  readonly to: number
  readonly bucket: Bucket
}

/** The whole buckets that cover a range; a range beyond the limit keeps its end. */
export const rangeOf = (from: number, to: number): Range => {
  const bucket = to - from <= hourlyMillisMax ? "hour" : "day"
  const width = millisPer[bucket]
  const end = Math.max(Math.ceil(to / width), Math.floor(from / width) + 1)
  return { from: Math.max(Math.floor(from / width), end - bucketsMax) * width, to: end * width, bucket }
}

interface Row {
  readonly starts_at: Date
  readonly network: string
  readonly scheme: string
  readonly asset: string
  readonly status: "success" | "failed" | "unknown"
  readonly transactions: bigint
  readonly amount: string
}

const sumOf = (rows: ReadonlyArray<Row>, asset: string | undefined) => {
  const count = (status: Row["status"]) =>
    Number(rows.reduce((sum, row) => (row.status === status ? sum + row.transactions : sum), 0n))
  return {
    settled: count("success"),
    failed: count("failed"),
    pending: count("unknown"),
    amount: rows
      .reduce((sum, row) => (row.status === "success" && row.asset === asset ? sum + BigInt(row.amount) : sum), 0n)
      .toString()
  }
}

const grouped = <Key>(rows: ReadonlyArray<Row>, keyOf: (row: Row) => Key): ReadonlyMap<Key, ReadonlyArray<Row>> => {
  const groups = new Map<Key, Array<Row>>()
  for (const row of rows) {
    const key = keyOf(row)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [row])
    else group.push(row)
  }
  return groups
}

/** Shares of a range by kind, the largest first. */
const sharesOf = (spelling: Spelling["Service"], rows: ReadonlyArray<Row>, main: string | undefined) =>
  (["scheme", "asset", "network"] as const).flatMap((kind) =>
    [...grouped(rows, (row) => row[kind])]
      .map(([key, own]) => {
        const asset = kind === "asset" ? key : main
        const sum = sumOf(own, asset)
        return {
          kind,
          key: kind === "network" ? spelling.network(key) : key,
          ...spelling.amounts.name(asset),
          settlements: sum.settled + sum.failed + sum.pending,
          settled: sum.settled,
          amount: sum.amount
        }
      })
      .sort((a, b) => b.settlements - a.settlements)
  )

const ofAsset = (sql: SqlClient.SqlClient, chosen: string | undefined): Statement.Fragment =>
  chosen === undefined ? sql`true` : sql`asset = ${chosen}`

const readReasons = Effect.fnUntraced(function* ({ from, to }: Range, chosen: string | undefined) {
  const sql = yield* SqlClient.SqlClient
  const { word } = yield* Spelling
  const day = (millis: number) => new Date(millis).toISOString().slice(0, 10)
  const rows = yield* sql<{ reason: string; failed: bigint; pending: bigint }>`select reason,
      coalesce(sum(transactions) filter (where status = 'failed'), 0)::bigint as failed,
      coalesce(sum(transactions) filter (where status = 'unknown'), 0)::bigint as pending
    from analytics_reasons where day >= ${day(from)}::date and day <= ${day(to - 1)}::date
      and ${ofAsset(sql, chosen)}
    group by reason having sum(transactions) > 0 order by sum(transactions) desc, reason limit ${reasonsMax}`
  return rows.map(({ failed, pending, reason }) => ({
    reason: word(reason),
    failed: Number(failed),
    pending: Number(pending)
  }))
})

const pulse = Effect.fn("Pulse.of")(function* (range: Range, chosen: string | undefined) {
  const sql = yield* SqlClient.SqlClient
  const spelling = yield* Spelling
  const { bucket, from, to } = range
  const iso = (millis: number) => new Date(millis).toISOString()
  const earlier = from - (to - from)
  const rows = yield* sql<Row>`select starts_at, network, scheme, asset, status, transactions, amount::text as amount
    from analytics_totals where width = ${bucket} and transactions > 0
      and starts_at >= ${iso(earlier)}::timestamptz and starts_at < ${iso(to)}::timestamptz
      and ${ofAsset(sql, chosen)}`.unprepared
  const [begun] = yield* sql<{ first: Date | null }>`select min(starts_at) as first from analytics_totals
    where width = ${bucket}`
  const first = begun?.first?.getTime() ?? Number.POSITIVE_INFINITY
  const present = rows.filter(({ starts_at }) => starts_at.getTime() >= from)
  const main = mainAsset(
    present.map(({ amount, asset, transactions }) => ({ asset, transactions, amount: BigInt(amount) })),
    chosen
  )
  const byStart = grouped(present, ({ starts_at }) => starts_at.getTime())
  const width = millisPer[bucket]
  return {
    from: iso(from),
    to: iso(to),
    bucket,
    ...spelling.amounts.name(main),
    now: sumOf(present, main),
    before:
      first <= earlier
        ? sumOf(
            rows.filter(({ starts_at }) => starts_at.getTime() < from),
            main
          )
        : null,
    series: Array.from({ length: (to - from) / width }, (_, index) => {
      const at = from + index * width
      return { at: iso(at), recorded: at >= first, ...sumOf(byStart.get(at) ?? [], main) }
    }),
    shares: sharesOf(spelling, present, main),
    reasons: yield* readReasons(range, chosen)
  } satisfies typeof PulseWire.Type
})

export class Pulse extends Context.Service<
  Pulse,
  {
    readonly of: (range: Range, asset: string | undefined) => Effect.Effect<typeof PulseWire.Type, SqlError.SqlError>
  }
>()("tollkeeper/analytics/Pulse") {
  static readonly layer = Layer.effect(
    Pulse,
    Effect.map(Effect.context<SqlClient.SqlClient | Spelling>(), (services) =>
      Pulse.of({ of: (range, asset) => Effect.provideContext(pulse(range, asset), services) })
    )
  )
}
