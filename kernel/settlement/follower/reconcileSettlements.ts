// The follower: one reconciler for all open settlements of all replicas. Each turn it reads the evidence of the due
// settlements, calls `decide.ts`, and applies the decision. Each record and each new ledger wakes it; the recovery
// period is its backstop. It takes no input and keeps no required memory, so a restart changes nothing. A failure of
// one settlement, a bug included, affects that settlement only.
import { Cause, Clock, Duration, Effect } from "effect"
import { type Reconciler, reconciler } from "../../actor/Actor.ts"
import { Limits } from "../../config/Limits.ts"
import { Lane } from "../../database/Connections.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { Authorizations } from "../Authorizations.ts"
import { makeApplyDecision, makeOptionsFor } from "./applyDecision.ts"
import { decide, isDue } from "../state/decide.ts"
import { makeAskHash, makeReadSnapshots, makeSearcher } from "./gatherEvidence.ts"
import { Leases } from "../Leases.ts"
import { makeScanner } from "./scanLedgers.ts"
import type { Evidence, Seen, SettlementSnapshot } from "../state/Settlement.ts"
import { type OpenRecord, Settlements } from "../store/Settlements.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

/** Maximum open settlements in one turn: more than channels can hold. */
const batchMax = 2_000
/** Concurrent polls of the ledger. */
const pollConcurrency = 16
/** Maximum concurrent settlements with a seen outcome: they need no poll, and their writes share one statement. */
const outcomeConcurrency = 50
/** Another replica takes over after this, when a replica stops. */
const leaseDuration = Duration.seconds(10)

/** One settlement's step: a failure, a defect or an interruption of it is logged and ends the step only. */
const guarded = <A, E, R>(record: OpenRecord, step: Effect.Effect<A, E, R>): Effect.Effect<A | undefined, never, R> =>
  Effect.catchCause(step, (cause) => {
    const reported = Cause.hasDies(cause)
      ? Effect.logError("following an open settlement failed with a defect; other settlements are not affected", cause)
      : Effect.logWarning("could not follow an open settlement; the next run retries", cause)
    return Effect.as(reported.pipe(Effect.annotateLogs({ settlement: record.id })), undefined)
  })

/** A step for each settlement, with limited concurrency. */
const eachOf = <A, E, R>(
  records: ReadonlyArray<OpenRecord>,
  step: (record: OpenRecord) => Effect.Effect<A, E, R>,
  concurrency = pollConcurrency
) => Effect.forEach(records, (record) => guarded(record, step(record)), { concurrency })

/**
 * Runs a step for each settlement: together for those that ended on the ledger, then with limited concurrency for the
 * others.
 */
const endedFirst = <A, E, R>(
  records: ReadonlyArray<OpenRecord>,
  isEnded: (record: OpenRecord) => boolean,
  step: (record: OpenRecord) => Effect.Effect<A, E, R>
) => {
  const others = records.filter((record) => !isEnded(record))
  return Effect.andThen(eachOf(records.filter(isEnded), step, outcomeConcurrency), eachOf(others, step))
}

const makeReadDue = Effect.gen(function* () {
  const clock = yield* LedgerClock
  const settlements = yield* Settlements

  return Effect.gen(function* () {
    const open = yield* settlements.open(batchMax)
    if (open.length === 0) return []
    yield* clock.attend
    const { sequence } = yield* clock.now
    const now = yield* Clock.currentTimeMillis
    return open.filter((record) => isDue(record, { sequence, millisSinceRecord: now - record.recordedAt.getTime() }))
  })
})

/** Reads the evidence of open settlements, many at a time. */
const makePolls = Effect.gen(function* () {
  const authorizations = yield* Authorizations
  const askHash = yield* makeAskHash
  const optionsFor = yield* makeOptionsFor
  const readSnapshots = yield* makeReadSnapshots
  const scan = yield* makeScanner

  /** The state of each settlement's hashes: by one scan of the new ledgers, or by a request each. */
  const poll = Effect.fnUntraced(function* (records: ReadonlyArray<OpenRecord>) {
    const scanned = yield* scan(records)
    const seen = new Map<string, Seen>()
    yield* eachOf(records, (record) =>
      Effect.map(scanned.has(record.id) ? Effect.succeed(scanned.get(record.id)!) : askHash(record), (one) =>
        seen.set(record.id, one)
      )
    )
    return seen
  })

  /** Channel and nonce of the settlements that hashes do not decide. */
  const pollCloser = Effect.fnUntraced(function* (records: ReadonlyArray<OpenRecord>, seen: ReadonlyMap<string, Seen>) {
    const doubtful = yield* eachOf(records, (record) =>
      Effect.sync(() => {
        const evidence = { seen: seen.get(record.id)!, snapshot: undefined, search: undefined }
        const isDoubtful = decide(record, evidence, optionsFor(record))._tag === "ReadSnapshot"
        return isDoubtful ? { record, nonce: authorizations.nonceOf(record) } : undefined
      })
    )
    return yield* Effect.catch(readSnapshots(doubtful.filter((one) => one !== undefined)), (error) =>
      Effect.as(
        Effect.logWarning("channel snapshots could not be read", error),
        new Map() as ReadonlyMap<string, SettlementSnapshot>
      )
    )
  })

  return { poll, pollCloser }
})

/** Follows one settlement: further evidence, the decision, and its changes. */
const makeFollow = Effect.gen(function* () {
  const applyDecision = yield* makeApplyDecision
  const askHash = yield* makeAskHash
  const optionsFor = yield* makeOptionsFor
  const search = yield* makeSearcher

  return Effect.fnUntraced(function* (record: OpenRecord, first: Seen, snapshot: SettlementSnapshot | undefined) {
    // It may have landed between the two requests.
    const seen = snapshot === undefined || first._tag === "Included" ? first : yield* askHash(record)
    let evidence: Evidence = { seen, snapshot, search: undefined }
    let decision = decide(record, evidence, optionsFor(record))
    if (decision._tag === "Search") {
      evidence = { ...evidence, search: yield* search(record, decision) }
      decision = decide(record, evidence, optionsFor(record))
    }
    yield* applyDecision(record, decision, evidence)
  }, withSpanIfSampled("settlement.follow"))
})

export const startFollower = Effect.gen(function* () {
  const clock = yield* LedgerClock
  const limits = yield* Limits
  const leases = yield* Leases
  const follow = yield* makeFollow
  const readDue = yield* makeReadDue
  const { poll, pollCloser } = yield* makePolls

  const turn = Effect.gen(function* () {
    if (!(yield* leases.hold("settlements", leaseDuration))) return
    const due = yield* readDue
    if (due.length === 0) return
    const seen = yield* poll(due)
    const answered = due.filter(({ id }) => seen.has(id))
    const snapshots = yield* pollCloser(answered, seen)
    const isEnded = ({ id }: OpenRecord) => seen.get(id)!._tag === "Included" && !snapshots.has(id)
    yield* endedFirst(answered, isEnded, (record) => follow(record, seen.get(record.id)!, snapshots.get(record.id)))
  })

  const follower: Reconciler = yield* reconciler({
    id: "settlements",
    every: limits.recoveryPeriod,
    turn: Effect.provideService(turn, Lane, "payments")
  })
  yield* clock.subscribe(follower.wake)
  return follower
})
