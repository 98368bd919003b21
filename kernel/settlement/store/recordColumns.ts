// The columns of `kernel_settlements` that a record is read from.
import type { NetworkId } from "../../config/Network.ts"
import {
  as,
  columns,
  computed,
  count,
  flag,
  json,
  moment,
  option,
  optional,
  text,
  units,
  uuid,
  whole
} from "../../database/table.ts"
import type { SettlementState } from "../state/Settlement.ts"

/**
 * The delivery of its success: no caller has it; a live process is sending it to one; the answer has left. A success
 * that a dead process was sending is undelivered again.
 */
type Delivery = "undelivered" | "given" | "confirmed"

/** The transaction's action if it is not a direct payment, as receipts show it. */
export interface SettledAction {
  /** The scheme's category, `[a-z]+`. */
  readonly kind: string
  /** Id of the channel that it is about, 64 hex. */
  readonly channel?: string | undefined
  /** By channel id: the total that the transaction claims of it, atomic units, decimal. */
  readonly totals?: Readonly<Record<string, string>> | undefined
}

export const recordColumns = columns({
  id: uuid,
  network: as<NetworkId>(text),
  scheme: text,
  authorizationKey: text,
  authorizationExpiresLedger: count,
  fingerprint: text,
  /** The owner: the principal that settled it. */
  principal: text,
  identifier: option(text),
  payer: text,
  payTo: text,
  asset: text,
  amount: units,
  innerHash: text,
  /**
   * The hash in answers to callers: the settlement's own hash; once settled, the hash of the transaction that made the
   * payment. Absent when it failed and we saw no transaction of it on the ledger.
   */
  transaction: computed(
    `case when state = 'settled' then coalesce(ended_by, inner_hash)
      when state = 'failed' and ended_by is null then null else inner_hash end`,
    option(text)
  ),
  channel: text,
  state: as<SettlementState>(text),
  recordedAt: moment,
  deadlineAt: moment,
  resolvedAt: option(moment),
  ledger: option(count),
  amountTransferred: computed("moved", option(units)),
  feeChargedStroops: option(whole),
  reason: option(text),
  reasonMessage: option(text),
  delivery: computed(
    `case when delivered_at is null then 'undelivered'
      when delivered_by is null or confirmed_at is not null then 'confirmed'
      when exists (select 1 from kernel_processes as giving where giving.id = delivered_by) then 'given'
      else 'undelivered' end`,
    as<Delivery>(text)
  ),
  /** SHA-256 in hex of the `Idempotency-Key` of the call that received the success. */
  deliveredKey: optional(text),
  /** The place in a trace where it was recorded, as W3C's `traceparent`. */
  traceparent: optional(text),
  /** Close time of `ledger`, once ended by a transaction. */
  closedAt: optional(moment),
  /** Attempts recorded so far, void ones included. */
  attemptCount: as<number | undefined>(count),
  resourceUrl: optional(text),
  /** The number of endpoints that showed its outcome; absent while open, and if it ended in an earlier version. */
  confirmations: as<1 | 2 | undefined>(optional(count)),
  /** Absent for a direct payment, and for settlements of earlier versions. */
  action: optional(as<SettledAction>(json)),
  /** True if it failed and its authorization may still be used. A later use corrects it. */
  isWatched: computed("watch_after is not null", as<boolean | undefined>(flag))
})
