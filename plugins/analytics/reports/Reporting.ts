// What every report stands on: the database, how things are spelled and shown, and the condition of a window.
import type { Effect } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import { type Dialect, type NeutralNetwork, spellNetwork, spellWord } from "../../../kernel/Dialect.ts"
import type { CatalogRecords } from "../../catalog/contract.ts"
import type { SettlementRow } from "../recording/SettlementRows.ts"
import type { Amounts } from "./amounts.ts"
import type { Window } from "./parameters.ts"
import type { Redaction } from "./Redaction.ts"
import type { SettlementRecord } from "./ReportWire.ts"

export interface Reporting {
  readonly sql: SqlClient.SqlClient
  readonly records: CatalogRecords["Service"]
  readonly isCataloged: (resourceId: bigint) => Effect.Effect<boolean, SqlError.SqlError>
  readonly amounts: Amounts
  readonly redaction: Redaction
  /** The first of `wire.dialects`. */
  readonly dialect: Dialect
}

/** A condition on a column with times, or with UTC days: within the window. */
export const within = (
  sql: SqlClient.SqlClient,
  column: string,
  { since }: Window,
  type: "time" | "day" = "time"
): Statement.Fragment => {
  if (since === undefined) return sql`true`
  const from = since.toISOString()
  return type === "time"
    ? sql`${sql.literal(column)} >= ${from}::timestamptz`
    : sql`${sql.literal(column)} >= ${from.slice(0, 10)}::date`
}

/** A condition on the days of `analytics_standings`, whose day -infinity is all history. */
export const standingDays = (sql: SqlClient.SqlClient, window: Window): Statement.Fragment =>
  window.since === undefined ? sql`day = '-infinity'` : within(sql, "day", window, "day")

export const networkOut = (dialect: Dialect, network: string): string =>
  spellNetwork(network as NeutralNetwork, dialect)

/** A settlement record, as lists and reports tell it (S178–S180). */
export const encodeRecord = (
  { amounts, dialect, redaction }: Reporting,
  row: SettlementRow
): typeof SettlementRecord.Type => ({
  id: row.id,
  occurred_at: row.occurred_at.toISOString(),
  network: networkOut(dialect, row.network),
  scheme: row.scheme,
  ...amounts.name(row.asset),
  payer: redaction.show(row.payer),
  pay_to: redaction.show(row.pay_to),
  max_amount: row.amount_max,
  amount: row.amount,
  fee_stroops: row.fee_stroops.toString(),
  transaction_hash: row.transaction_hash,
  // What is open is never read here.
  status: row.status === "open" ? "unknown" : row.status,
  facilitator_id: row.facilitator_id,
  resource_id: row.resource_id?.toString() ?? null,
  resource_url: row.resource_url,
  error_reason: row.error_reason === null ? null : spellWord(row.error_reason, dialect),
  organic: row.organic
})
