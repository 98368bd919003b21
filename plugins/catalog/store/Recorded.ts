// The outcome of a declaration, for the header, the journal of observations and the log.
import type { Effect, Option } from "effect"
import { documentBytesMax } from "../Config.ts"
import type { Declaration, PublicReason } from "../declaration/Declaration.ts"
import type { Grade } from "../declaration/Grade.ts"
import type { Claimant } from "./Quotas.ts"

export interface Recorded {
  readonly decision: "listed" | "updated" | "unchanged" | "held" | "rejected"
  /** The reason for a rejection, or the event that a held declaration waits for. */
  readonly reason?: PublicReason | "awaits_origin"
  /** Fields of the payment's resource that were left out. */
  readonly dropped?: ReadonlyArray<string>
  /** For operators. */
  readonly detail?: string
  readonly resourceId: bigint | undefined
  /** Version hash of the current resource, if it is listed. */
  readonly versionHash?: string
  /** Hash of the state of an unchanged resource: while it stays equal, the same declaration is unchanged. */
  readonly stateHash?: string
  /** Version hash of the words of this declaration by itself, if a settlement under them is evidence for them. */
  readonly claim?: string
  /** It claims other words than the listing shows: a settlement is recorded again, because it may displace them. */
  readonly isContender?: true
  /** Nothing was listed: the origin is to be asked for the resource. */
  readonly isHint?: true
}

/** The payment that carried a declaration. */
export interface Carrier {
  readonly stage: "verified" | "settled"
  readonly payer: string
  /**
   * `declared` under a principal that showed control of the recipient, or by a signature of the recipient's
   * account.
   */
  readonly grade: Exclude<Grade, "origin">
  readonly signature?: string
  /**
   * Whether another recipient has authorized the declaration, by its account's signature or by a principal that showed
   * control of the account; with the signature's digest.
   */
  readonly authorizedBy?: (payTo: string) => Effect.Effect<Option.Option<{ readonly signature?: string }>>
  /** As `PaymentObservation.authorization`. */
  readonly authorization: () => Option.Option<string>
  /** It settled nothing that counts: dust, or a payment to its own payer. */
  readonly isDust?: boolean
  readonly now: Date
}

/** Whether it cost its payer nothing. */
const isCheap = ({ isDust, stage }: Pick<Carrier, "isDust" | "stage">): boolean =>
  stage === "verified" || isDust === true

/**
 * It cost its payer nothing, and no known principal answers for it: any account signs for itself, and accounts are made
 * at will.
 */
export const isFree = (carrier: Pick<Carrier, "grade" | "isDust" | "signature" | "stage">): boolean =>
  isCheap(carrier) && (carrier.grade === "claimed" || carrier.signature !== undefined)

export const rejected = (reason: PublicReason, detail: string, resourceId?: bigint): Recorded => ({
  decision: "rejected",
  reason,
  detail,
  resourceId
})

/** Why a listing with this body is not stored: its operations are too large together. */
export const oversizedOf = (
  document: string,
  config: Parameters<typeof documentBytesMax>[0],
  resourceId?: bigint
): Recorded | undefined =>
  new TextEncoder().encode(document).length > documentBytesMax(config)
    ? rejected("metadata_too_large", "the listing with all its operations", resourceId)
    : undefined

export const unavailable = (detail: string, resourceId?: bigint): Recorded =>
  rejected("catalog_unavailable", detail, resourceId)

/** Neither listed nor refused: the origin is asked for the resource. */
export const awaitsOrigin = (detail: string): Recorded => ({
  decision: "held",
  reason: "awaits_origin",
  detail,
  resourceId: undefined,
  isHint: true
})

export const claimantOf = ({ identity, terms }: Declaration, carrier: Carrier): Claimant => ({
  now: carrier.now,
  payer: carrier.payer,
  payTo: terms.payTo,
  place: identity.origin ?? identity.resource,
  stage: isCheap(carrier) ? "verified" : "settled",
  isOwner: carrier.grade === "declared" && carrier.signature === undefined,
  isFree: isFree(carrier)
})
