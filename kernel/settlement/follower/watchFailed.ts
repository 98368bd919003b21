// Watches failed settlements whose authorization can still be used: the failed transaction published it, so anyone may
// submit it until its last ledger. At each ledger their nonces are read in batches, at every endpoint. A use corrects
// the settlement. It is settled if the transaction, of any sender, carried this very authorization and moved exactly
// the promised amount; otherwise the authorization was spent in another transaction. While no settlement is watched, it
// only runs one statement per recovery period.
import { Duration, Effect } from "effect"
import { reconciler } from "../../actor/Actor.ts"
import { Limits } from "../../config/Limits.ts"
import { Lane } from "../../database/Connections.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { LedgerRpc } from "../../ledger/LedgerRpc.ts"
import { isReached } from "../../ledger/withinLedgerBound.ts"
import { Signer } from "../../signer/Signer.ts"
import { Authorizations } from "../Authorizations.ts"
import { Leases } from "../Leases.ts"
import { unresolvedAfterLedgers } from "../state/decide.ts"
import { spentText } from "../state/outcomes.ts"
import { type Correction, Settlements, type WatchedRecord } from "../store/Settlements.ts"
import { type OutcomeClaim, makeConfirmOutcomes } from "./confirmOutcomes.ts"
import { makeFindSpending, type Spending } from "./findSpending.ts"
import { Outcomes } from "./Outcomes.ts"

const watchedMax = 1_000
const noncesMax = 100
const leaseDuration = Duration.seconds(10)
const concurrency = 4

/** The endpoints' evidence for one nonce: the ledger that used it, or the last ledger that showed it unspent. */
type NonceEvidence = { readonly usedIn: number } | { readonly unspentAt: number | undefined }

/** The correction of the settlement after a use. Pure. */
const correctionOf = (
  { executed, isOurs, paid }: Pick<Spending, "executed" | "isOurs" | "paid">,
  confirmations: 1 | 2
): Correction => {
  const { closedAtSeconds, innerHash: transaction, ledger } = executed
  const common = { transaction, ledger, closedAtSeconds, confirmations }
  return paid === undefined
    ? {
        ...common,
        state: "failed",
        moved: undefined,
        reason: "settle_ledger_authorization_spent",
        message: spentText({ transaction, isOurs })
      }
    : { ...common, state: "settled", moved: paid, reason: undefined, message: undefined }
}

const makeReadNonces = Effect.gen(function* () {
  const authorizations = yield* Authorizations
  const clock = yield* LedgerClock
  const rpc = yield* LedgerRpc

  /** By id; settlements with an unreadable nonce are absent. */
  return Effect.fnUntraced(function* (records: ReadonlyArray<WatchedRecord>) {
    const evidence = new Map<string, NonceEvidence>()
    const others = yield* rpc.others(undefined)
    const readable = records.flatMap((record) => {
      const nonce = authorizations.nonceOf(record)
      return nonce === undefined || nonce === "none" ? [] : [{ record, query: { channel: record.channel, nonce } }]
    })
    for (let at = 0; at < readable.length; at += noncesMax) {
      const some = readable.slice(at, at + noncesMax)
      const queries = some.map(({ query }) => query)
      for (const { snapshots } of others.length === 0 ? [rpc] : others) {
        const answer = yield* Effect.option(snapshots(queries))
        if (answer._tag === "None" || !(yield* isReached(clock, answer.value.latestLedger))) continue
        const { latestLedger, snapshots: answers } = answer.value
        for (const [index, { record }] of some.entries()) {
          const { authorizationExpiresLedger: last, id } = record
          const nonce = answers[index]!.nonce
          const before = evidence.get(id)
          // One endpoint that shows a use is enough to follow it up: we confirm the use before we store anything.
          if (before !== undefined && "usedIn" in before) continue
          const isUsed = typeof nonce === "number" && nonce <= last
          evidence.set(id, isUsed ? { usedIn: nonce } : { unspentAt: latestLedger <= last ? latestLedger : undefined })
        }
      }
    }
    return evidence
  })
})

/** Applies a finding about one settlement's authorization. */
const makeCorrect = Effect.gen(function* () {
  const confirmOutcome = yield* makeConfirmOutcomes
  const outcomes = yield* Outcomes
  const settlements = yield* Settlements

  return Effect.fnUntraced(function* (record: WatchedRecord, spending: Spending) {
    const decided = correctionOf(spending, 1)
    const claim: OutcomeClaim = {
      promised: record,
      channel: record.channel,
      innerHash: record.innerHash,
      authorizationExpiresLedger: record.authorizationExpiresLedger,
      outcome: { ...decided, channel: { sequenceUsed: undefined, ledger: spending.executed.ledger } },
      shownBy: spending.executed.endpoint
    }
    const confirmations = yield* confirmOutcome(claim)
    if (typeof confirmations === "string") return
    let answer = yield* settlements.correct(record.id, { ...decided, confirmations })
    // The transaction has ended another settlement, so it did not pay this one.
    if (answer._tag === "TransactionTaken")
      answer = yield* settlements.correct(record.id, correctionOf({ ...spending, paid: undefined }, confirmations))
    if (answer._tag !== "Resolved") return
    yield* Effect.logWarning(
      "the authorization of a failed settlement was used later; the settlement is corrected"
    ).pipe(
      Effect.annotateLogs({
        settlement: record.id,
        transaction: spending.executed.innerHash,
        state: answer.record.state
      })
    )
    yield* outcomes.complete([answer.record])
  })
})

const makeFollowUp = Effect.gen(function* () {
  const clock = yield* LedgerClock
  const signer = yield* Signer
  const settlements = yield* Settlements
  const correct = yield* makeCorrect
  const findSpending = yield* makeFindSpending
  /** The last ledger that showed an authorization unspent to this process. The next search begins after it. */
  const unspentAt = new Map<string, number>()

  const search = (record: WatchedRecord, fromLedger: number, toLedger: number) =>
    findSpending({
      promised: record,
      own: {
        sponsors: new Set(signer.sponsors),
        channels: new Set([...signer.channels, ...signer.formerChannels, record.channel])
      },
      fromLedger,
      toLedger
    })

  return Effect.fnUntraced(function* (record: WatchedRecord, shown: NonceEvidence | undefined) {
    const { authorizationExpiresLedger: last, id, watchAfter } = record
    const end = Effect.fnUntraced(function* (isDead: boolean) {
      unspentAt.delete(id)
      yield* settlements.unwatch(id, isDead)
    })
    if (shown !== undefined && "unspentAt" in shown && shown.unspentAt !== undefined) {
      // In its last ledger the authorization ends unspent: no later ledger can use it.
      if (shown.unspentAt === last) return yield* end(true)
      unspentAt.set(id, shown.unspentAt)
      return
    }
    const { sequence } = yield* clock.now
    const usedIn = shown !== undefined && "usedIn" in shown ? shown.usedIn : undefined
    if (usedIn === undefined && sequence <= last) return
    const toLedger = usedIn ?? last
    let next = usedIn ?? Math.max(watchAfter, unspentAt.get(id) ?? 0) + 1
    while (next <= toLedger) {
      const { scannedTo, spending } = yield* search(record, next, toLedger)
      if (spending !== undefined) {
        unspentAt.delete(id)
        return yield* correct(record, spending)
      }
      if (scannedTo < next) break
      next = scannedTo + 1
    }
    if (usedIn === undefined && next > last) return yield* end(true)
    if (sequence > last + unresolvedAfterLedgers) yield* end(false)
  })
})

export const startWatch = Effect.gen(function* () {
  const clock = yield* LedgerClock
  const leases = yield* Leases
  const limits = yield* Limits
  const settlements = yield* Settlements
  const followUp = yield* makeFollowUp
  const readNonces = yield* makeReadNonces
  let isWatching = false

  const turn = Effect.gen(function* () {
    if (!(yield* leases.hold("failed settlements", leaseDuration))) return
    const records = yield* settlements.watched(watchedMax)
    isWatching = records.length > 0
    if (!isWatching) return
    const shown = yield* readNonces(records)
    yield* Effect.forEach(
      records,
      (record) =>
        Effect.catchCause(followUp(record, shown.get(record.id)), (cause) =>
          Effect.logWarning("could not watch a failed settlement; the next run retries", cause).pipe(
            Effect.annotateLogs({ settlement: record.id })
          )
        ),
      { concurrency, discard: true }
    )
  })
  const watch = yield* reconciler({
    id: "failed-settlements",
    every: limits.recoveryPeriod,
    turn: Effect.provideService(turn, Lane, "payments")
  })
  yield* clock.subscribe(Effect.suspend(() => (isWatching ? watch.wake : Effect.void)))
})
