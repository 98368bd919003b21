// The life of a settlement as pure code: what is known, what the ledger says, what follows. A settlement ends only by
// the ledger's word: its transaction was included, or one node that can speak of the whole time since it was recorded
// says that it is absent although no later ledger could include it. No answer to a submission, no clock and no timeout
// ends it. The same function decides on the happy path, after a crash and in recovery (decisions 3).
import type { ExecutedTransaction } from "../ledger/Executed.ts"

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
  readonly sentStatus: "Pending" | "Duplicate" | "TryAgainLater" | "Error" | "Lost" | undefined
  readonly sentLedger: number | undefined
}

/** What deciding needs of an open settlement. */
export interface OpenSettlement {
  readonly innerHash: string
  readonly channelSequence: bigint
  readonly authorizationExpiresLedger: number
  readonly recordedLedger: number
  /** At least one; in order of their numbers. */
  readonly attempts: ReadonlyArray<Attempt>
}

/** What one node said about the settlement. */
export type Observation =
  | {
      readonly _tag: "Included"
      readonly kind: "payment" | "cancel"
      readonly executed: ExecutedTransaction
      /** What moved, when the scheme found the promised movement in the executed transaction. */
      readonly moved: bigint | undefined
    }
  | {
      readonly _tag: "Absent"
      readonly latestLedger: number
      readonly oldestLedger: number
      /** The channel's account, read at `ledger`. Only asked for when it matters. */
      readonly channel: ChannelAccount | undefined
    }

/** What the ledger says of a channel, and of the authorization it carried. */
export interface ChannelAccount {
  /** Absent when the account is not on the ledger. */
  readonly sequence: bigint | undefined
  readonly ledger: number
  /** The ledger in which the sequence was last used, when the account says so. */
  readonly sequenceLedger: number | undefined
  /** The ledger in which the authorization was used, as far as the ledger still says so. */
  readonly authorizationLedger: number | undefined
}

export interface Outcome {
  readonly state: FinalState | "unresolved"
  readonly ledger: number | undefined
  readonly closedAtSeconds: number | undefined
  readonly moved: bigint | undefined
  /** What the ledger took from the sponsor; 0 when nothing landed. */
  readonly feeChargedStroops: bigint
  readonly reason: "settle_ledger_transaction_failed" | "settle_ledger_transaction_expired" | undefined
  readonly message: string | undefined
  /**
   * Whether the channel's sequence number was used up, and by which ledger that is known; `undefined` has it read
   * again.
   */
  readonly channel: { readonly sequenceUsed: boolean | undefined; readonly ledger: number } | undefined
}

export type Decision =
  | { readonly _tag: "End"; readonly outcome: Outcome }
  /** Send the newest payment attempt again: identical bytes. */
  | { readonly _tag: "Resend" }
  /** Record and send a fee bump with a higher bid. */
  | { readonly _tag: "Bid"; readonly inclusionStroops: bigint }
  /** Record and send a no-op with the same sequence number: the network keeps refusing the payment. */
  | { readonly _tag: "Cancel" }
  /** The channel's account is needed to decide, and the transaction asked for once more after it. */
  | { readonly _tag: "AskChannel" }
  | { readonly _tag: "Wait" }

/** Ledgers an attempt may stay unseen before a node has dropped it from its queue. */
export const queueLedgers = 4
/** Ledgers after which a queued attempt is outbid once, tenfold. */
const outbidAfterLedgers = 2
/**
 * Ledgers of nothing but refusals after which the channel is looked at: somebody else may have used its sequence
 * number.
 */
const suspectAfterLedgers = 2
/** Ledgers of nothing but refusals after which a settlement is cancelled, if its bound is still this far away. */
const refusedLedgers = 6

export interface DecideOptions {
  /** Ceiling of the inclusion bid, stroops. */
  readonly inclusionStroopsMax: bigint
}

/** What to do after an observation. */
export const decide = (settlement: OpenSettlement, seen: Observation, options: DecideOptions): Decision => {
  if (seen._tag === "Included") return { _tag: "End", outcome: included(settlement, seen) }
  const expired = seen.latestLedger >= settlement.authorizationExpiresLedger
  const remembers = seen.oldestLedger <= settlement.recordedLedger
  if (expired && remembers) return { _tag: "End", outcome: expiredOutcome(settlement, seen) }
  if (expired) return beyondRetention(settlement, seen)
  const { channel } = seen
  // A node that has seen the channel pass our sequence number and does not know the transaction: it never can land.
  if (remembers && hasPassed(settlement, channel) && seen.latestLedger >= channel.ledger) {
    return { _tag: "End", outcome: overtaken(settlement, channel) }
  }
  return drive(settlement, seen, options)
}

const hasPassed = (
  settlement: OpenSettlement,
  channel: ChannelAccount | undefined
): channel is ChannelAccount & { readonly sequence: bigint } =>
  channel?.sequence !== undefined && channel.sequence >= settlement.channelSequence

const aliveUntil = (settlement: OpenSettlement): string =>
  `the authorization lives until ledger ${settlement.authorizationExpiresLedger}`

const nothingLanded = {
  ledger: undefined,
  closedAtSeconds: undefined,
  moved: undefined,
  feeChargedStroops: 0n
} as const

const overtaken = (settlement: OpenSettlement, { ledger }: ChannelAccount): Outcome => ({
  ...nothingLanded,
  state: "failed",
  reason: "settle_ledger_transaction_failed",
  message: `another transaction used the channel's sequence number; ${aliveUntil(settlement)}`,
  channel: { sequenceUsed: undefined, ledger }
})

const included = (settlement: OpenSettlement, seen: Extract<Observation, { _tag: "Included" }>): Outcome => {
  const { executed, kind, moved } = seen
  const common = {
    ledger: executed.ledger,
    closedAtSeconds: executed.closedAtSeconds,
    feeChargedStroops: executed.feeChargedStroops,
    channel: { sequenceUsed: true, ledger: executed.ledger }
  }
  const failed = (message: string): Outcome => ({
    ...common,
    state: "failed",
    moved: undefined,
    reason: "settle_ledger_transaction_failed",
    message: `${message}; ${aliveUntil(settlement)}`
  })
  if (kind === "cancel") return failed("the network refused the transaction and it was cancelled")
  if (!executed.succeeded) return failed("the transaction failed on the ledger")
  if (moved === undefined) {
    return {
      ...common,
      state: "unresolved",
      moved,
      reason: undefined,
      message: "the transaction succeeded without the promised movement"
    }
  }
  return { ...common, state: "settled", moved, reason: undefined, message: undefined }
}

const expiredOutcome = (settlement: OpenSettlement, seen: { readonly latestLedger: number }): Outcome => ({
  ...nothingLanded,
  state: "expired",
  reason: "settle_ledger_transaction_expired",
  message: `the transaction was not included by ledger ${settlement.authorizationExpiresLedger}; the authorization is dead`,
  channel: { sequenceUsed: false, ledger: seen.latestLedger }
})

/**
 * Ledgers past the bound for which other nodes may still tell what landed, about an hour; then it is an operator's to
 * find out.
 */
const unresolvedAfterLedgers = 720

/**
 * The node no longer remembers the ledgers in question. The channel's sequence tells whether anything of ours landed;
 * the authorization's use in that very ledger, that it was the payment. Else an operator has to say.
 */
const beyondRetention = (settlement: OpenSettlement, seen: Extract<Observation, { _tag: "Absent" }>): Decision => {
  const { channel } = seen
  if (channel === undefined || channel.ledger < settlement.authorizationExpiresLedger) return { _tag: "AskChannel" }
  if (channel.sequence !== undefined && channel.sequence < settlement.channelSequence) {
    return { _tag: "End", outcome: expiredOutcome(settlement, seen) }
  }
  const { authorizationLedger, ledger, sequence, sequenceLedger } = channel
  const isOurs =
    sequence === settlement.channelSequence && sequenceLedger !== undefined && sequenceLedger === authorizationLedger
  if (!isOurs && seen.latestLedger < settlement.authorizationExpiresLedger + unresolvedAfterLedgers)
    return { _tag: "Wait" }
  const common = { ...nothingLanded, reason: undefined, channel: { sequenceUsed: isOurs ? true : undefined, ledger } }
  return {
    _tag: "End",
    outcome: isOurs
      ? {
          ...common,
          state: "settled",
          ledger: sequenceLedger,
          message: "the ledger shows the authorization used by the channel; its fee is no longer known"
        }
      : {
          ...common,
          state: "unresolved",
          message:
            sequence === undefined
              ? "the channel's account is gone, and the node's history no longer says what landed"
              : "a transaction of the channel landed, and the node's history no longer says which"
        }
  }
}

/** The bound is open: get it included. */
const drive = (
  settlement: OpenSettlement,
  seen: Extract<Observation, { _tag: "Absent" }>,
  options: DecideOptions
): Decision => {
  const { channel, latestLedger } = seen
  const payments = settlement.attempts.filter(({ kind }) => kind === "payment")
  const newest = payments.at(-1)
  if (newest === undefined || newest.sentLedger === undefined) return { _tag: "Resend" }
  const waited = latestLedger - newest.recordedLedger
  const refused = settlement.attempts.every(({ sentStatus }) => sentStatus === "Error")
  if (refused && channel === undefined && waited >= suspectAfterLedgers) return { _tag: "AskChannel" }
  const cancelled = settlement.attempts.find(({ kind }) => kind === "cancel")
  if (cancelled !== undefined) {
    return cancelled.sentLedger === undefined || latestLedger > cancelled.sentLedger
      ? { _tag: "Resend" }
      : { _tag: "Wait" }
  }
  const left = settlement.authorizationExpiresLedger - latestLedger
  if (refused && latestLedger - settlement.recordedLedger >= refusedLedgers && left > refusedLedgers)
    return { _tag: "Cancel" }
  const higher = newest.inclusionStroops * 10n
  const bid = higher > options.inclusionStroopsMax ? options.inclusionStroopsMax : higher
  const mayOutbid = bid >= newest.inclusionStroops * 10n && payments.length === 1 && waited >= outbidAfterLedgers
  const mayRaise = bid > newest.inclusionStroops && waited >= queueLedgers
  if (!refused && (mayOutbid || mayRaise)) return { _tag: "Bid", inclusionStroops: bid }
  // A queue that did not take it, or may have dropped it, is offered the same bytes once a ledger.
  return latestLedger > newest.sentLedger ? { _tag: "Resend" } : { _tag: "Wait" }
}
