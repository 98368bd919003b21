// The follower: one reconciler for all open settlements of all replicas. Each turn it asks the ledger about every open hash,
// lets `Settlement.decide` say what follows, and does it: end the settlement, send identical bytes again, outbid, cancel. It
// is woken by each record and each new ledger; the recovery period is its backstop. It takes no input and remembers nothing, so
// that a restart changes nothing.
import { Duration, Effect } from "effect"
import { type Reconciler, reconciler } from "../Actor.ts"
import { Limits } from "../config/Limits.ts"
import { type FeeCeilings } from "../config/Network.ts"
import type { ExecutedTransaction } from "../ledger/Executed.ts"
import { cancelTransaction } from "../ledger/Envelope.ts"
import { LedgerClock } from "../ledger/LedgerClock.ts"
import { LedgerRpc } from "../ledger/LedgerRpc.ts"
import { Signer } from "../signer/Signer.ts"
import { ChannelPool } from "./ChannelPool.ts"
import { reached } from "./CrashPoints.ts"
import { Leases } from "./Leases.ts"
import { Outcomes } from "./Outcomes.ts"
import { rebid } from "./rebid.ts"
import { decide, type Decision, type Observation, type Outcome } from "./Settlement.ts"
import { type OpenRecord, Settlements } from "./Settlements.ts"
import { submitAttempt } from "./submitAttempt.ts"

export interface FollowerOptions {
  /** What a successful transaction moved, when it is the movement that was promised. Given by the scheme. */
  readonly moved: (record: OpenRecord, executed: ExecutedTransaction) => bigint | undefined
  readonly feeCeilings: (scheme: string) => FeeCeilings
}

/** Open settlements looked at in one turn. */
const batchMax = 2_000
/** Hashes asked for at a time. */
const concurrency = 16
/** A replica that stops is replaced after this. */
const leaseDuration = Duration.seconds(10)
/** A recorded attempt that nobody has sent by then was lost with its process. */
const unsentAfterMillis = 2_000

/** Starts the follower in the current Scope. */
export const startFollower = Effect.fnUntraced(function*(options: FollowerOptions) {
  const settlements = yield* Settlements
  const rpc = yield* LedgerRpc
  const clock = yield* LedgerClock
  const limits = yield* Limits
  const leases = yield* Leases
  const outcomes = yield* Outcomes
  const channels = yield* ChannelPool
  const signer = yield* Signer

  const observe = Effect.fnUntraced(function*(record: OpenRecord) {
    const answer = yield* rpc.transaction(record.innerHash)
    if (answer._tag === "Included") {
      const { executed } = answer
      return { _tag: "Included", kind: "payment", executed, moved: executed.succeeded ? options.moved(record, executed) : undefined } as Observation
    }
    const cancel = record.attempts.find(({ kind }) => kind === "cancel")
    const cancelled = cancel === undefined ? undefined : yield* rpc.transaction(cancel.innerHash)
    if (cancelled?._tag === "Included") {
      return { _tag: "Included", kind: "cancel", executed: cancelled.executed, moved: undefined } as Observation
    }
    // Both are absent only as far as both answers reach: they may come from different nodes.
    const latestLedger = Math.min(answer.latestLedger, cancelled?.latestLedger ?? answer.latestLedger)
    const oldestLedger = Math.max(answer.oldestLedger, cancelled?.oldestLedger ?? answer.oldestLedger)
    return { _tag: "Absent", latestLedger, oldestLedger, channel: undefined } as Observation
  })

  const end = Effect.fnUntraced(function*(record: OpenRecord, outcome: Outcome) {
    yield* reached("beforeResolve")
    if (!(yield* settlements.resolve(record.id, outcome))) return
    yield* reached("afterResolve")
    yield* channels.freed
    yield* Effect.flatMap(settlements.byIds([record.id]), outcomes.complete)
  })

  const act = Effect.fnUntraced(function*(record: OpenRecord, seen: Observation, decision: Decision) {
    switch (decision._tag) {
      case "End":
        return yield* end(record, decision.outcome)
      case "Resend": {
        const newest = record.attempts.at(-1)
        return newest === undefined ? undefined : yield* submitAttempt(record.id, newest)
      }
      case "Bid": {
        const signed = yield* rebid(record, decision.inclusionStroops, options.feeCeilings(record.scheme))
        return yield* addAndSubmit(record, { kind: "payment", inclusionStroops: decision.inclusionStroops, ...signed })
      }
      case "Cancel": {
        const inclusionStroops = options.feeCeilings(record.scheme).inclusionStroopsMax
        const transaction = cancelTransaction({
          channel: record.channel,
          sequence: record.channelSequence,
          bounds: { ledgerMax: record.authorizationExpiresLedger + 1, timeMax: 0n }
        })
        const signed = yield* signer.signCancel({ transaction, channel: record.channel, inclusionStroops })
        return yield* addAndSubmit(record, { kind: "cancel", inclusionStroops, ...signed })
      }
      case "AskChannel": {
        const { accounts, latestLedger } = yield* rpc.accounts([record.channel])
        const sequence = accounts.get(record.channel)?.sequence
        if (sequence === undefined || seen._tag !== "Absent") return
        const again = { ...seen, channel: { sequence, ledger: latestLedger } }
        const decided = decide(record, again, { inclusionStroopsMax: 0n })
        return decided._tag === "End" ? yield* end(record, decided.outcome) : undefined
      }
      case "Wait":
        return
    }
  })

  const addAndSubmit = Effect.fnUntraced(function*(
    record: OpenRecord,
    signed: { kind: "payment" | "cancel"; inclusionStroops: bigint; envelope: string; innerHash: string; outerHash: string }
  ) {
    const { sequence } = yield* clock.now
    const attempt = { ...signed, recordedLedger: sequence }
    if (yield* settlements.addAttempt(record.id, attempt)) {
      yield* submitAttempt(record.id, { ...attempt, number: record.attempts.length + 1 })
    }
  })

  const follow = Effect.fn("settlement.follow")(function*(record: OpenRecord) {
    const { sequence } = yield* clock.now
    const newest = record.attempts.at(-1)
    const unsent = newest?.sentLedger === undefined
    const age = (yield* Effect.clockWith((clock) => clock.currentTimeMillis)) - record.recordedAt.getTime()
    // Sent in this very ledger: nothing can have been included yet. Not sent yet: the one who recorded it is about to.
    if (unsent ? age < unsentAfterMillis : sequence <= record.recordedLedger) return
    const seen = yield* observe(record)
    const decision = decide(record, seen, { inclusionStroopsMax: options.feeCeilings(record.scheme).inclusionStroopsMax })
    yield* act(record, seen, decision)
  })

  const turn = Effect.gen(function*() {
    if (!(yield* leases.hold("settlements", leaseDuration))) return
    const records = yield* settlements.open(batchMax)
    yield* Effect.forEach(records, (record) =>
      follow(record).pipe(
        Effect.catch((error) =>
          Effect.logWarning("an open settlement could not be followed this time", error).pipe(Effect.annotateLogs({ settlement: record.id }))
        )
      ), { concurrency, discard: true })
  })

  // While something is open here the follower also looks at the poll interval; otherwise only in recovery.
  const follower: Reconciler = yield* reconciler({ id: "settlements", every: limits.recoveryPeriod, turn })
  yield* clock.subscribe(follower.wake)
  return follower
})
