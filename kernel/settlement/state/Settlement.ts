// The types of a settlement's life: its states, its record, the ledger's evidence, its outcomes and the decisions.
// `decide.ts` maps evidence to a decision.
import type { ExecutedTransaction } from "../../ledger/Executed.ts"

export type OpenState = "prepared" | "submitted"
export type FinalState = "settled" | "failed" | "expired"
export type SettlementState = OpenState | FinalState | "unresolved"

export const isOpen = (state: SettlementState): state is OpenState => state === "prepared" || state === "submitted"

export interface Attempt {
  readonly number: number
  readonly kind: "payment" | "cancel"
  readonly innerHash: string
  readonly outerHash: string
  /** Base64 XDR. */
  readonly envelope: string
  readonly inclusionStroops: bigint
  readonly recordedLedger: number
  /** The last answer to sending it. */
  readonly sentStatus: "Pending" | "Duplicate" | "TryAgainLater" | "Error" | "Lost" | undefined
  readonly sentLedger: number | undefined
  /** The result code of the last answer, when that was a refusal. */
  readonly sentCode: string | undefined
  /** Whether a node ever took it, or may have: no later refusal changes that. */
  readonly taken: boolean
}

/** The fields of an open settlement that a decision needs. */
export interface OpenSettlement {
  readonly innerHash: string
  readonly channelSequence: bigint
  /** Whether the channel is still held for it; one that was freed early had its number used. */
  readonly channelHeld: boolean
  readonly authorizationExpiresLedger: number
  readonly recordedLedger: number
  /** At least one; in order of their numbers. */
  readonly attempts: ReadonlyArray<Attempt>
}

/** One of the settlement's attempts, found on the ledger. */
export interface Landed {
  readonly kind: "payment" | "cancel"
  readonly executed: ExecutedTransaction
  /** The amount moved, when the scheme found the promised movement in the executed transaction. */
  readonly amountTransferred: bigint | undefined
  /** The amount sold, if the seller's accounting separates it from the amount moved and the transaction shows it. */
  readonly amountSold?: bigint | undefined
}

/** One node's answer about the settlement's transactions. */
export type Seen =
  | { readonly _tag: "Included"; readonly landed: Landed; readonly latestLedger: number }
  | { readonly _tag: "Absent"; readonly latestLedger: number }

/** The channel's number and the authorization's nonce, from one answer of one node. */
export interface SettlementSnapshot {
  readonly ledger: number
  /** Absent when the account is not on the ledger. */
  readonly sequence: bigint | undefined
  /**
   * The ledger in which the nonce was used; `unspent` is true only at or before the authorization's expiry; `none`: it
   * needs no authorization, so nothing but its own transaction moves the money.
   */
  readonly nonce: number | "unspent" | "unknown" | "none"
  /** The endpoint that showed it, by its position in the settings. */
  readonly endpoint?: number | undefined
}

/** The transaction that used an authorization without being the payment that was promised. */
export interface SpentBy {
  /** Its inner hash. */
  readonly transaction: string
  /** Sent by this facilitator, under other terms. */
  readonly isOurs: boolean
}

/** The result of scanning ledgers for the use of the authorization's nonce. */
export interface Search {
  readonly fromLedger: number
  /** Every ledger up to this one was scanned; before `fromLedger` when none was. */
  readonly toLedger: number
  readonly spending:
    | { readonly _tag: "Ours"; readonly executed: ExecutedTransaction; readonly amountTransferred: bigint }
    | ({ readonly _tag: "Elsewhere"; readonly ledger: number } & SpentBy)
    | undefined
  /** The transaction with the channel's number: an attempt of the settlement's own, or none of them; if it was seen. */
  readonly numberUsedBy: Landed | "elsewhere" | undefined
}

export interface Evidence {
  readonly seen: Seen
  /** Read only when the decision needs it, like the next one. */
  readonly snapshot: SettlementSnapshot | undefined
  readonly search: Search | undefined
}

export interface Outcome {
  readonly state: FinalState | "unresolved"
  /** The transaction of the ledger that ended it, by its inner hash; it ends no other settlement. */
  readonly transaction: string | undefined
  readonly ledger: number | undefined
  readonly closedAtSeconds: number | undefined
  readonly amountTransferred: bigint | undefined
  /** As `Landed.amountSold`; absent: the amount planned when it was recorded. */
  readonly amountSold?: bigint | undefined
  /** The fee that the ledger is known to have charged the sponsor. */
  readonly feeChargedStroops: bigint
  /** The envelope may have landed and failed unseen: the reservation stays charged in addition to known fees. */
  readonly feeUnknown: boolean
  readonly reason:
    | "settle_ledger_transaction_failed"
    | "settle_ledger_transaction_expired"
    | "settle_ledger_authorization_spent"
    | undefined
  readonly message: string | undefined
  /** How many endpoints showed it; set before it is stored, except for an operator's outcome. */
  readonly confirmations?: 1 | 2
  /** Set if the authorization still lives: the ledger as of which it was seen unspent. */
  readonly watchAfter?: number
  /**
   * Whether the channel's sequence number was used up, and by which ledger that is known; `undefined` has it read
   * again. Says nothing of a channel that was freed before.
   */
  readonly channel: { readonly sequenceUsed: boolean | undefined; readonly ledger: number } | undefined
}

export type Decision =
  | { readonly _tag: "End"; readonly outcome: Outcome }
  /** Send an attempt again: identical bytes. */
  | { readonly _tag: "Resend"; readonly attempt: Attempt }
  /** Record and send a fee bump with a higher bid. */
  | { readonly _tag: "Bid"; readonly inclusionStroops: bigint }
  /** Record and send a no-op with the same sequence number: the network can never accept the payment. */
  | { readonly _tag: "Cancel" }
  /**
   * Another transaction used the channel's number before this settlement could: nothing of it can land and nothing of
   * it has, so it is built again on another channel.
   */
  | { readonly _tag: "Rebuild"; readonly ledger: number }
  /** The channel's number and the nonce are needed to decide, and the transaction read once more after them. */
  | { readonly _tag: "ReadSnapshot" }
  /** Ledgers must be scanned for the transaction that used the nonce. */
  /** `before`: ledgers before the first one that are scanned too, where a node still has them. */
  | { readonly _tag: "Search"; readonly fromLedger: number; readonly toLedger: number; readonly before: number }
  /** The channel's number is used: the channel is of use to others, though the settlement has no end yet. */
  | { readonly _tag: "Free"; readonly ledger: number }
  | { readonly _tag: "Wait" }

export interface DecideOptions {
  /** Ceiling of the inclusion bid, stroops. */
  readonly inclusionStroopsMax: bigint
  /** False when sponsor or channel have other keys now: what was signed is sent, and nothing new is signed. */
  readonly canSign: boolean
  /** Whether the settlement may be built again on another channel. */
  readonly canRebuild: boolean
}
