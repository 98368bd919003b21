// The ledger's time, kept by one follower: the newest ledger that is believed, how long a ledger takes, what inclusion
// costs. Reading it asks nobody. A reading carries its age, counted since the ledger last advanced and by time that
// elapses, not by this machine's clock; who depends on it refuses when it is too old rather than guesses. No endpoint
// is believed alone for long (`believe.ts`), and one that is behind, ahead or silent is asked last. The follower polls
// at a fraction of the measured close interval, within bounds, and wakes whoever waits for a new ledger.
import { Clock, Context, Duration, Effect, Latch, Layer, type Scope } from "effect"
import { reconciler } from "../Actor.ts"
import { contract } from "../Contract.ts"
import type { Supervisor } from "../Supervisor.ts"
import { beginBelief, type Belief, believe, relationOf, unfitEndpoints } from "./believe.ts"
import { type ClockSkew, makeClockSkew, skewSecondsMax } from "./ClockSkew.ts"
import { type FeeStats, type LatestLedger, LedgerRpc } from "./LedgerRpc.ts"
import { LedgerUnavailable } from "./LedgerUnavailable.ts"
import { type Look, looksMax, paceOf } from "./paceOf.ts"
import { spanned } from "../spanned.ts"

export interface LedgerTime {
  /** Newest ledger believed. It goes back only when the network did, or when a belief was wrong. */
  readonly sequence: number
  /** Unix seconds of its close. */
  readonly closedAtSeconds: number
  /** What a ledger takes now, by the last looks that saw a new one: 0.1 to 60; 1 until it is measured. */
  readonly secondsPerLedger: number
}

export interface InclusionFees extends FeeStats {
  /** What the network asks now: what a refusal said lately, else what half of the recent transactions paid, stroops. */
  readonly asked: bigint
}

/** What is known of the ledger's time, however old: for operators. */
export interface LedgerStanding {
  readonly time: LedgerTime | undefined
  /** Seconds since the ledger last advanced. */
  readonly ageSeconds: number
  readonly isFresh: boolean
  /** How far this machine's clock is off, seconds, positive when ahead; absent before a new ledger was seen. */
  readonly skewSeconds: number | undefined
  readonly isSkewed: boolean
}

/** A ledger that has not advanced for so long, or for three of its intervals, is not relied upon. */
const ageMax = Duration.seconds(30)
const ageLedgersMax = 3
const pollMin = 200
const pollMax = 1_000
const feeStatsEvery = Duration.seconds(5)
/** What a refusal said of the fee counts for so long; refusals of what is still open say it again. */
const toldFor = Duration.seconds(30)
/** Every endpoint's own word is asked for this often, and sooner while no new ledger comes. */
const surveyMillis = 10_000
const surveyStillMillis = 2_000

/** Time that elapses, milliseconds: a clock that is set does not move it. */
const elapsing = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n))

/** Says once that this machine's clock is off, and once that it is right again. */
const warningOf = (skew: ClockSkew) => {
  let wasSkewed = false
  return Effect.suspend(() => {
    if (skew.isWrong() === wasSkewed) return Effect.void
    wasSkewed = skew.isWrong()
    const seconds = Math.round(skew.seconds() ?? 0)
    return wasSkewed
      ? Effect.logWarning(
          `this machine's clock and the ledger's differ by more than ${skewSecondsMax} s; ` +
            "set the clock, or look at the endpoints"
        ).pipe(Effect.annotateLogs({ seconds }))
      : Effect.logInfo("this machine's clock agrees with the ledger's again").pipe(Effect.annotateLogs({ seconds }))
  })
}

const timeOf = ({ newest: { closedAtSeconds, sequence } }: Belief, secondsPerLedger: number): LedgerTime => ({
  sequence,
  closedAtSeconds,
  secondsPerLedger
})

/** What is believed, and how it came to be. */
const makeFollower = Effect.gen(function* () {
  const rpc = yield* LedgerRpc
  const skew = makeClockSkew()
  let belief: Belief | undefined
  let looks: ReadonlyArray<Look> = []
  let measured = paceOf(looks)
  let surveyedAt = -Infinity

  const pace = () => measured

  /** Each endpoint's own word when the first answer says something new or odd, when nothing moves, and now and then. */
  const secondLook = Effect.fnUntraced(function* (first: LatestLedger, at: number) {
    const relation = belief === undefined ? "first" : relationOf(belief, first, at, pace())
    const isExpected = relation === "same" || relation === "next"
    const still = belief !== undefined && relation === "same" && at - belief.advancedAt > 2_500 * pace()
    const every = still ? surveyStillMillis : surveyMillis
    if (isExpected && at - surveyedAt < every) return []
    surveyedAt = at
    return yield* rpc.latestLedgers
  })

  const warnOfSkew = warningOf(skew)

  /** Looks once; true when what is believed has changed. Fails when no endpoint answers. */
  const look = Effect.gen(function* () {
    const first = yield* rpc.latestLedger
    const second = yield* secondLook(first, yield* elapsing)
    const machineMillis = yield* Clock.currentTimeMillis
    const looked = { first, second, at: yield* elapsing, pace: pace(), machineSeconds: machineMillis / 1_000 }
    const before = belief
    if (before === undefined) {
      belief = beginBelief(looked)
      return belief !== undefined
    }
    const believed = believe(before, looked)
    belief = believed.belief
    if (second.length > 0) yield* rpc.setUnfit(unfitEndpoints(belief, second, looked.at, looked.pace))
    if (believed.change === "none") return false
    if (believed.change === "advanced") {
      const ledgers = belief.newest.sequence - before.newest.sequence
      looks = [...looks, { ledgers, millis: looked.at - before.advancedAt }].slice(-looksMax)
      measured = paceOf(looks)
      skew.note(machineMillis, belief.newest.closedAtSeconds)
    } else {
      looks = []
      measured = paceOf(looks)
      skew.forget()
      yield* Effect.logWarning("the ledger goes on elsewhere than where it was last seen").pipe(
        Effect.annotateLogs({ from: before.newest.sequence, to: belief.newest.sequence })
      )
    }
    yield* warnOfSkew
    return true
  }).pipe(spanned("LedgerClock.look"))

  const standing = Effect.map(elapsing, (at): LedgerStanding => {
    const ageMillis = belief === undefined ? Infinity : at - belief.advancedAt
    return {
      time: belief === undefined ? undefined : timeOf(belief, pace()),
      ageSeconds: ageMillis / 1_000,
      isFresh: ageMillis <= Math.max(Duration.toMillis(ageMax), ageLedgersMax * pace() * 1_000),
      skewSeconds: skew.seconds(),
      isSkewed: skew.isWrong()
    }
  })

  return { look, standing, pace }
})

/** What inclusion costs: as the node's statistics say, kept while none come, and as refusals said lately. */
const makeFees = Effect.gen(function* () {
  const rpc = yield* LedgerRpc
  let fees: FeeStats = { p50: 100n, p90: 100n, p99: 100n }
  let readAt = -Infinity
  let told = { stroops: 0n, at: -Infinity }
  const read = Effect.gen(function* () {
    const at = yield* elapsing
    if (at - readAt < Duration.toMillis(feeStatsEvery)) return
    readAt = at
    fees = yield* rpc.feeStats
  }).pipe(Effect.catch((error) => Effect.logDebug("fee stats not read", error)))
  return {
    read,
    known: Effect.map(elapsing, (at): InclusionFees => {
      const isToldLately = at - told.at <= Duration.toMillis(toldFor) && told.stroops > fees.p50
      return { ...fees, asked: isToldLately ? told.stroops : fees.p50 }
    }),
    note: (stroops: bigint) =>
      Effect.map(elapsing, (at) => {
        told = { stroops, at }
      })
  }
})

export class LedgerClock extends Context.Service<
  LedgerClock,
  {
    /** The newest reading; fails when there is none or the ledger has not advanced for 30 s. */
    readonly now: Effect.Effect<LedgerTime, LedgerUnavailable>
    /** A reading taken now, by a call of its own; for a judgement that the newest reading may be too old for. */
    readonly fresh: Effect.Effect<LedgerTime, LedgerUnavailable>
    /** What is known, however old. */
    readonly standing: Effect.Effect<LedgerStanding>
    /** Recent inclusion fees; the network's minimum while none are known. */
    readonly fees: Effect.Effect<InclusionFees>
    /** Notes what a node asked for inclusion when it refused a bid, stroops. */
    readonly noteAsked: (stroops: bigint) => Effect.Effect<void>
    /** Resolves with the next new ledger. */
    readonly nextLedger: Effect.Effect<void>
    /** Runs `onLedger` after each new ledger for as long as the Scope lives. It must not wait. */
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

      const look = Effect.gen(function* () {
        if (!(yield* follower.look)) return
        yield* newLedger.release
        yield* Effect.forEach(subscribers, (subscriber) => subscriber, { discard: true })
      })

      /** Four looks a ledger, within bounds: a new ledger is noticed within a quarter of its interval. */
      const every = Effect.sync(() => Duration.millis(Math.min(pollMax, Math.max(pollMin, follower.pace() * 250))))
      yield* reconciler({ id: "ledger-clock", every, turn: Effect.andThen(look, fees.read) })

      const now = Effect.flatMap(follower.standing, ({ isFresh, time }) =>
        time !== undefined && isFresh
          ? Effect.succeed(time)
          : Effect.fail(
              new LedgerUnavailable({
                operation: "getLatestLedger",
                message: time === undefined ? "no ledger is known yet" : "the ledger does not advance"
              })
            )
      )

      return LedgerClock.of({
        now,
        fresh: Effect.andThen(look, now),
        standing: follower.standing,
        fees: fees.known,
        noteAsked: fees.note,
        nextLedger: newLedger.await,
        subscribe: (onLedger) =>
          Effect.asVoid(
            Effect.acquireRelease(
              Effect.sync(() => subscribers.add(onLedger)),
              () => Effect.sync(() => subscribers.delete(onLedger))
            )
          )
      })
    })
  )
}

/** The ledger driver: the clock that follows the ledger. */
export const ledgerContract = contract("ledger", LedgerClock)
