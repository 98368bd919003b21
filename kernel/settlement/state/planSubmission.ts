// Plans submissions while a settlement's transaction can still be included: identical bytes are sent once a ledger, one
// later when a node has them in its queue; the bid rises when the network's fee does or the queue does not move; and a
// no-op takes the number only of a transaction that the network can never accept.
import type { Attempt, DecideOptions, Decision, OpenSettlement } from "./Settlement.ts"

/** Ledgers an attempt may stay unseen before a node has dropped it from its queue. */
export const queueLedgers = 4
/** Ledgers in which what a node has queued may be included before the same bytes are offered again. */
const queuedFor = 1
/** Ledgers after which a queued attempt is outbid once, tenfold. */
const outbidAfterLedgers = 2
/** Ledgers of refusals after which what can never be accepted is cancelled, if the bound is still this far away. */
const refusedLedgers = 6

/** Refusals that no waiting, no bid and no other node will change: the envelope itself is invalid. */
const hopelessCodes: ReadonlySet<string> = new Set([
  "txMalformed",
  "txMissingOperation",
  "txBadAuth",
  "txBadAuthExtra",
  "txBadSponsorship",
  "txSorobanInvalid",
  "txNotSupported"
])

const isRefused = ({ sentCode, sentStatus }: Attempt, code: string): boolean =>
  sentStatus === "Error" && sentCode === code

const isHopeless = ({ sentCode, sentStatus, taken }: Attempt): boolean =>
  sentStatus === "Error" && !taken && hopelessCodes.has(sentCode ?? "")

/** A node answered at the last submission that it has it. */
const isQueued = ({ sentStatus }: Attempt): boolean => sentStatus === "Pending" || sentStatus === "Duplicate"

/** The next bid: tenfold, to the ceiling; absent when there is none above the newest. */
const nextBid = (newest: Attempt, ceiling: bigint): bigint | undefined => {
  const higher = newest.inclusionStroops * 10n
  const bid = higher > ceiling ? ceiling : higher
  return bid > newest.inclusionStroops ? bid : undefined
}

/** Whether a higher bid is called for now. */
const callsForBid = (newest: Attempt, payments: number, bid: bigint, waited: number): boolean => {
  if (isRefused(newest, "txInsufficientFee")) return true
  if (newest.sentStatus === "Error" && !newest.taken) return false
  const isTenfold = bid >= newest.inclusionStroops * 10n
  return waited >= queueLedgers || (payments === 1 && isTenfold && waited >= outbidAfterLedgers)
}

/** The attempt that is offered now: the no-op once there is one, else the newest payment. */
const offered = (attempts: ReadonlyArray<Attempt>): Attempt | undefined =>
  attempts.find(({ kind }) => kind === "cancel") ?? attempts.findLast(({ kind }) => kind === "payment")

export const planSubmission = (
  settlement: OpenSettlement,
  known: { readonly latestLedger: number; readonly isSnapshotKnown: boolean },
  { canSign, inclusionStroopsMax }: DecideOptions
): Decision => {
  const { attempts, authorizationExpiresLedger, recordedLedger } = settlement
  const newest = offered(attempts)
  if (newest === undefined) return { _tag: "Wait" }
  if (newest.sentLedger === undefined) return { _tag: "Resend", attempt: newest }
  const { latestLedger } = known
  const waited = latestLedger - newest.recordedLedger
  // Another signer may have used the number, or the transaction may have landed where this node does not see it.
  const isSuspect = isRefused(newest, "txBadSeq") || waited >= queueLedgers
  if (isSuspect && !known.isSnapshotKnown) return { _tag: "ReadSnapshot" }
  // A queue that did not take it, or may have dropped it, is offered the same bytes once a ledger. What it took just
  // before a ledger closed is in the next one, which is no reason to send it again.
  const isOffered = latestLedger <= newest.sentLedger + (isQueued(newest) ? queuedFor : 0)
  const again: Decision = isOffered ? { _tag: "Wait" } : { _tag: "Resend", attempt: newest }
  if (newest.kind === "cancel" || !canSign) return again
  const isTime =
    latestLedger - recordedLedger >= refusedLedgers && authorizationExpiresLedger - latestLedger > refusedLedgers
  if (isTime && attempts.every(isHopeless)) return { _tag: "Cancel" }
  const bid = nextBid(newest, inclusionStroopsMax)
  const payments = attempts.filter(({ kind }) => kind === "payment").length
  return bid !== undefined && callsForBid(newest, payments, bid, waited)
    ? { _tag: "Bid", inclusionStroops: bid }
    : again
}
