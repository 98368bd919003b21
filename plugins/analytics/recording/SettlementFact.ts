// A settlement in analytics, and how facts change it. Idempotent: a repeated fact changes nothing, an end that moved
// money or failed is final unless a later fact corrects it, and an open or unanswered settlement is never failed (S96,
// S155, S178–S180). Pure.
import {
  as,
  columns,
  flag,
  moment,
  nullable,
  optional,
  text,
  units,
  uuid,
  whole
} from "../../../kernel/database/table.ts"
import type { RecordedFact } from "./FactWire.ts"

/** The caller of an `open` settlement is still waiting; such a settlement is not shown. */
type Status = "open" | "unknown" | "success" | "failed"

export const settlements = columns({
  id: uuid,
  occurredAt: moment,
  dueAt: moment,
  /** Neutral spelling. */
  network: text,
  scheme: text,
  asset: text,
  payer: text,
  payTo: text,
  amountMax: units,
  amountMeant: units,
  /** Atomic units that moved: 0 when it failed, undefined while unknown. */
  amount: optional(units),
  feeStroops: whole,
  transactionHash: text,
  status: as<Status>(text),
  facilitatorId: text,
  resourceId: optional(whole),
  resourceOrigin: nullable(text),
  resourceUrl: nullable(text),
  errorReason: nullable(text),
  /** The recipient had not paid the payer before. */
  organic: flag,
  /** The caller's key label; null for a caller without a key. */
  principal: nullable(text)
})

export type SettlementFact = ReturnType<typeof settlements.decode>

/** Facilitator id of settlements recorded before facts carried one. */
const unnamedFacilitator = "unnamed"

/** Separates a scheme from the kind of a settlement other than a payment, as in `batch-settlement:deposit`. */
const kindMark = ":"

export const begin = (
  { at, data, id }: Extract<RecordedFact, { _tag: "Recorded" }>,
  waitMillis: number
): SettlementFact => ({
  id,
  occurredAt: at,
  dueAt: new Date(at.getTime() + waitMillis),
  network: data.network,
  scheme: data.books === undefined ? data.scheme : `${data.scheme}${kindMark}${data.books.kind}`,
  asset: data.asset,
  payer: data.payer,
  payTo: data.payTo,
  amountMax: data.amountMax,
  amountMeant: data.books?.sold ?? data.amount ?? data.amountMax,
  amount: undefined,
  feeStroops: 0n,
  transactionHash: data.transaction,
  status: "open",
  facilitatorId: data.facilitator ?? unnamedFacilitator,
  resourceId: undefined,
  resourceOrigin: null,
  resourceUrl: data.resourceUrl,
  errorReason: null,
  organic: true,
  principal: data.principal ?? null
})

const isFinal = ({ status }: SettlementFact): boolean => status === "success" || status === "failed"

export const end = (
  fact: SettlementFact,
  { data, state }: Extract<RecordedFact, { _tag: "Ended" }>
): SettlementFact => {
  const isCorrection = data.corrects !== undefined && fact.status === data.corrects
  if (isFinal(fact) && !isCorrection) return fact
  const reported = { ...fact, feeStroops: data.feeChargedStroops, errorReason: data.reason }
  switch (state) {
    case "settled":
      // If the amount is beyond the node's history, use the signed amount. For claims and refunds, count the amount
      // sold, not the amount moved.
      return {
        ...reported,
        status: "success",
        // A transaction other than the recorded one may have paid: one with a lost record, or one from anyone.
        transactionHash: data.transaction,
        amount: (fact.scheme.includes(kindMark) ? data.sold : data.moved) ?? fact.amountMeant
      }
    case "failed":
    case "expired":
      return { ...reported, status: "failed", amount: 0n }
    case "unresolved":
      return { ...reported, status: "unknown" }
  }
}

/** The caller's timeout has passed without an outcome. */
export const overdue = (fact: SettlementFact): SettlementFact =>
  fact.status === "open" ? { ...fact, status: "unknown" } : fact

/** Attributes it to a resource; the first attribution stays. */
export const attribute = (
  fact: SettlementFact,
  resource: { readonly id: bigint; readonly origin: string | null }
): SettlementFact =>
  fact.resourceId === undefined ? { ...fact, resourceId: resource.id, resourceOrigin: resource.origin } : fact
