// The ledger's time, kept by one follower: the current head, the close interval, the inclusion fee. Reading it does no
// I/O. A reading carries its age, counted since the ledger last advanced, by monotonic time; a caller that depends on
// it refuses a reading that is too old, and does not guess. A single endpoint never decides for long
// (`headSelection.ts`). An endpoint that is behind, ahead or silent is called last. The follower starts to poll when
// the next ledger is expected, polls until it arrives, and wakes every waiter. While no payment is active it skips
// several ledgers, some seconds at most, and wakes nothing. A payment calls `attend`, and has a fresh reading before it
// is verified.
import { Clock, Context, Duration, Effect, Fiber, Latch, Layer, type Scope } from "effect"
import { reconciler } from "../actor/Actor.ts"
import { contract } from "../contract/Contract.ts"
import { monotonicMillis } from "../time/monotonicMillis.ts"
import type { Supervisor } from "../actor/Supervisor.ts"
import { initialHead, type HeadState, selectHead, relationOf, unfitEndpoints } from "./headSelection.ts"
import { type ClockSkew, makeClockSkew, skewSecondsMax } from "./ClockSkew.ts"
import { type FeeStats, type LatestLedger, LedgerRpc, LedgerUnavailable } from "./LedgerRpc.ts"
import { makeCloseIntervals, type CloseIntervals } from "./closeInterval.ts"
import { withSpanIfSampled } from "../effect/withSpanIfSampled.ts"

export interface LedgerTime {
  /** The selected head. It goes back only if the network did, or if a selection was wrong. */
  readonly sequence: number
  /** Unix seconds of its close. */
  readonly closedAtSeconds: number
  /** Duration of a ledger with content, now: 0.1 to 60; 1 until it is measured (`activeCloseInterval`). */
  readonly secondsPerLedger: number
  /** The same by the fastest clock of an honest client, never slower: 0.1 to 60 (`minClientCloseInterval`). */
  readonly fastestSecondsPerLedger: number
  /** One endpoint's first answer: it proves nothing until the ledger has advanced or another endpoint agrees. */
  readonly isFirstWord: boolean
}

export interface InclusionFees extends FeeStats {
  /** The network's current inclusion fee, stroops: from a recent refusal, else the median of recent transactions. */
  readonly asked: bigint
}

/** The ledger's time by the last reading, regardless of its age: for operators. */
interface LedgerStatus {
  readonly time: LedgerTime | undefined
  /** Seconds since the ledger last advanced. */
  readonly ageSeconds: number
  readonly isFresh: boolean
  /** The error of this machine's clock, seconds, positive when ahead; absent before a new ledger was seen. */
  readonly skewSeconds: number | undefined
  readonly isSkewed: boolean
}

/** A ledger that has not advanced for this long, or for three of its intervals, is not fresh. */
const ageMax = Duration.seconds(30)
const ageLedgersMax = 3
const pollMin = 200
const pollMax = 1_000
const feeStatsEvery = Duration.seconds(5)
const feeStatsEveryUnattended = Duration.seconds(30)
/** Validity of a fee from a refusal; refusals of open settlements repeat it. */
const reportedFor = Duration.seconds(30)
/** Poll interval of all endpoints; they are polled sooner while no new ledger arrives. */
const surveyMillis = 10_000
const surveyStillMillis = 2_000
/** Duration of `attend`, extended by some ledgers: the next payment often follows soon. */
const interestMillis = 10_000
const interestLedgers = 2
/** Samples of the close interval before the follower skips a poll. */
const pollsBeforeRest = 5
/** Rest of the follower while idle, milliseconds: as many ledgers as fit, at least one. */
const restMillis = 9_500
/** Share of a ledger's interval before which the next one is not expected. */
const restShare = 0.85
/** The same share of the shortest recent interval, while active. */
const restShareAttended = 0.95
/** Longest time that a payment waits for a poll. */
const patience = Duration.seconds(1)

/** Warns once when this machine's clock is wrong, and logs once when it is right again. */
const warningOf = (skew: ClockSkew) => {
  let wasSkewed = false
  return Effect.suspend(() => {
    if (skew.isWrong() === wasSkewed) return Effect.void
    wasSkewed = skew.isWrong()
    const seconds = Math.round(skew.seconds() ?? 0)
    return wasSkewed
      ? Effect.logWarning(
          `this machine's clock and the ledger's differ by more than ${skewSecondsMax} s; ` +
            "set the clock, or check the endpoints"
        ).pipe(Effect.annotateLogs({ seconds }))
      : Effect.logInfo("this machine's clock agrees with the ledger's again").pipe(Effect.annotateLogs({ seconds }))
  })
}

const timeOf = (belief: HeadState, paces: CloseIntervals): LedgerTime => ({
  sequence: belief.newest.sequence,
  closedAtSeconds: belief.newest.closedAtSeconds,
  secondsPerLedger: paces.busy(),
  fastestSecondsPerLedger: paces.fastest(),
  isFirstWord: belief.isUnconfirmed
})

const doubted = new LedgerUnavailable({
  operation: "getLatestLedger",
  message: "the ledger may be far ahead of the last head seen"
})

const makeFollower = Effect.gen(function* () {
  const rpc = yield* LedgerRpc
  const skew = makeClockSkew()
  let belief: HeadState | undefined
  const paces = makeCloseIntervals()
  const warnOfSkew = warningOf(skew)
  const { pace } = paces
  let surveyedAt = -Infinity
  let polledAt = -Infinity

  /** All endpoints' answers if the first one is new or unexpected, if nothing advances, and periodically. */
  const secondPoll = Effect.fnUntraced(function* (first: LatestLedger, at: number) {
    const relation = belief === undefined ? "first" : relationOf(belief, first, at, pace())
    const isExpected = relation === "same" || relation === "next"
    const still = belief !== undefined && relation === "same" && at - belief.advancedAt > 2_500 * pace()
    const every = still ? surveyStillMillis : surveyMillis
    if (isExpected && at - surveyedAt < every) return []
    surveyedAt = at
    return yield* rpc.latestLedgers
  })

  /** Polls once and returns how the head changed. Fails when no endpoint answers. */
  const poll = Effect.gen(function* () {
    polledAt = yield* monotonicMillis
    const first = yield* rpc.latestLedger
    const second = yield* secondPoll(first, yield* monotonicMillis)
    const machineMillis = yield* Clock.currentTimeMillis
    const at = yield* monotonicMillis
    const polled = { first, second, at, closeInterval: pace(), machineSeconds: machineMillis / 1_000 }
    const before = belief
    if (before === undefined) return (belief = initialHead(polled)) === undefined ? "none" : "advanced"
    const believed = selectHead(before, polled)
    belief = believed.state
    if (second.length > 0) yield* rpc.setUnfit(unfitEndpoints(belief, second, polled.at, polled.closeInterval))
    if (believed.change === "none") return believed.change
    if (believed.change === "advanced") {
      const ledgers = belief.newest.sequence - before.newest.sequence
      const closeSeconds = belief.newest.closedAtSeconds - before.newest.closedAtSeconds
      paces.note({ ledgers, millis: polled.at - before.advancedAt, closeSeconds })
      skew.note(machineMillis, belief.newest.closedAtSeconds)
    } else {
      paces.forget()
      skew.forget()
      yield* Effect.logWarning("the ledger continues from a head that differs from the last one seen").pipe(
        Effect.annotateLogs({ from: before.newest.sequence, to: belief.newest.sequence })
      )
    }
    yield* warnOfSkew
    return believed.change
  }).pipe(withSpanIfSampled("LedgerClock.poll"))

  const status = Effect.map(monotonicMillis, (at): LedgerStatus => {
    const ageMillis = belief === undefined ? Infinity : at - belief.advancedAt
    return {
      time: belief === undefined ? undefined : timeOf(belief, paces),
      ageSeconds: ageMillis / 1_000,
      isFresh: ageMillis <= Math.max(Duration.toMillis(ageMax), ageLedgersMax * pace() * 1_000),
      skewSeconds: skew.seconds(),
      isSkewed: skew.isWrong()
    }
  })

  const known = (): Polls => ({ advancedAt: belief?.advancedAt, polledAt, paces })
  /** Fails while an endpoint reports a ledger far ahead without confirmation. */
  const noDoubt = Effect.suspend(() => (belief?.candidateAhead === undefined ? Effect.void : Effect.fail(doubted)))
  return { poll, status, pace, known, noDoubt }
})

interface Polls {
  /** When the head last changed; undefined before the first. */
  readonly advancedAt: number | undefined
  readonly polledAt: number
  readonly paces: CloseIntervals
}

/**
 * Milliseconds between two polls for an expected ledger: a tenth of its interval while active, else a quarter, within
 * bounds.
 */
const betweenPolls = ({ paces }: Polls, isAttended: boolean): number =>
  Math.min(pollMax, Math.max(pollMin, paces.pace() * (isAttended ? 100 : 250)))

/** Time until which no poll is needed: the next ledger, or while idle the last ledger that fits into the rest. */
const restUntil = ({ advancedAt, paces }: Polls, isAttended: boolean): number => {
  if (advancedAt === undefined || paces.polls() < pollsBeforeRest) return -Infinity
  if (isAttended) return advancedAt + restShareAttended * paces.soonest() * 1_000
  const ledgerMillis = paces.pace() * 1_000
  const ledgers = Math.max(1, Math.floor(restMillis / ledgerMillis))
  return advancedAt + (ledgers - 1 + restShare) * ledgerMillis
}

/** Milliseconds from one poll to the next. */
const untilNextPoll = (polls: Polls, isAttended: boolean, at: number): number =>
  Math.max(betweenPolls(polls, isAttended), restUntil(polls, isAttended) - at)

/** Whether a ledger may have closed since the last poll. */
const isBehind = (polls: Polls, at: number): boolean =>
  polls.advancedAt !== undefined &&
  at - polls.advancedAt >= restShare * polls.paces.pace() * 1_000 &&
  at - polls.polledAt >= betweenPolls(polls, false)

/** The inclusion fee: by the node's statistics, kept while none arrive, and by recent refusals. */
const makeFees = Effect.gen(function* () {
  const rpc = yield* LedgerRpc
  let fees: FeeStats = { p50: 100n, p90: 100n, p99: 100n }
  let readAt = -Infinity
  let reported = { stroops: 0n, at: -Infinity }
  const read = Effect.fnUntraced(
    function* (isAttended: boolean) {
      const at = yield* monotonicMillis
      if (at - readAt < Duration.toMillis(isAttended ? feeStatsEvery : feeStatsEveryUnattended)) return
      readAt = at
      fees = yield* rpc.feeStats
    },
    Effect.catch((error) => Effect.logDebug("fee stats not read", error))
  )
  return {
    read,
    known: Effect.map(monotonicMillis, (at): InclusionFees => {
      const isReportedLately = at - reported.at <= Duration.toMillis(reportedFor) && reported.stroops > fees.p50
      return { ...fees, asked: isReportedLately ? reported.stroops : fees.p50 }
    }),
    note: (stroops: bigint) =>
      Effect.map(monotonicMillis, (at) => {
        reported = { stroops, at }
      })
  }
})

/** Keeps an item in a set while the Scope lives. */
const within = <A>(set: Set<A>, one: A): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => set.add(one)),
      () => Effect.sync(() => set.delete(one))
    )
  )

/** Whether payments are active, and how long. */
const makeInterest = (pace: () => number, beganAt: number) => {
  let renewedAt = beganAt
  const isThereAt = (at: number) => at - renewedAt <= interestMillis + interestLedgers * pace() * 1_000
  return {
    isThere: Effect.map(monotonicMillis, isThereAt),
    /** True if it was active already. */
    renew: Effect.map(monotonicMillis, (at) => {
      const wasThere = isThereAt(at)
      renewedAt = at
      return wasThere
    })
  }
}

/** One poll after a rest, shared by all callers. It belongs to the process: a caller that hangs up does not end it. */
const makeCatchUp = Effect.fnUntraced(function* <E>(poll: Effect.Effect<void, E>) {
  const scope = yield* Effect.scope
  let done: Effect.Effect<unknown> = Effect.void
  return {
    begin: Effect.map(Effect.forkIn(Effect.timeoutOption(poll, patience), scope), (polling) => {
      done = Fiber.await(polling)
    }),
    done: Effect.suspend(() => Effect.asVoid(done))
  }
})

const currentOf = ({ isFresh, time }: LedgerStatus): Effect.Effect<LedgerTime, LedgerUnavailable> => {
  if (time !== undefined && isFresh) return Effect.succeed(time)
  const message = time === undefined ? "no ledger has been read yet" : "the ledger does not advance"
  return Effect.fail(new LedgerUnavailable({ operation: "getLatestLedger", message }))
}

export class LedgerClock extends Context.Service<
  LedgerClock,
  {
    /** The newest reading; fails without one, or if the ledger has not advanced for 30 s. */
    readonly now: Effect.Effect<LedgerTime, LedgerUnavailable>
    /**
     * A reading taken now, by a separate call; for a decision that may need a newer reading. Also fails while a ledger
     * far ahead is unconfirmed: a bound that seems too far may then be right.
     */
    readonly fresh: Effect.Effect<LedgerTime, LedgerUnavailable>
    /** The last reading, regardless of its age. */
    readonly status: Effect.Effect<LedgerStatus>
    /** Recent inclusion fees; the network's minimum until some are measured. */
    readonly fees: Effect.Effect<InclusionFees>
    /** Records the inclusion fee that a node required when it refused a bid, stroops. */
    readonly noteAsked: (stroops: bigint) => Effect.Effect<void>
    /** Reports a received payment: the follower polls closely from now on. Never waits, never fails. */
    readonly attend: Effect.Effect<void>
    /** Waits for the poll that a rest has made necessary, or for the first poll, a second at most; never fails. */
    readonly caughtUp: Effect.Effect<void>
    /** True if a payment was received recently. Otherwise maintenance tasks may poll less often. */
    readonly isAttended: Effect.Effect<boolean>
    readonly nextLedger: Effect.Effect<void>
    /**
     * Runs `onLedger` after each new ledger while the Scope lives; while idle, only if the head changed
     * discontinuously. `onLedger` must not wait.
     */
    readonly subscribe: (onLedger: Effect.Effect<void>) => Effect.Effect<void, never, Scope.Scope>
  }
>()("tollkeeper/ledger/LedgerClock") {
  static readonly layer: Layer.Layer<LedgerClock, never, LedgerRpc | Supervisor> = Layer.effect(
    LedgerClock,
    Effect.gen(function* () {
      const follower = yield* makeFollower
      const fees = yield* makeFees
      const newLedger = yield* Latch.make()
      const subscribers = new Set<Effect.Effect<void>>()
      const interest = makeInterest(follower.pace, yield* monotonicMillis)
      const poll = Effect.gen(function* () {
        const change = yield* follower.poll
        if (change === "none") return
        yield* newLedger.release
        if (change === "advanced" && !(yield* interest.isThere)) return
        yield* Effect.forEach(subscribers, (subscriber) => subscriber, { discard: true })
      })
      const every = Effect.gen(function* () {
        const [isThere, at] = [yield* interest.isThere, yield* monotonicMillis]
        return Duration.millis(untilNextPoll(follower.known(), isThere, at))
      })
      const turn = Effect.flatMap(interest.isThere, (isThere) => Effect.andThen(poll, fees.read(isThere)))
      const following = yield* reconciler({ id: "ledger-clock", every, turn })
      const catchingUp = yield* makeCatchUp(poll)
      const afterRest = Effect.flatMap(monotonicMillis, (at) =>
        isBehind(follower.known(), at) ? Effect.andThen(catchingUp.begin, following.wake) : following.wake
      )
      const caughtUp = Effect.suspend(() =>
        follower.known().advancedAt === undefined
          ? Effect.asVoid(Effect.timeoutOption(newLedger.await, patience))
          : catchingUp.done
      )

      const now = Effect.flatMap(follower.status, currentOf)

      return LedgerClock.of({
        now,
        fresh: Effect.andThen(Effect.andThen(poll, follower.noDoubt), now),
        status: follower.status,
        fees: fees.known,
        noteAsked: fees.note,
        attend: Effect.flatMap(interest.renew, (wasThere) => (wasThere ? Effect.void : afterRest)),
        caughtUp,
        isAttended: interest.isThere,
        nextLedger: newLedger.await,
        subscribe: (onLedger) => within(subscribers, onLedger)
      })
    })
  )
}

export const ledgerContract = contract("ledger", LedgerClock)
