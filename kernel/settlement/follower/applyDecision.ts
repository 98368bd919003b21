// Carries out the decision for an open settlement. Each change of its record carries the number of attempts that the
// decision was based on: a turn that outlived its lease, and decided on stale state, changes nothing.
import { Effect } from "effect"
import { bidCeiling, Network } from "../../config/Network.ts"
import { cancelTransaction } from "../../stellar/Envelope.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { Signer } from "../../signer/Signer.ts"
import { ChannelPool } from "../channels/ChannelPool.ts"
import { ChannelStore } from "../channels/ChannelStore.ts"
import { CrashPoints } from "../CrashPoints.ts"
import * as Ending from "../state/outcomes.ts"
import { makeConfirmOutcomes, shownBy } from "./confirmOutcomes.ts"
import { Outcomes } from "./Outcomes.ts"
import { rebid, signAnew } from "./rebid.ts"
import type { DecideOptions, Decision, Evidence, Outcome } from "../state/Settlement.ts"
import { continueTrace } from "../../TraceParent.ts"
import { type NewAttempt, type OpenRecord, Settlements } from "../store/Settlements.ts"
import { makeSubmitAttempt } from "./submitAttempt.ts"

const attemptsForRebuildMax = 12

/** This process's part of the input to a decision. */
export const makeOptionsFor = Effect.gen(function* () {
  const network = yield* Network
  const signer = yield* Signer
  return (record: OpenRecord): DecideOptions => ({
    inclusionStroopsMax: bidCeiling(network.feeCeilings(record.scheme), record.resourceFeeStroops),
    // After a rotation, signed transactions are sent as recorded.
    canSign: record.sponsor === signer.sponsor && signer.isOurs(record.channel),
    canRebuild: record.sponsor === signer.sponsor && record.attemptCount <= attemptsForRebuildMax
  })
})

const makeEnd = Effect.gen(function* () {
  const channels = yield* ChannelPool
  const confirmOutcome = yield* makeConfirmOutcomes
  const outcomes = yield* Outcomes
  const reached = yield* CrashPoints
  const settlements = yield* Settlements

  /** The outcome with its confirmations; undefined while the endpoints do not agree. */
  const confirmed = Effect.fnUntraced(function* (record: OpenRecord, outcome: Outcome, evidence: Evidence) {
    // An unresolved outcome claims nothing about the ledger.
    if (outcome.state === "unresolved") return outcome
    const { authorizationExpiresLedger, channel, innerHash } = record
    const claim = { promised: record, channel, innerHash, authorizationExpiresLedger, outcome }
    const confirmations = yield* confirmOutcome({ ...claim, shownBy: shownBy(outcome, evidence) })
    return typeof confirmations === "string" ? undefined : { ...outcome, confirmations }
  })

  return Effect.fnUntraced(function* (record: OpenRecord, decided: Outcome, evidence: Evidence) {
    const outcome = yield* confirmed(record, decided, evidence)
    if (outcome === undefined) return
    yield* reached("beforeResolve")
    let answer = yield* settlements.resolve(record.id, outcome, record.attemptCount)
    if (answer._tag === "TransactionTaken") {
      yield* Effect.logWarning("a transaction already ended another settlement; it did not pay this one").pipe(
        Effect.annotateLogs({ settlement: record.id, transaction: outcome.transaction })
      )
      const by = { transaction: outcome.transaction ?? "", isOurs: true }
      const taken = Ending.spentElsewhere(undefined, outcome.ledger ?? record.recordedLedger, by)
      answer = yield* settlements.resolve(
        record.id,
        { ...taken, ...(outcome.confirmations === undefined ? {} : { confirmations: outcome.confirmations }) },
        record.attemptCount
      )
    }
    if (answer._tag !== "Resolved") return
    yield* reached("afterResolve")
    yield* channels.freed
    yield* outcomes.complete([answer.record])
  })
})

/** Sends an attempt again, an attempt with a higher bid, or a no-op that cancels. */
const makeSend = Effect.gen(function* () {
  const clock = yield* LedgerClock
  const network = yield* Network
  const settlements = yield* Settlements
  const signer = yield* Signer
  const submitAttempt = yield* makeSubmitAttempt

  const addAndSubmit = Effect.fnUntraced(function* (record: OpenRecord, signed: Omit<NewAttempt, "recordedLedger">) {
    const { sequence } = yield* clock.now
    const attempt = { ...signed, recordedLedger: sequence }
    const number = yield* settlements.addAttempt(record.id, attempt, record.attemptCount)
    if (number !== undefined) yield* submitAttempt(record.id, { ...attempt, number })
  })

  const bid = Effect.fnUntraced(function* (record: OpenRecord, inclusionStroops: bigint) {
    const signed = yield* rebid(signer, record, inclusionStroops)
    yield* addAndSubmit(record, { kind: "payment", inclusionStroops, ...signed })
  })

  /**
   * A no-op of the channel with the same number. It bids the maximum, because the network charges only the actual cost
   * of inclusion.
   */
  const cancel = Effect.fnUntraced(function* (record: OpenRecord) {
    const inclusionStroops = bidCeiling(network.feeCeilings(record.scheme), 0n)
    const transaction = cancelTransaction({
      channel: record.channel,
      sequence: record.channelSequence,
      bounds: { ledgerMax: record.authorizationExpiresLedger + 1, timeMax: 0n }
    })
    const signed = yield* signer.signCancel({
      transaction,
      channel: record.channel,
      scheme: record.scheme,
      inclusionStroops
    })
    yield* addAndSubmit(record, { kind: "cancel", inclusionStroops, ...signed })
  })

  return { again: submitAttempt, bid, cancel }
})

/**
 * Rebuilds the settlement on another channel. Its own channel is released first, and leases wait until numbers were
 * reread: a turn that finds no channel changes nothing else, and the next one retries.
 */
const makeRebuild = Effect.gen(function* () {
  const channels = yield* ChannelStore
  const clock = yield* LedgerClock
  const pool = yield* ChannelPool
  const settlements = yield* Settlements
  const signer = yield* Signer
  const submitAttempt = yield* makeSubmitAttempt

  return Effect.fnUntraced(function* (record: OpenRecord, ledger: number) {
    if (yield* settlements.freeChannel(record.id, ledger, record.attemptCount)) yield* pool.freed
    const { sequence } = yield* clock.now
    const [lease] = yield* channels.take(1)
    if (lease === undefined) return
    const keep = Effect.gen(function* () {
      const signed = yield* signAnew(signer, record, lease)
      const attempt = { ...signed, recordedLedger: sequence }
      const number = yield* settlements.rebuild(record.id, lease, attempt, record.attemptCount)
      return number === undefined ? undefined : { ...attempt, number }
    })
    const kept = yield* Effect.onExit(keep, (exit) =>
      exit._tag === "Success" && exit.value !== undefined ? Effect.void : Effect.ignore(channels.release(lease))
    )
    if (kept === undefined) return
    yield* Effect.logInfo(
      "a settlement was rebuilt on another channel, since its channel's sequence number was used"
    ).pipe(Effect.annotateLogs({ settlement: record.id, transaction: kept.innerHash }))
    yield* submitAttempt(record.id, kept)
  })
})

export const makeApplyDecision = Effect.gen(function* () {
  const channels = yield* ChannelPool
  const settlements = yield* Settlements
  const end = yield* makeEnd
  const rebuild = yield* makeRebuild
  const send = yield* makeSend

  return Effect.fnUntraced(function* (record: OpenRecord, decision: Decision, evidence: Evidence) {
    switch (decision._tag) {
      case "End":
        return yield* end(record, decision.outcome, evidence).pipe(
          continueTrace("settlement.outcome", record.traceparent)
        )
      case "Resend":
        yield* send.again(record.id, decision.attempt)
        return
      case "Bid":
        return yield* send.bid(record, decision.inclusionStroops)
      case "Cancel":
        return yield* send.cancel(record)
      case "Rebuild":
        return yield* rebuild(record, decision.ledger)
      case "Free":
        if (yield* settlements.freeChannel(record.id, decision.ledger, record.attemptCount)) yield* channels.freed
        return
      // Requested, but the evidence for the decision is not available yet.
      case "ReadSnapshot":
      case "Search":
      case "Wait":
        return
    }
  })
})
