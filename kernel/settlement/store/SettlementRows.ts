// Encoding of settlement rows: it converts the database's snake case, null, Date and decimal text to this program's
// forms.
import { Option, Result } from "effect"
import { Base64 } from "effect/encoding"
import type { Reservation } from "../../budget/Reservation.ts"
import type { Row } from "../../database/table.ts"
import type { Attempt } from "../state/Settlement.ts"
import type { AdoptedSettlement, NewAttempt, NewSettlement, OpenRecord, SettlementTerms } from "./Settlements.ts"
import { recordColumns, type SettledAction } from "./recordColumns.ts"

export interface OpenRow extends Row {
  readonly id: string
  readonly attempt_count: number
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
  ...recordColumns.decode(row),
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

/** The column of an action, as a JSON value. */
export const actionOf = ({ books }: Pick<NewSettlement, "books">): SettledAction | null =>
  books === undefined ? null : { kind: books.kind, channel: books.channel, totals: books.totals }

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
  traceparent: settlement.traceparent ?? null,
  action: settlement.books === undefined ? null : JSON.stringify(actionOf(settlement))
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
