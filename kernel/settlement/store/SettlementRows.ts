// Encoding of settlement rows: it converts the database's snake case, null, Date and decimal text to this program's
// forms.
import { Option, Result } from "effect"
import { Base64 } from "effect/encoding"
import type { Reservation } from "../../budget/Reservation.ts"
import type { NetworkId } from "../../config/Network.ts"
import type { Attempt, SettlementState } from "../state/Settlement.ts"
import type {
  AdoptedSettlement,
  Delivery,
  NewAttempt,
  NewSettlement,
  OpenRecord,
  SettlementRecord,
  SettlementTerms
} from "./Settlements.ts"

/** The columns a record is read from, as SQL. */
export const recordColumns = `id::text as id, network, scheme, authorization_key, authorization_expires_ledger,
  fingerprint, principal, identifier, payer, pay_to, asset, amount::text as amount, inner_hash,
  case when state = 'settled' then coalesce(ended_by, inner_hash)
    when state = 'failed' and ended_by is null then null else inner_hash end as transaction,
  channel, state, recorded_at, deadline_at, resolved_at, ledger,
  moved::text as moved, fee_charged_stroops, reason, reason_message, traceparent,
  closed_at, attempt_count, resource_url, confirmations,
  watch_after is not null as watched, delivered_key, case when delivered_at is null then 'undelivered'
    when delivered_by is null or confirmed_at is not null then 'confirmed'
    when exists (select 1 from kernel_processes as giving where giving.id = delivered_by) then 'given'
    else 'undelivered' end as delivery`

export interface SettlementRow {
  readonly id: string
  readonly network: string
  readonly scheme: string
  readonly authorization_key: string
  readonly authorization_expires_ledger: bigint
  readonly fingerprint: string
  readonly principal: string
  readonly identifier: string | null
  readonly payer: string
  readonly pay_to: string
  readonly asset: string
  readonly amount: string
  readonly inner_hash: string
  readonly transaction: string | null
  readonly channel: string
  readonly state: string
  readonly recorded_at: Date
  readonly deadline_at: Date
  readonly resolved_at: Date | null
  readonly ledger: bigint | null
  readonly moved: string | null
  readonly fee_charged_stroops: bigint | null
  readonly reason: string | null
  readonly reason_message: string | null
  readonly delivery: Delivery
  readonly delivered_key: string | null
  readonly traceparent: string | null
  readonly closed_at: Date | null
  readonly attempt_count: number
  readonly resource_url: string | null
  readonly confirmations: number | null
  readonly watched: boolean
}

export const toRecord = (row: SettlementRow): SettlementRecord => ({
  id: row.id,
  network: row.network as NetworkId,
  scheme: row.scheme,
  authorizationKey: row.authorization_key,
  authorizationExpiresLedger: Number(row.authorization_expires_ledger),
  fingerprint: row.fingerprint,
  principal: row.principal,
  identifier: Option.fromNullOr(row.identifier),
  payer: row.payer,
  payTo: row.pay_to,
  asset: row.asset,
  amount: BigInt(row.amount),
  innerHash: row.inner_hash,
  transaction: Option.fromNullOr(row.transaction),
  channel: row.channel,
  state: row.state as SettlementState,
  recordedAt: row.recorded_at,
  deadlineAt: row.deadline_at,
  resolvedAt: Option.fromNullOr(row.resolved_at),
  ledger: Option.map(Option.fromNullOr(row.ledger), Number),
  amountTransferred: Option.map(Option.fromNullOr(row.moved), BigInt),
  feeChargedStroops: Option.fromNullOr(row.fee_charged_stroops),
  reason: Option.fromNullOr(row.reason),
  reasonMessage: Option.fromNullOr(row.reason_message),
  delivery: row.delivery,
  deliveredKey: row.delivered_key ?? undefined,
  traceparent: row.traceparent ?? undefined,
  closedAt: row.closed_at ?? undefined,
  attemptCount: row.attempt_count,
  resourceUrl: row.resource_url ?? undefined,
  confirmations: (row.confirmations ?? undefined) as SettlementRecord["confirmations"],
  isWatched: row.watched
})

export interface OpenRow extends SettlementRow {
  readonly channel_sequence: bigint
  readonly recorded_ledger: bigint
  readonly sponsor: string
  readonly resource_fee_stroops: bigint
  readonly channel_held: boolean
}

export interface AttemptRow {
  readonly settlement: string
  readonly number: number
  readonly kind: "payment" | "cancel"
  readonly inner_hash: string
  readonly outer_hash: string
  readonly envelope: Uint8Array
  readonly inclusion_stroops: bigint
  readonly recorded_ledger: bigint
  readonly sent_status: Attempt["sentStatus"] | null
  readonly sent_ledger: bigint | null
  readonly sent_code: string | null
  readonly taken: boolean
}

const toAttempt = (row: AttemptRow): Attempt => ({
  number: row.number,
  kind: row.kind,
  innerHash: row.inner_hash,
  outerHash: row.outer_hash,
  envelope: Base64.encode(row.envelope),
  inclusionStroops: row.inclusion_stroops,
  recordedLedger: Number(row.recorded_ledger),
  sentStatus: row.sent_status ?? undefined,
  sentLedger: row.sent_ledger === null ? undefined : Number(row.sent_ledger),
  sentCode: row.sent_code ?? undefined,
  taken: row.taken
})

export const toOpen = (row: OpenRow, attempts: ReadonlyArray<AttemptRow>): OpenRecord => ({
  ...toRecord(row),
  channelSequence: row.channel_sequence,
  channelHeld: row.channel_held,
  recordedLedger: Number(row.recorded_ledger),
  sponsor: row.sponsor,
  resourceFeeStroops: row.resource_fee_stroops,
  attemptCount: row.attempt_count,
  attempts: attempts.filter(({ settlement }) => settlement === row.id).map(toAttempt)
})

const maybeDate = (millis: number | undefined): Date | null => (millis === undefined ? null : new Date(millis))

const bytesOf = (envelope: string): Uint8Array => Result.getOrThrow(Base64.decode(envelope))

/** Spreads settlements over the shards of a day's total. */
export const spreadOf = (id: string): number => Number.parseInt(id.slice(0, 8), 16)

/** The row of an attempt under its number. */
export const attemptRow = (id: string, number: number, attempt: NewAttempt) => ({
  settlement: id,
  number,
  kind: attempt.kind,
  inner_hash: attempt.innerHash,
  outer_hash: attempt.outerHash,
  envelope: bytesOf(attempt.envelope),
  inclusion_stroops: attempt.inclusionStroops,
  recorded_ledger: attempt.recordedLedger
})

/** The columns that a new settlement and an adopted one share. */
const termsRow = (settlement: SettlementTerms, { day, keyed, shard, stroops }: Reservation) => ({
  id: settlement.id,
  network: settlement.network,
  scheme: settlement.scheme,
  authorization_key: settlement.authorizationKey,
  authorization_expires_ledger: settlement.authorizationExpiresLedger,
  fingerprint: settlement.fingerprint,
  principal: settlement.principal.owner,
  budget_principal: settlement.principal.source,
  identifier: Option.getOrNull(settlement.identifier),
  payer: settlement.payer,
  pay_to: settlement.payTo,
  asset: settlement.asset,
  amount: settlement.amount.toString(),
  resource_url: Option.getOrNull(settlement.resourceUrl),
  inner_hash: settlement.innerHash,
  sponsor: settlement.sponsor,
  resource_fee_stroops: settlement.resourceFeeStroops,
  budget_day: day,
  budget_stroops: stroops,
  budget_shard: shard,
  budget_keyed: keyed
})

/** The row of a newly recorded settlement. */
export const bornRow = (settlement: NewSettlement, reservation: Reservation) => ({
  ...termsRow(settlement, reservation),
  amount_max: settlement.amountMax.toString(),
  channel: settlement.channel.address,
  channel_sequence: settlement.channel.sequence,
  recorded_ledger: settlement.recordedLedger,
  deadline_at: new Date(settlement.deadlineAt),
  asked_at: maybeDate(settlement.steps?.askedAt),
  verified_at: maybeDate(settlement.steps?.verifiedAt),
  leased_at: maybeDate(settlement.steps?.leasedAt),
  traceparent: settlement.traceparent ?? null
})

/** The row of a settlement that is recorded and ended in one statement. */
export const adoptedRow = (settlement: AdoptedSettlement, charge: Reservation) => ({
  ...termsRow(settlement, charge),
  amount_max: settlement.amount.toString(),
  channel: settlement.channel,
  channel_sequence: settlement.channelSequence,
  recorded_ledger: settlement.ledger,
  deadline_at: new Date(settlement.closedAtSeconds * 1_000),
  state: "settled",
  ended_by: settlement.innerHash,
  resolved_at: new Date(settlement.closedAtSeconds * 1_000),
  ledger: settlement.ledger,
  closed_at: new Date(settlement.closedAtSeconds * 1_000),
  moved: settlement.amountTransferred.toString(),
  confirmations: settlement.confirmations ?? null,
  fee_charged_stroops: settlement.feeChargedStroops
})
