// Waiters of this process for outcomes of settlements. The follower completes them immediately if it runs here. If it
// runs in another replica, outcomes are polled, at the settlement poll interval and with each new ledger. One poll
// serves all waiters.
import { Context, Deferred, Duration, Effect, Layer, Option } from "effect"
import { reconciler } from "../../actor/Actor.ts"
import { Limits } from "../../config/Limits.ts"
import { Lane } from "../../database/Connections.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { isOpen } from "../state/Settlement.ts"
import { type FindQuery, type SettlementRecord, Settlements } from "../store/Settlements.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

/** At most about 2 MB. */
const endedMax = 10_000

const ends: ReadonlySet<SettlementRecord["state"]> = new Set(["settled", "failed", "expired"])

/**
 * Cache of authorizations with an ended settlement, if this process ended it, awaited it or read it. Verify reads the
 * stored record of such an authorization before it asks the ledger, which saves a simulation. The record decides, not
 * this cache: after a failover the record may have changed or be lost. A miss does not mean that the settlement is
 * open. Bounded; the oldest are evicted.
 */
export class EndedAuthorizationsCache {
  readonly #names = new Set<string>()

  note(records: ReadonlyArray<SettlementRecord>): void {
    for (const { authorizationKey, network, scheme, state } of records) {
      if (!ends.has(state)) continue
      this.#names.add(nameOf(network, scheme, authorizationKey))
      const [oldest] = this.#names
      if (this.#names.size > endedMax && oldest !== undefined) this.#names.delete(oldest)
    }
  }

  has({ authorizationKey, network, scheme }: Pick<FindQuery, "authorizationKey" | "network" | "scheme">): boolean {
    return Option.exists(authorizationKey, (key) => this.#names.has(nameOf(network, scheme, key)))
  }
}

const nameOf = (network: string, scheme: string, key: string): string => `${network} ${scheme} ${key}`

/** The first waiter wakes the poll; the poll interval and each new ledger serve the later ones. */
const idleInterval = Duration.minutes(1)

export class Outcomes extends Context.Service<
  Outcomes,
  {
    /** The final record, or None if it does not arrive in time. */
    readonly await: (id: string, timeout: Duration.Duration) => Effect.Effect<Option.Option<SettlementRecord>>
    /** Whether this process has a waiter for the settlement. */
    readonly isAwaited: (id: string) => boolean
    /** Passes final records to waiters, and records that the settlements have ended. */
    readonly complete: (records: ReadonlyArray<SettlementRecord>) => Effect.Effect<void>
    /** Whether this process has seen the authorization's settlement end. */
    readonly hasEnded: EndedAuthorizationsCache["has"]
  }
>()("tollkeeper/settlement/Outcomes") {
  static readonly layer = Layer.effect(
    Outcomes,
    Effect.gen(function* () {
      const settlements = yield* Settlements
      const limits = yield* Limits
      const clock = yield* LedgerClock
      const waiters = new Map<string, { readonly deferred: Deferred.Deferred<SettlementRecord>; count: number }>()

      const ended = new EndedAuthorizationsCache()

      const complete = Effect.fnUntraced(function* (records: ReadonlyArray<SettlementRecord>) {
        ended.note(records)
        for (const record of records) {
          const waiter = waiters.get(record.id)
          if (waiter !== undefined && !isOpen(record.state)) yield* Deferred.succeed(waiter.deferred, record)
        }
      })

      const poll = Effect.suspend(() => Effect.flatMap(settlements.endsOf([...waiters.keys()]), complete))
      const polling = yield* reconciler({
        id: "outcomes",
        every: Effect.sync(() => (waiters.size === 0 ? idleInterval : limits.settlePoll)),
        turn: Effect.provideService(poll, Lane, "payments")
      })
      yield* clock.subscribe(Effect.suspend(() => (waiters.size === 0 ? Effect.void : polling.wake)))

      return Outcomes.of({
        complete,
        hasEnded: (authorization) => ended.has(authorization),
        isAwaited: (id) => waiters.has(id),
        await: (id, timeout) =>
          Effect.acquireUseRelease(
            Effect.suspend(() => {
              const isFirst = waiters.size === 0
              const waiter = waiters.get(id) ?? { deferred: Deferred.makeUnsafe<SettlementRecord>(), count: 0 }
              waiter.count += 1
              waiters.set(id, waiter)
              return isFirst ? Effect.as(polling.wake, waiter) : Effect.succeed(waiter)
            }),
            (waiter) => Effect.timeoutOption(Deferred.await(waiter.deferred), timeout),
            (waiter) =>
              Effect.sync(() => {
                waiter.count -= 1
                if (waiter.count === 0) waiters.delete(id)
              })
          ).pipe(withSpanIfSampled("settlement.await"))
      })
    })
  )
}
