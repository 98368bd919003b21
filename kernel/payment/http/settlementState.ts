// A settlement's durable state in the form that its own principal reads at /settlements. An open settlement past its
// caller's deadline is `unknown`; `settled` is `success`; `failed` and `expired` are `failed` (rules 3).
import { Option } from "effect"
import { type Dialect, encodeNetwork, encodeReason } from "../../Dialect.ts"
import { spentIn } from "../../settlement/state/outcomes.ts"
import { isOpen } from "../../settlement/state/Settlement.ts"
import type { SettlementRecord } from "../../settlement/store/Settlements.ts"
import type { SettlementBody } from "../wire/BodyWire.ts"

/** A state's name for callers and analytics. */
export const statusOf = (
  record: Pick<SettlementRecord, "state" | "deadlineAt">,
  nowMillis: number
): "pending" | "unknown" | "success" | "failed" => {
  if (record.state === "settled") return "success"
  if (record.state === "failed" || record.state === "expired") return "failed"
  return isOpen(record.state) && record.deadlineAt.getTime() > nowMillis ? "pending" : "unknown"
}

const whyFailed = (errorMessage: string) => {
  const spentBy = spentIn(errorMessage)
  return { errorMessage, ...(spentBy === undefined ? {} : { spentBy }) }
}

export const encodeSettlementState = (
  record: SettlementRecord,
  dialect: Dialect,
  nowMillis: number
): typeof SettlementBody.Type => ({
  id: record.id,
  status: statusOf(record, nowMillis),
  network: encodeNetwork(record.network, dialect),
  scheme: record.scheme,
  asset: record.asset,
  amount: record.amount.toString(),
  payer: record.payer,
  payTo: record.payTo,
  transaction: Option.getOrElse(record.transaction, () => record.innerHash),
  ...Option.match(record.identifier, { onNone: () => ({}), onSome: (paymentIdentifier) => ({ paymentIdentifier }) }),
  recordedAt: record.recordedAt.toISOString(),
  ...Option.match(record.resolvedAt, { onNone: () => ({}), onSome: (at) => ({ resolvedAt: at.toISOString() }) }),
  ...Option.match(record.ledger, { onNone: () => ({}), onSome: (ledger) => ({ ledger }) }),
  ...(record.confirmations === undefined ? {} : { confirmations: record.confirmations }),
  ...Option.match(record.feeChargedStroops, { onNone: () => ({}), onSome: (fee) => ({ feeStroops: fee.toString() }) }),
  ...(record.isWatched === true ? { authorizationLivesUntilLedger: record.authorizationExpiresLedger } : {}),
  ...Option.match(record.reason, {
    onNone: () => ({}),
    onSome: (reason) => ({
      errorReason: encodeReason(reason, dialect),
      ...Option.match(record.reasonMessage, { onNone: () => ({}), onSome: whyFailed })
    })
  })
})
