// Plans submissions while a settlement's transaction can still be included. Identical bytes are sent once per ledger,
// one ledger later if a node has them in its queue. The bid rises when the network's fee rises or the queue does not
// move. A no-op takes the number only of a transaction that the network can never accept.
import type { Attempt, DecideOptions, Decision, OpenSettlement } from "./Settlement.ts"

/** Ledgers that an attempt may stay unseen before we assume that a node has dropped it from its queue. */
export const queueLedgers = 4
/** Ledgers in which a queued transaction may be included before we offer the same bytes again. */
const queuedFor = 1
/** Ledgers after which a queued attempt is outbid once, tenfold. */
const outbidAfterLedgers = 2
/** Ledgers of refusals after which an unacceptable transaction is cancelled, if the bound is still this far away. */
const refusedLedgers = 6

/** Refusals that neither waiting, nor a bid, nor another node can change: the envelope itself is invalid. */
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

/** A node answered the last submission that it has the transaction. */
const isQueued = ({ sentStatus }: Attempt): boolean => sentStatus === "Pending" || sentStatus === "Duplicate"

/** The next bid: ten times the newest, up to the ceiling; absent if none is above the newest. */
const nextBid = (newest: Attempt, ceiling: bigint): bigint | undefined => {
  const higher = newest.inclusionStroops * 10n
  const bid = higher > ceiling ? ceiling : higher
  return bid > newest.inclusionStroops ? bid : undefined
}

/** Whether a higher bid is due. */
const callsForBid = (newest: Attempt, payments: number, bid: bigint, waited: number): boolean => {
  if (isRefused(newest, "txInsufficientFee")) return true
  if (newest.sentStatus === "Error" && !newest.taken) return false
  const isTenfold = bid >= newest.inclusionStroops * 10n
  return waited >= queueLedgers || (payments === 1 && isTenfold && waited >= outbidAfterLedgers)
}

/** The attempt to offer now: the no-op if there is one, else the newest payment. */
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
  // Another signer may have used the number, or the transaction may have landed without this node showing it.
  const isSuspect = isRefused(newest, "txBadSeq") || waited >= queueLedgers
  if (isSuspect && !known.isSnapshotKnown) return { _tag: "ReadSnapshot" }
  // A queue that did not accept it, or may have dropped it, receives the same bytes once per ledger. A transaction that
  // it accepted just before a ledger closed is in the next one, so it need not be sent again.
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
