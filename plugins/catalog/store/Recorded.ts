// What came of a declaration, for the header, the journal of observations and the log.
import type { Declaration, PublicReason } from "../declaration/Declaration.ts"
import type { Claimant } from "./Quotas.ts"

export interface Recorded {
  readonly decision: "listed" | "updated" | "unchanged" | "held" | "rejected"
  readonly reason?: PublicReason
  /** For operators. */
  readonly detail?: string
  readonly resourceId: bigint | undefined
  /** Of the resource as it is now, when it is listed. */
  readonly versionHash?: string
}

/** The payment that carried a declaration. */
export interface Carrier {
  readonly stage: "verified" | "settled"
  readonly payer: string
  readonly now: Date
}

export const rejected = (reason: PublicReason, detail: string, resourceId?: bigint): Recorded => ({
  decision: "rejected",
  reason,
  detail,
  resourceId
})

export const unavailable = (detail: string, resourceId?: bigint): Recorded =>
  rejected("catalog_unavailable", detail, resourceId)

export const claimantOf = ({ terms }: Declaration, { now, payer }: Carrier): Claimant => ({
  now,
  payer,
  payTo: terms.payTo
})
