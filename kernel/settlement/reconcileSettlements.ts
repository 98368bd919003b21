// The follower: one reconciler for all open settlements of all replicas. Each turn it asks the ledger about every open
// hash (or, when they are many, looks through the new ledgers once), lets `Settlement.decide` say what follows, and
// does it: end the settlement, send identical bytes again, outbid, cancel. It is woken by each record and each new
// ledger; the recovery period is its backstop. It takes no input and depends on nothing it remembers, so that a restart
// changes nothing.
import { Clock, Duration, Effect, Option } from "effect"
import { type Reconciler, reconciler } from "../Actor.ts"
import { Limits } from "../config/Limits.ts"
import { bidCeiling, type FeeCeilings } from "../config/Network.ts"
import type { ExecutedTransaction } from "../ledger/Executed.ts"
import { cancelTransaction } from "../ledger/Envelope.ts"
import { LedgerClock } from "../ledger/LedgerClock.ts"
import { LedgerRpc } from "../ledger/LedgerRpc.ts"
import type { LedgerUnavailable } from "../ledger/LedgerUnavailable.ts"
import { Signer } from "../signer/Signer.ts"
import { ChannelPool } from "./channels/ChannelPool.ts"
import { reached } from "./CrashPoints.ts"
import { Leases } from "./Leases.ts"
import { Outcomes } from "./Outcomes.ts"
import { rebid } from "./rebid.ts"
import { makeScanner } from "./scanLedgers.ts"
import { type ChannelAccount, decide, type Decision, type Observation, type Outcome } from "./Settlement.ts"
import { type OpenRecord, Settlements } from "./Settlements.ts"
import { submitAttempt } from "./submitAttempt.ts"

export interface FollowerOptions {
  /** What a successful transaction moved, when it is the movement that was promised. Given by the scheme. */
  readonly moved: (record: OpenRecord, executed: ExecutedTransaction) => bigint | undefined
  readonly feeCeilings: (scheme: string) => FeeCeilings
  /**
   * The ledger in which a settlement's authorization was used, as far as the ledger still tells. Given by the scheme.
   */
  readonly usedIn: (record: OpenRecord) => Effect.Effect<number | undefined, LedgerUnavailable>
}

/** Open settlements looked at in one turn: more than there can be channels to hold them. */
const batchMax = 2_000
/** Hashes asked for at a time. */
const concurrency = 16
/** A replica that stops is replaced after this. */
const leaseDuration = Duration.seconds(10)
/** A recorded attempt that nobody has sent by then was lost with its process. */
const unsentAfterMillis = 2_000

/** Starts the follower in the current Scope. */
export const startFollower = Effect.fnUntraced(function* (options: FollowerOptions) {
  const settlements = yield* Settlements
  const rpc = yield* LedgerRpc
  const clock = yield* LedgerClock
  const limits = yield* Limits
  const leases = yield* Leases
  const outcomes = yield* Outcomes
  const channels = yield* ChannelPool
  const signer = yield* Signer

  const observed = (record: OpenRecord, kind: "payment" | "cancel", executed: ExecutedTransaction): Observation => ({
    _tag: "Included",
    kind,
    executed,
    moved: kind === "payment" && executed.succeeded ? options.moved(record, executed) : undefined
  })
  const scan = yield* makeScanner({ observed })

  const observe = Effect.fnUntraced(function* (record: OpenRecord) {
    const answer = yield* rpc.transaction(record.innerHash)
    if (answer._tag === "Included") return observed(record, "payment", answer.executed)
    const cancel = record.attempts.find(({ kind }) => kind === "cancel")
    const cancelled = cancel === undefined ? undefined : yield* rpc.transaction(cancel.innerHash)
    if (cancelled?._tag === "Included") return observed(record, "cancel", cancelled.executed)
    // Both are absent only as far as both answers reach: they may come from different nodes.
    const latestLedger = Math.min(answer.latestLedger, cancelled?.latestLedger ?? answer.latestLedger)
    const oldestLedger = Math.max(answer.oldestLedger, cancelled?.oldestLedger ?? answer.oldestLedger)
    return { _tag: "Absent", latestLedger, oldestLedger, channel: undefined } as Observation
  })

  const end = Effect.fnUntraced(function* (record: OpenRecord, outcome: Outcome) {
    yield* reached("beforeResolve")
    // Where the ledger no longer shows the movement itself, what moved is what was promised.
    const moved = outcome.state === "settled" ? (outcome.moved ?? record.amount) : outcome.moved
    if (!(yield* settlements.resolve(record.id, { ...outcome, moved }))) return
    yield* reached("afterResolve")
    yield* channels.freed
    yield* Effect.flatMap(settlements.byIds([record.id]), outcomes.complete)
  })

  const decideOn = (record: OpenRecord, seen: Observation): Decision =>
    decide(record, seen, {
      inclusionStroopsMax: bidCeiling(options.feeCeilings(record.scheme), record.resourceFeeStroops)
    })

  /** The channel's account, and then the transaction once more: it may have landed between the two questions. */
  const observeWithChannel = Effect.fnUntraced(function* (record: OpenRecord) {
    const { accounts, latestLedger } = yield* rpc.accounts([record.channel])
    const account = accounts.get(record.channel)
    const channel: ChannelAccount = {
      sequence: account?.sequence,
      ledger: latestLedger,
      sequenceLedger: account === undefined ? undefined : Option.getOrUndefined(account.sequenceLedger),
      // Only looked at once nothing can land any more.
      authorizationLedger: latestLedger < record.authorizationExpiresLedger ? undefined : yield* options.usedIn(record)
    }
    const seen = yield* observe(record)
    return seen._tag === "Included" ? seen : { ...seen, channel }
  })

  const act = Effect.fnUntraced(function* (record: OpenRecord, decision: Decision) {
    switch (decision._tag) {
      case "End":
        return yield* end(record, decision.outcome)
      case "Resend": {
        const newest = record.attempts.at(-1)
        return newest === undefined ? undefined : yield* submitAttempt(record.id, newest)
      }
      case "Bid": {
        const signed = yield* rebid(record, decision.inclusionStroops)
        return yield* addAndSubmit(record, { kind: "payment", inclusionStroops: decision.inclusionStroops, ...signed })
      }
      case "Cancel": {
        const inclusionStroops = bidCeiling(options.feeCeilings(record.scheme), 0n)
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
        return yield* addAndSubmit(record, { kind: "cancel", inclusionStroops, ...signed })
      }
      // The channel was asked: what is needed to decide is not there yet.
      case "AskChannel":
      case "Wait":
        return
    }
  })

  const addAndSubmit = Effect.fnUntraced(function* (
    record: OpenRecord,
    signed: {
      kind: "payment" | "cancel"
      inclusionStroops: bigint
      envelope: string
      innerHash: string
      outerHash: string
    }
  ) {
    const { sequence } = yield* clock.now
    const attempt = { ...signed, recordedLedger: sequence }
    if (yield* settlements.addAttempt(record.id, attempt)) {
      yield* submitAttempt(record.id, { ...attempt, number: record.attempts.length + 1 })
    }
  })

  /** Sent in this very ledger: nothing can have been included yet. Not sent yet: whoever recorded it is about to. */
  const isDue = (record: OpenRecord, sequence: number, now: number): boolean => {
    const newest = record.attempts.at(-1)
    if (newest?.sentLedger !== undefined) return sequence > record.recordedLedger
    // By the ledger as well as by the clock, which may be wrong.
    return now - record.recordedAt.getTime() >= unsentAfterMillis || sequence > (newest?.recordedLedger ?? 0) + 1
  }

  const follow = Effect.fn("settlement.follow")(function* (record: OpenRecord, seen: Observation | undefined) {
    const decision = decideOn(record, seen ?? (yield* observe(record)))
    yield* act(record, decision._tag === "AskChannel" ? decideOn(record, yield* observeWithChannel(record)) : decision)
  })

  const turn = Effect.gen(function* () {
    if (!(yield* leases.hold("settlements", leaseDuration))) return
    const open = yield* settlements.open(batchMax)
    if (open.length === 0) return
    const { sequence } = yield* clock.now
    const now = yield* Clock.currentTimeMillis
    const records = open.filter((record) => isDue(record, sequence, now))
    const seen = yield* scan(records)
    yield* Effect.forEach(
      records,
      (record) =>
        follow(record, seen.get(record.id)).pipe(
          Effect.catch((error) =>
            Effect.logWarning("an open settlement could not be followed this time", error).pipe(
              Effect.annotateLogs({ settlement: record.id })
            )
          )
        ),
      { concurrency, discard: true }
    )
  })

  const follower: Reconciler = yield* reconciler({ id: "settlements", every: limits.recoveryPeriod, turn })
  yield* clock.subscribe(follower.wake)
  return follower
})
