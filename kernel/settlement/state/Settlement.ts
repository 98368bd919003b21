// The types of a settlement's life: its states, its record, the ledger's evidence, its outcomes and the decisions.
// `decide.ts` maps evidence to a decision.
import type { ExecutedTransaction } from "../../ledger/Executed.ts"

type OpenState = "prepared" | "submitted"
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
  readonly sentStatus?: "Pending" | "Duplicate" | "TryAgainLater" | "Error" | "Lost" | undefined
  readonly sentLedger?: number | undefined
  /** The result code of the last answer, if it was a refusal. */
  readonly sentCode?: string | undefined
  /** Whether a node ever accepted it, or may have: no later refusal changes that. */
  readonly taken: boolean
}

/** The fields of an open settlement that a decision needs. */
export interface OpenSettlement {
  readonly innerHash: string
  readonly channelSequence: bigint
  /** Whether the settlement still holds the channel; if the channel was freed early, its sequence number was used. */
  readonly channelHeld: boolean
  readonly authorizationExpiresLedger: number
  readonly recordedLedger: number
  /** At least one, in order of their numbers. */
  readonly attempts: ReadonlyArray<Attempt>
}

/** One of the settlement's attempts, found on the ledger. */
export interface Landed {
  readonly kind: "payment" | "cancel"
  readonly executed: ExecutedTransaction
  /** The amount moved, if the scheme found the promised movement in the executed transaction. */
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
  /** Absent if the account is not on the ledger. */
  readonly sequence: bigint | undefined
  /**
   * The ledger in which the nonce was used; `unspent` is true only at or before the authorization's expiry; `none`: the
   * payment needs no authorization, so only its own transaction moves the money.
   */
  readonly nonce: number | "unspent" | "unknown" | "none"
  /** The endpoint that showed it, by its position in the settings. */
  readonly endpoint?: number | undefined
}

/** The transaction that used an authorization without making the promised payment. */
export interface SpentBy {
  /** Its inner hash. */
  readonly transaction: string
  /** Sent by this facilitator, under other terms. */
  readonly isOurs: boolean
}

/** The result of scanning ledgers for the use of the authorization's nonce. */
export interface Search {
  readonly fromLedger: number
  /** Every ledger up to this one was scanned; below `fromLedger` if no ledger was scanned. */
  readonly toLedger: number
  readonly spending:
    | { readonly _tag: "Ours"; readonly executed: ExecutedTransaction; readonly amountTransferred: bigint }
    | ({ readonly _tag: "Elsewhere"; readonly ledger: number } & SpentBy)
    | undefined
  /** The transaction with the channel's number, if it was seen: one of the settlement's attempts, or another. */
  readonly numberUsedBy: Landed | "elsewhere" | undefined
}

export interface Evidence {
  readonly seen: Seen
  /** Read only if the decision needs it; the same applies to the next field. */
  readonly snapshot: SettlementSnapshot | undefined
  readonly search: Search | undefined
}

export interface Outcome {
  readonly state: FinalState | "unresolved"
  /** The inner hash of the ledger's transaction that ended it; that transaction ends no other settlement. */
  readonly transaction: string | undefined
  readonly ledger: number | undefined
  readonly closedAtSeconds: number | undefined
  readonly amountTransferred: bigint | undefined
  /** As `Landed.amountSold`; absent: the amount planned when it was recorded. */
  readonly amountSold?: bigint | undefined
  /** The part of the ledger's charge to the sponsor that is certain. */
  readonly feeChargedStroops: bigint
  /** The envelope may have landed and failed unseen: the reservation stays charged in addition to known fees. */
  readonly feeUnknown: boolean
  readonly reason:
    | "settle_ledger_transaction_failed"
    | "settle_ledger_transaction_expired"
    | "settle_ledger_authorization_spent"
    | undefined
  readonly message: string | undefined
  /** The number of endpoints that showed it; set before it is stored, except for an operator's outcome. */
  readonly confirmations?: 1 | 2
  /** Set if the authorization still lives: the ledger at which it was seen unspent. */
  readonly watchAfter?: number
  /**
   * Whether the channel's sequence number was used up, with the ledger that shows it; `undefined` has it read again.
   * Irrelevant for a channel that was freed before.
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
   * Another transaction used the channel's number before this settlement could. Nothing of the settlement has landed or
   * can land, so it is built again on another channel.
   */
  | { readonly _tag: "Rebuild"; readonly ledger: number }
  /** The decision needs the channel's number and the nonce, and afterwards the transaction once more. */
  | { readonly _tag: "ReadSnapshot" }
  /** Ledgers must be scanned for the transaction that used the nonce. */
  /** `before`: number of ledgers before the first one that are scanned too, if a node still has them. */
  | { readonly _tag: "Search"; readonly fromLedger: number; readonly toLedger: number; readonly before: number }
  /** The channel's number is used: others can use the channel, although the settlement has not ended yet. */
  | { readonly _tag: "Free"; readonly ledger: number }
  | { readonly _tag: "Wait" }

export interface DecideOptions {
  /** Ceiling of the inclusion bid, stroops. */
  readonly inclusionStroopsMax: bigint
  /** False if sponsor or channel have other keys now: signed transactions are still sent, but nothing new is signed. */
  readonly canSign: boolean
  /** Whether the settlement may be built again on another channel. */
  readonly canRebuild: boolean
}
