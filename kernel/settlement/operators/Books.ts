// The books of settlements: totals by calendar month, key and asset, and statements that list each settlement. A
// settlement counts in the UTC month of its ledger's close time; without a ledger, in the month of its end or record.
// Amounts are decimal; fees are XLM. Read-only: a month's totals scan its settlements, statements are read in pages.
import { Effect, Option, Stream } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Asset } from "../../config/Network.ts"
import type { SettlementState } from "../state/Settlement.ts"

const pageMax = 1_000
const stroopDecimals = 7

/** Names of states on the pages. */
const stateWords: Readonly<Record<SettlementState, string>> = {
  prepared: "pending",
  submitted: "pending",
  settled: "settled",
  failed: "failed",
  expired: "expired",
  unresolved: "unresolved"
}

/** Atomic units as a decimal number. */
export const decimalOf = (units: bigint, decimals: number): string => {
  const digits = (units < 0n ? -units : units).toString().padStart(decimals + 1, "0")
  const [whole, part] = [digits.slice(0, digits.length - decimals), digits.slice(digits.length - decimals)]
  return `${units < 0n ? "-" : ""}${whole}${part === "" ? "" : `.${part}`}`
}

type Assets = ReadonlyMap<string, Asset>

/** The amount of an unlisted asset is in atomic units. */
const amountIn = (assets: Assets, asset: string, units: string): string =>
  decimalOf(BigInt(units), assets.get(asset)?.decimals ?? 0)

interface MonthTotal {
  /** `YYYY-MM`. */
  readonly month: string
  /** Principal of the caller. */
  readonly key: string
  /** The symbol, or the contract of an unlisted asset. */
  readonly asset: string
  readonly settled: number
  /** Sum of the moved amounts, in the asset. */
  readonly amount: string
  /** Sum of the fees that the ledger charged, including those of failed settlements. */
  readonly fees_xlm: string
}

const at = "coalesce(closed_at, resolved_at, recorded_at)"

/** Totals of the last months, newest first. */
export const monthTotals = (assets: Assets, months: number) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql<{
      month: string
      key: string
      asset: string
      settled: number
      moved: string
      fees: string
    }>`select to_char(${sql.literal(at)} at time zone 'UTC', 'YYYY-MM') as month, principal as key, asset,
        (count(*) filter (where state = 'settled'))::int as settled,
        coalesce(sum(moved) filter (where state = 'settled'), 0)::text as moved,
        coalesce(sum(fee_charged_stroops), 0)::text as fees
      from kernel_settlements
      where ${sql.literal(at)} >= (date_trunc('month', now() at time zone 'UTC')
        - make_interval(months => ${months - 1}::int)) at time zone 'UTC'
      group by 1, 2, 3 order by 1 desc, 2, 3`
    return rows.map(({ asset, fees, key, month, moved, settled }): MonthTotal => ({
      month,
      key,
      asset: assets.get(asset)?.symbol ?? asset,
      settled,
      amount: amountIn(assets, asset, moved),
      fees_xlm: decimalOf(BigInt(fees), stroopDecimals)
    }))
  })

interface Row {
  readonly id: string
  readonly state: SettlementState
  readonly recorded_at: Date
  readonly position: bigint
  readonly closed_at: Date | null
  readonly ledger: bigint | null
  readonly principal: string
  readonly payer: string
  readonly pay_to: string
  readonly scheme: string
  readonly asset: string
  readonly amount: string
  readonly moved: string | null
  readonly fee: bigint | null
  readonly transaction: string
  readonly resource_url: string | null
  readonly reason: string | null
}

export type StatementLine = Readonly<Record<string, string | number | null>>

const lineOf =
  (assets: Assets) =>
  (row: Row): StatementLine => ({
    settlement: row.id,
    status: stateWords[row.state],
    recorded_at: row.recorded_at.toISOString(),
    ledger: row.ledger === null ? null : Number(row.ledger),
    closed_at: row.closed_at?.toISOString() ?? null,
    key: row.principal,
    payer: row.payer,
    pay_to: row.pay_to,
    scheme: row.scheme,
    asset: assets.get(row.asset)?.symbol ?? row.asset,
    amount: amountIn(assets, row.asset, row.moved ?? row.amount),
    fee_xlm: row.fee === null ? null : decimalOf(row.fee, stroopDecimals),
    transaction: row.transaction,
    resource_url: row.resource_url,
    reason: row.reason
  })

interface Position {
  readonly position: bigint
  readonly id: string
}

/** All settlements of a month, for one key or for all keys, in the order of recording, as a stream of pages. */
export const statementPages = (
  sql: SqlClient.SqlClient,
  assets: Assets,
  { key, month }: { readonly month: string; readonly key: string | undefined }
): Stream.Stream<ReadonlyArray<StatementLine>, SqlError.SqlError> =>
  Stream.paginate({ position: 0n, id: "00000000-0000-0000-0000-000000000000" } as Position, (after) =>
    Effect.map(
      sql<Row>`select id::text as id, state, recorded_at, (extract(epoch from recorded_at) * 1000000)::int8 as position,
          closed_at, ledger, principal, payer, pay_to, scheme, asset, amount::text as amount, moved::text as moved,
          fee_charged_stroops as fee, coalesce(ended_by, inner_hash) as transaction, resource_url, reason
        from kernel_settlements
        where ${sql.literal(at)} >= ${`${month}-01`}::date::timestamp at time zone 'UTC'
          and ${sql.literal(at)} < (${`${month}-01`}::date + interval '1 month') at time zone 'UTC'
          ${key === undefined ? sql`` : sql`and principal = ${key}`}
          and ((extract(epoch from recorded_at) * 1000000)::int8, id) > (${after.position}::int8, ${after.id}::uuid)
        order by (extract(epoch from recorded_at) * 1000000)::int8, id limit ${pageMax}`,
      (rows) => {
        const last = rows.at(-1)
        const next =
          rows.length < pageMax || last === undefined
            ? Option.none<Position>()
            : Option.some({ position: last.position, id: last.id })
        return [[rows.map(lineOf(assets))], next] as const
      }
    )
  )
