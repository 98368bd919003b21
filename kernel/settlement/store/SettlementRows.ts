// Encoding of settlement rows: it converts the database's snake case, null, Date and decimal text to this program's
// forms.
import { Option, Result } from "effect"
import { Base64 } from "effect/encoding"
import type { Reservation } from "../../budget/Reservation.ts"
import {
  as,
  bytes,
  columns,
  computed,
  count,
  flag,
  optional,
  type Row,
  text,
  uuid,
  whole
} from "../../database/table.ts"
import type { Attempt } from "../state/Settlement.ts"
import type { AdoptedSettlement, NewAttempt, NewSettlement, OpenRecord, SettlementTerms } from "./Settlements.ts"
import { recordColumns, type SettledAction } from "./recordColumns.ts"

/** The further columns of an open settlement; its record has the others. */
export const openColumns = columns({
  channelSequence: whole,
  channelHeld: computed(
    "exists (select 1 from kernel_channels as held where held.settlement = kernel_settlements.id)",
    flag
  ),
  recordedLedger: count,
  sponsor: text,
  resourceFeeStroops: whole,
  attemptCount: count
})

/** The columns of an attempt, with its settlement. */
export const attemptColumns = columns({
  settlement: uuid,
  number: count,
  kind: as<Attempt["kind"]>(text),
  innerHash: text,
  outerHash: text,
  envelope: bytes,
  inclusionStroops: whole,
  recordedLedger: count,
  sentStatus: optional(as<NonNullable<Attempt["sentStatus"]>>(text)),
  sentLedger: optional(count),
  sentCode: optional(text),
  taken: flag
})

export const toOpen = (row: Row, attempts: ReadonlyArray<ReturnType<typeof attemptColumns.decode>>): OpenRecord => ({
  ...recordColumns.decode(row),
  ...openColumns.decode(row),
  attempts: attempts.map(({ envelope, settlement: _, ...attempt }) => ({
    ...attempt,
    envelope: Base64.encode(envelope)
  }))
})

const maybeDate = (millis: number | undefined): Date | null => (millis === undefined ? null : new Date(millis))

const bytesOf = (envelope: string): Uint8Array => Result.getOrThrow(Base64.decode(envelope))

/** Spreads settlements over the shards of a day's total. */
export const spreadOf = (id: string): number => Number.parseInt(id.slice(0, 8), 16)

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
