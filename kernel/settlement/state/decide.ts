// Maps the evidence for a settlement to a decision, as pure code. A settlement ends only by proof from the ledger.
// Either its transaction was seen, or its channel's number and its authorization's nonce, read together from an
// up-to-date node, leave one possibility. A missing hash proves nothing, and a settlement never ends by an answer to a
// submission, a clock or a timeout. The same function decides on the happy path, after a crash and in recovery; the
// table of proofs is in `kernel/decisions/rules.md`, and `npm run model` checks it in every state of a small world.
import { planSubmission, queueLedgers } from "./planSubmission.ts"
import * as Ending from "./outcomes.ts"
import type {
  DecideOptions,
  Decision,
  Evidence,
  Landed,
  OpenSettlement,
  Outcome,
  SettlementSnapshot
} from "./Settlement.ts"

/**
 * Ledgers past the expiry in which other nodes may still show a landed transaction, about an hour; then an operator has
 * to find out.
 */
export const unresolvedAfterLedgers = 720
/**
 * Ledgers before the record in which one of our transactions may have used the authorization, two minutes. Its record
 * was lost with a database, and a lagging node still showed the nonce unspent when the payment was recorded again.
 */
const lostRecordLedgers = 24
/** A recorded attempt without a submission after this time was lost with its process. */
const unsentAfterMillis = 2_000

const end = (outcome: Outcome): Decision => ({ _tag: "End", outcome })

/** Whether any signer had used the number at that snapshot: a sequence number never goes back. */
const hasPassed = (settlement: OpenSettlement, snapshot: SettlementSnapshot | undefined): boolean =>
  snapshot?.sequence !== undefined && snapshot.sequence >= settlement.channelSequence

/** An absent entry means unspent only while the entry of a use would still live. */
const isUnspent = ({ authorizationExpiresLedger }: OpenSettlement, { ledger, nonce }: SettlementSnapshot): boolean =>
  nonce === "unspent" && ledger <= authorizationExpiresLedger

/**
 * Decides by the available evidence. It does not request evidence again that is already present: that does not suffice
 * yet.
 */
export const decide = (settlement: OpenSettlement, evidence: Evidence, options: DecideOptions): Decision => {
  const { seen, snapshot } = evidence
  if (seen._tag === "Included") {
    return hasSucceeded(seen.landed)
      ? end(Ending.succeeded(seen.landed))
      : landedFailed(settlement, evidence, seen.landed)
  }
  if (!settlement.channelHeld || hasPassed(settlement, snapshot)) return numberPassed(settlement, evidence, options)
  if (seen.latestLedger >= settlement.authorizationExpiresLedger) return boundPassed(settlement, evidence)
  return planSubmission(
    settlement,
    { latestLedger: seen.latestLedger, isSnapshotKnown: snapshot !== undefined },
    options
  )
}

/** Sent in this very ledger: nothing can be included yet. Not sent yet: the recording process is about to send it. */
export const isDue = (
  { attempts, recordedLedger }: OpenSettlement,
  now: { readonly sequence: number; readonly millisSinceRecord: number }
): boolean => {
  const newest = attempts.at(-1)
  const ofRecord = newest?.sentLedger === undefined ? (newest?.recordedLedger ?? 0) : recordedLedger
  // A record with a future ledger came from a wrong node's answer.
  if (ofRecord > now.sequence + queueLedgers) return true
  if (newest?.sentLedger !== undefined) return now.sequence > recordedLedger
  // By the ledger as well as by the clock, because the clock may be wrong.
  return now.millisSinceRecord >= unsentAfterMillis || now.sequence > ofRecord + 1
}

const hasSucceeded = ({ executed, kind }: Landed): boolean => kind === "payment" && executed.succeeded

/** The payment failed on the ledger, or the no-op took its number. The nonce decides whether money moved. */
const landedFailed = (settlement: OpenSettlement, evidence: Evidence, landed: Landed): Decision => {
  const { snapshot } = evidence
  if (snapshot === undefined) return { _tag: "ReadSnapshot" }
  // A snapshot from before its inclusion does not show the nonce after it.
  if (snapshot.ledger < landed.executed.ledger) return freeOrWait(settlement, evidence, landed.executed.ledger, landed)
  return snapshot.nonce === "none" || isUnspent(settlement, snapshot)
    ? end(Ending.failedUnspent(settlement, landed, snapshot.nonce === "none"))
    : whereSpent(settlement, evidence, snapshot, landed)
}

/** The envelope cannot land any more: it has landed and its hash is hidden, or another transaction took its number. */
const numberPassed = (settlement: OpenSettlement, evidence: Evidence, options: DecideOptions): Decision => {
  const { seen, snapshot } = evidence
  if (snapshot === undefined) return { _tag: "ReadSnapshot" }
  // The state of the nonce before the number passed does not show whether the transaction landed.
  const isGone = snapshot.sequence === undefined && snapshot.ledger >= settlement.authorizationExpiresLedger
  if (!isGone && !hasPassed(settlement, snapshot)) return freeOrWait(settlement, evidence, snapshot.ledger, undefined)
  if (isGone || !isUnspent(settlement, snapshot)) return whereSpent(settlement, evidence, snapshot, undefined)
  // While there is time, a node that has reached this ledger may still show the landed transaction and its cost.
  const isEarly = seen.latestLedger < snapshot.ledger
  const isTime = settlement.authorizationExpiresLedger - snapshot.ledger > queueLedgers
  if (isEarly && isTime) return freeOrWait(settlement, evidence, snapshot.ledger, undefined)
  return options.canRebuild && isTime
    ? rebuildOrEnd(settlement, evidence, snapshot.ledger)
    : end(Ending.overtakenUnspent(settlement, snapshot.ledger))
}

/**
 * The number is used and the nonce unspent, in one snapshot: no money moved, and no envelope of the settlement can
 * land. Another transaction used the number in two cases: no node ever accepted one of the settlement's and the last
 * answer was that its number is wrong, or that other transaction was seen. Otherwise the settlement's own may have
 * landed and failed, and it is not rebuilt.
 */
const rebuildOrEnd = (settlement: OpenSettlement, { search }: Evidence, ledger: number): Decision => {
  const { attempts, recordedLedger } = settlement
  const isOvertaken =
    attempts.every(({ kind, taken }) => kind === "payment" && !taken) && attempts.at(-1)?.sentCode === "txBadSeq"
  if (isOvertaken || search?.numberUsedBy === "elsewhere") return { _tag: "Rebuild", ledger }
  if (search === undefined) return { _tag: "Search", fromLedger: recordedLedger, toLedger: ledger, before: 0 }
  const landed = search.numberUsedBy
  return end(
    landed === undefined ? Ending.overtakenUnspent(settlement, ledger) : Ending.failedUnspent(settlement, landed)
  )
}

/** No envelope of the settlement can land any more. The channel's sequence number shows whether one has. */
const boundPassed = (settlement: OpenSettlement, evidence: Evidence): Decision => {
  const { snapshot } = evidence
  if (snapshot === undefined || snapshot.ledger < settlement.authorizationExpiresLedger) return { _tag: "ReadSnapshot" }
  const { ledger, nonce, sequence } = snapshot
  // A removed account no longer shows whether its number was used before.
  if (sequence === undefined) return whereSpent(settlement, evidence, snapshot, undefined)
  const expired = Ending.expired(settlement, sequence, ledger)
  // Its own transaction never landed. One of our other transactions, with a lost record, may have landed.
  if (nonce === "none" || nonce === "unknown" || isUnspent(settlement, snapshot)) return end(expired)
  const use = useOf(settlement, nonce)
  if (evidence.search === undefined) return { _tag: "Search", ...use.range }
  const { spending, ...searched } = evidence.search
  if (spending?._tag === "Ours") return end(Ending.paidByLost(expired, spending))
  if (spending?._tag === "Elsewhere" && spending.ledger >= use.range.fromLedger)
    return end(Ending.spentUnused(expired, spending))
  const late = evidence.seen.latestLedger - settlement.authorizationExpiresLedger
  // The nonce was certainly used; a scan that does not show the transaction has missed it.
  if (use.isDated) return late >= unresolvedAfterLedgers ? end(Ending.unresolved(undefined, ledger)) : { _tag: "Wait" }
  // Either nothing used it, or no node has the ledgers of its use.
  const isSearched = searched.toLedger >= use.range.toLedger
  const patience = searched.toLedger < searched.fromLedger ? lostRecordLedgers : unresolvedAfterLedgers
  return isSearched || late >= patience ? end(expired) : { _tag: "Wait" }
}

/** The ledgers to search for the use of a nonce: the ledger in its entry, else every ledger of the life. */
const useOf = (settlement: OpenSettlement, nonce: SettlementSnapshot["nonce"]) => {
  const { authorizationExpiresLedger, recordedLedger } = settlement
  // A use after the expiry belongs to another authorization with the same nonce, and does not decide about this one.
  return typeof nonce === "number" && nonce <= authorizationExpiresLedger
    ? { isDated: true, range: { fromLedger: nonce, toLedger: nonce, before: 0 } }
    : {
        isDated: false,
        range: { fromLedger: recordedLedger, toLedger: authorizationExpiresLedger, before: lostRecordLedgers }
      }
}

/** The nonce is spent, or too old to be seen unspent: the transaction that used it decides, if we can find it. */
const whereSpent = (
  settlement: OpenSettlement,
  evidence: Evidence,
  snapshot: SettlementSnapshot,
  known: Landed | undefined
): Decision => {
  const { search } = evidence
  const ledger = known?.executed.ledger ?? snapshot.ledger
  const { nonce } = snapshot
  if (nonce === "unknown") return freeOrWait(settlement, evidence, ledger, known)
  const { isDated, range } = useOf(settlement, nonce)
  const { fromLedger, toLedger } = range
  if (search === undefined) return { _tag: "Search", ...range }
  const { numberUsedBy, spending } = search
  const landed = known ?? (numberUsedBy === "elsewhere" ? undefined : numberUsedBy)
  if (landed !== undefined && hasSucceeded(landed)) return end(Ending.succeeded(landed))
  if (spending?._tag === "Ours") return end(Ending.settledByOurs(spending, landed, ledger))
  const isWhole = search.fromLedger <= fromLedger && search.toLedger >= toLedger
  if (!isWhole) return freeOrWait(settlement, evidence, ledger, landed)
  // A use before the record belongs to another authorization: with an undated nonce it does not decide about this one.
  if (spending?._tag === "Elsewhere" && spending.ledger >= fromLedger)
    return end(Ending.spentElsewhere(landed, ledger, spending))
  // Every ledger of the authorization's life was scanned, and none used it.
  return !isDated && (landed !== undefined || numberUsedBy === "elsewhere")
    ? end(Ending.failedDead(landed, ledger))
    : freeOrWait(settlement, evidence, ledger, landed)
}

/** No proof yet: the channel is released, and the settlement waits for a proof, and finally for an operator. */
const freeOrWait = (
  settlement: OpenSettlement,
  { seen }: Evidence,
  ledger: number,
  landed: Landed | undefined
): Decision => {
  if (settlement.channelHeld) return { _tag: "Free", ledger }
  return seen.latestLedger >= settlement.authorizationExpiresLedger + unresolvedAfterLedgers
    ? end(Ending.unresolved(landed, ledger))
    : { _tag: "Wait" }
}
