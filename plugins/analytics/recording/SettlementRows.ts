// Settlements of analytics to and from the database: null, Date and decimal text become internal types here.
import type { SettlementFact, Status } from "./SettlementFact.ts"

/** The columns of a settlement, as SQL. */
export const settlementColumns = `id::text as id, occurred_at, due_at, network, scheme, asset, payer, pay_to,
  amount_max::text as amount_max, amount_meant::text as amount_meant, amount::text as amount, fee_stroops,
  transaction_hash, status, facilitator_id, resource_id, resource_origin, resource_url, error_reason, organic,
  principal`

/** The columns of `toRow` as JSON, with their types. */
export const recordsetColumns = `id uuid, occurred_at timestamptz, due_at timestamptz, network text, scheme text,
  asset text, payer text, pay_to text, amount_max numeric, amount_meant numeric, amount numeric, fee_stroops bigint,
  transaction_hash text, status text, facilitator_id text, resource_id bigint, resource_origin text,
  resource_url text, error_reason text, organic boolean, principal text`

export interface SettlementRow {
  readonly id: string
  readonly occurred_at: Date
  readonly due_at: Date
  readonly network: string
  readonly scheme: string
  readonly asset: string
  readonly payer: string
  readonly pay_to: string
  readonly amount_max: string
  readonly amount_meant: string
  readonly amount: string | null
  readonly fee_stroops: bigint
  readonly transaction_hash: string
  readonly status: Status
  readonly facilitator_id: string
  readonly resource_id: bigint | null
  readonly resource_origin: string | null
  readonly resource_url: string | null
  readonly error_reason: string | null
  readonly organic: boolean
  readonly principal: string | null
}

export const toFact = (row: SettlementRow): SettlementFact => ({
  id: row.id,
  occurredAt: row.occurred_at,
  dueAt: row.due_at,
  network: row.network,
  scheme: row.scheme,
  asset: row.asset,
  payer: row.payer,
  payTo: row.pay_to,
  amountMax: BigInt(row.amount_max),
  amountMeant: BigInt(row.amount_meant),
  amount: row.amount === null ? undefined : BigInt(row.amount),
  feeStroops: row.fee_stroops,
  transactionHash: row.transaction_hash,
  status: row.status,
  facilitatorId: row.facilitator_id,
  resourceId: row.resource_id ?? undefined,
  resourceOrigin: row.resource_origin,
  resourceUrl: row.resource_url,
  errorReason: row.error_reason,
  organic: row.organic,
  principal: row.principal
})

/** A row as JSON: big numbers as text. */
export const toRow = (fact: SettlementFact) => ({
  id: fact.id,
  occurred_at: fact.occurredAt,
  due_at: fact.dueAt,
  network: fact.network,
  scheme: fact.scheme,
  asset: fact.asset,
  payer: fact.payer,
  pay_to: fact.payTo,
  amount_max: fact.amountMax.toString(),
  amount_meant: fact.amountMeant.toString(),
  amount: fact.amount?.toString() ?? null,
  fee_stroops: fact.feeStroops.toString(),
  transaction_hash: fact.transactionHash,
  status: fact.status,
  facilitator_id: fact.facilitatorId,
  resource_id: fact.resourceId?.toString() ?? null,
  resource_origin: fact.resourceOrigin,
  resource_url: fact.resourceUrl,
  error_reason: fact.errorReason,
  organic: fact.organic,
  principal: fact.principal
})
