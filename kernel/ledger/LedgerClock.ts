// The ledger's time, kept by one follower: the newest ledger seen, how long a ledger takes, what inclusion costs. Reading it asks
// nobody. A reading carries its age; who depends on it refuses when it is too old rather than guesses. The follower polls at
// a fraction of the measured close interval, within bounds, and wakes whoever waits for a new ledger.
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
  /** Mean over the last ledgers seen; 5 until it is measured. */
  readonly secondsPerLedger: number
}

/** A reading older than this is not relied upon. */
export const ageMax = Duration.seconds(30)
/** What clients assume a ledger takes (x402 on Stellar). */
const secondsPerLedgerAssumed = 5
/** Ledgers over which the interval is averaged. */
const windowLedgers = 20
const pollMin = 200
const pollMax = 1_000
const feeStatsEvery = Duration.seconds(5)

export class LedgerClock extends Context.Service<LedgerClock, {
  /** The newest reading; fails when there is none or it is older than 30 s. */
  readonly now: Effect.Effect<LedgerTime, LedgerUnavailable>
  /** Recent inclusion fees; the network's minimum while none are known. */
  readonly fees: Effect.Effect<FeeStats>
  /** Resolves with the next new ledger. */
  readonly nextLedger: Effect.Effect<void>
  /** Runs `onLedger` after each new ledger for as long as the Scope lives. It must not wait. */
  readonly subscribe: (onLedger: Effect.Effect<void>) => Effect.Effect<void, never, Scope.Scope>
}>()("tollkeeper/ledger/LedgerClock") {
  static readonly layer: Layer.Layer<LedgerClock, never, LedgerRpc | Supervisor> = Layer.effect(
    LedgerClock,
    Effect.gen(function*() {
      const rpc = yield* LedgerRpc
      const seen: Array<LatestLedger> = []
      let readAt: number | undefined
      let fees: FeeStats = { p50: 100n, p90: 100n, p99: 100n }
      let feesAt = -Infinity
      const newLedger = yield* Latch.make()
      const subscribers = new Set<Effect.Effect<void>>()

      const secondsPerLedger = (): number => {
        const first = seen[0]
        const last = seen.at(-1)
        if (first === undefined || last === undefined || last.sequence - first.sequence < 3) return secondsPerLedgerAssumed
        const mean = (last.closedAtSeconds - first.closedAtSeconds) / (last.sequence - first.sequence)
        return Math.min(60, Math.max(0.1, mean))
      }

      const readFees = Effect.gen(function*() {
        const now = yield* Clock.currentTimeMillis
        if (now - feesAt < Duration.toMillis(feeStatsEvery)) return
        feesAt = now
        fees = yield* rpc.feeStats
      }).pipe(Effect.catch((error) => Effect.logDebug("fee stats not read", error)))

      const turn = Effect.gen(function*() {
        const latest = yield* rpc.latestLedger
        readAt = yield* Clock.currentTimeMillis
        const newest = seen.at(-1)
        if (newest !== undefined && latest.sequence <= newest.sequence) return
        seen.push(latest)
        while (latest.sequence - seen[0]!.sequence > windowLedgers) seen.shift()
        yield* newLedger.release
        yield* Effect.forEach(subscribers, (subscriber) => subscriber, { discard: true })
        yield* readFees
      })

      /** Four looks a ledger, within bounds: a new ledger is noticed within a quarter of its interval. */
      const every = Effect.sync(() =>
        Duration.millis(Math.min(pollMax, Math.max(pollMin, (seen.length < 2 ? 1 : secondsPerLedger()) * 250)))
      )
      yield* reconciler({ id: "ledger-clock", every, turn })

      return LedgerClock.of({
        now: Effect.gen(function*() {
          const newest = seen.at(-1)
          const now = yield* Clock.currentTimeMillis
          if (newest === undefined || readAt === undefined || now - readAt > Duration.toMillis(ageMax)) {
            return yield* new LedgerUnavailable({ operation: "getLatestLedger", message: "no recent ledger is known" })
          }
          return { sequence: newest.sequence, closedAtSeconds: newest.closedAtSeconds, secondsPerLedger: secondsPerLedger() }
        }),
        fees: Effect.sync(() => fees),
        nextLedger: newLedger.await,
        subscribe: (onLedger) =>
          Effect.asVoid(Effect.acquireRelease(
            Effect.sync(() => subscribers.add(onLedger)),
            () => Effect.sync(() => subscribers.delete(onLedger))
          ))
      })
    })
  )
}

/** The ledger driver: the RPC and the clock that follows it. */
export const ledgerContract = contract<"ledger", LedgerRpc | LedgerClock>("ledger", LedgerRpc as any, LedgerClock as any)
