// The ledger's time, kept by one follower: the newest ledger seen, how long a ledger takes, what inclusion costs.
// Reading it asks nobody. A reading carries its age; who depends on it refuses when it is too old rather than guesses.
// The follower polls at a fraction of the measured close interval, within bounds, and wakes whoever waits for a new
// ledger.
import { Clock, Context, Duration, Effect, Latch, Layer, type Scope } from "effect"
import { reconciler } from "../Actor.ts"
import { contract } from "../Contract.ts"
import type { Supervisor } from "../Supervisor.ts"
import { type FeeStats, type LatestLedger, LedgerRpc } from "./LedgerRpc.ts"
import { LedgerUnavailable } from "./LedgerUnavailable.ts"

export interface LedgerTime {
  /** Newest ledger seen by any endpoint. Never goes back. */
  readonly sequence: number
  /** Unix seconds of its close. */
  readonly closedAtSeconds: number
  /** What a ledger takes now, by the last looks that saw a new one: 0.1 to 60; 1 until it is measured. */
  readonly secondsPerLedger: number
}

/** A reading older than this is not relied upon. */
export const ageMax = Duration.seconds(30)
/**
 * Until it is measured, the shortest close time that an official client computes with: nobody honest is refused for it.
 */
const secondsPerLedgerAssumed = 1
/** Looks over which the interval is averaged, and how many of the shortest and of the longest are left out. */
const looksMax = 20
const looksMin = 3
const outliersShare = 0.2
const pollMin = 200
const pollMax = 1_000
const feeStatsEvery = Duration.seconds(5)

/** One look that saw news: ledgers since the look before, and the milliseconds between. */
interface Look {
  readonly ledgers: number
  readonly millis: number
}

/**
 * Seconds per ledger of some looks. Those with the shortest and the longest interval a ledger are left out: a burst (a
 * friendbot that closes at once) and a gap (an endpoint that was away) say nothing about the ledger's pace.
 */
export const paceOf = (looks: ReadonlyArray<Look>): number => {
  if (looks.length < looksMin) return secondsPerLedgerAssumed
  const ordered = looks.toSorted((a, b) => a.millis / a.ledgers - b.millis / b.ledgers)
  const outliers = Math.max(1, Math.floor(looks.length * outliersShare))
  const kept = ordered.slice(outliers, looks.length - outliers)
  const seconds =
    kept.reduce((sum, { millis }) => sum + millis, 0) / kept.reduce((sum, { ledgers }) => sum + ledgers, 0) / 1_000
  return Math.min(60, Math.max(0.1, seconds))
}

export class LedgerClock extends Context.Service<
  LedgerClock,
  {
    /** The newest reading; fails when there is none or it is older than 30 s. */
    readonly now: Effect.Effect<LedgerTime, LedgerUnavailable>
    /** A reading taken now, by a call of its own; for a judgement that the newest reading may be too old for. */
    readonly fresh: Effect.Effect<LedgerTime, LedgerUnavailable>
    /** Recent inclusion fees; the network's minimum while none are known. */
    readonly fees: Effect.Effect<FeeStats>
    /** Resolves with the next new ledger. */
    readonly nextLedger: Effect.Effect<void>
    /** Runs `onLedger` after each new ledger for as long as the Scope lives. It must not wait. */
    readonly subscribe: (onLedger: Effect.Effect<void>) => Effect.Effect<void, never, Scope.Scope>
  }
>()("tollkeeper/ledger/LedgerClock") {
  static readonly layer: Layer.Layer<LedgerClock, never, LedgerRpc | Supervisor> = Layer.effect(
    LedgerClock,
    Effect.gen(function* () {
      const rpc = yield* LedgerRpc
      let newest: LatestLedger | undefined
      let newestAt = 0
      const looks: Array<Look> = []
      let readAt: number | undefined
      let fees: FeeStats = { p50: 100n, p90: 100n, p99: 100n }
      let feesAt = -Infinity
      const newLedger = yield* Latch.make()
      const subscribers = new Set<Effect.Effect<void>>()

      const readFees = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        if (now - feesAt < Duration.toMillis(feeStatsEvery)) return
        feesAt = now
        fees = yield* rpc.feeStats
      }).pipe(Effect.catch((error) => Effect.logDebug("fee stats not read", error)))

      const look = Effect.gen(function* () {
        const latest = yield* rpc.latestLedger
        readAt = yield* Clock.currentTimeMillis
        if (newest !== undefined && latest.sequence <= newest.sequence) return
        if (newest !== undefined) {
          looks.push({ ledgers: latest.sequence - newest.sequence, millis: readAt - newestAt })
          if (looks.length > looksMax) looks.shift()
        }
        newest = latest
        newestAt = readAt
        yield* newLedger.release
        yield* Effect.forEach(subscribers, (subscriber) => subscriber, { discard: true })
      })
      const turn = Effect.andThen(look, readFees)

      /** Four looks a ledger, within bounds: a new ledger is noticed within a quarter of its interval. */
      const every = Effect.sync(() => Duration.millis(Math.min(pollMax, Math.max(pollMin, paceOf(looks) * 250))))
      yield* reconciler({ id: "ledger-clock", every, turn })

      const now = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        if (newest === undefined || readAt === undefined || now - readAt > Duration.toMillis(ageMax)) {
          return yield* new LedgerUnavailable({ operation: "getLatestLedger", message: "no recent ledger is known" })
        }
        return { sequence: newest.sequence, closedAtSeconds: newest.closedAtSeconds, secondsPerLedger: paceOf(looks) }
      })

      return LedgerClock.of({
        now,
        fresh: Effect.andThen(look, now),
        fees: Effect.sync(() => fees),
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

/** The ledger driver: the RPC and the clock that follows it. */
export const ledgerContract = contract<"ledger", LedgerRpc | LedgerClock>(
  "ledger",
  LedgerRpc as any,
  LedgerClock as any
)
