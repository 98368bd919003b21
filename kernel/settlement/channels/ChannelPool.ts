// Admission and leasing of channels. A payment takes a place before anything costly is done for it; it is refused
// immediately if it could not be served in time. Admitted payments wait in turns over principals, for a bounded time.
import { Context, Duration, Effect, Layer, type Option } from "effect"
import type { SqlError } from "effect/sql"
import { Limits } from "../../config/Limits.ts"
import { monotonicMillis } from "../../time/monotonicMillis.ts"
import { LedgerClock } from "../../ledger/LedgerClock.ts"
import { AdmissionControl } from "./AdmissionControl.ts"
import { ChannelCount } from "./ChannelCount.ts"
import { ChannelQueue } from "./ChannelQueue.ts"
import { type ChannelCounts, type ChannelLease, ChannelStore } from "./ChannelStore.ts"

/** The close interval until it is measured. */
const ledgerMillisAssumed = 5_000

/** A place in the queue. It counts until it is left. */
export interface QueueTicket {
  readonly _tag: "Place"
  /** Waits for a channel; None if no channel was released in time. Leaves the place in any case. */
  readonly lease: Effect.Effect<Option.Option<ChannelLease>, SqlError.SqlError>
  /** Gives the place up; may be called again. */
  readonly leave: Effect.Effect<void>
}

interface Overloaded {
  readonly _tag: "Full"
  readonly retryAfterMillis: number
}

export class ChannelPool extends Context.Service<
  ChannelPool,
  {
    /** A place for a principal that waits at most `within`, or an immediate refusal. Does no I/O. */
    readonly enter: (principal: string, within: Duration.Duration) => Effect.Effect<QueueTicket | Overloaded>
    readonly release: (lease: ChannelLease) => Effect.Effect<void>
    /** Notifies the queue that a channel may have been released. */
    readonly freed: Effect.Effect<void>
    readonly counts: Effect.Effect<ChannelCounts, SqlError.SqlError>
    readonly waiting: () => ReadonlyMap<string, number>
  }
>()("tollkeeper/settlement/channels/ChannelPool") {
  static readonly layer = Layer.effect(
    ChannelPool,
    Effect.gen(function* () {
      const { counts } = yield* ChannelStore
      const limits = yield* Limits
      const count = yield* ChannelCount
      const clock = yield* LedgerClock
      const { freed, lease, release, scarcity } = yield* ChannelQueue
      const admission = new AdmissionControl(scarcity)

      const enter = Effect.fnUntraced(function* (principal: string, within: Duration.Duration) {
        const now = yield* monotonicMillis
        const ledgerMillis = yield* Effect.match(clock.now, {
          onFailure: () => ledgerMillisAssumed,
          onSuccess: ({ secondsPerLedger }) => secondsPerLedger * 1_000
        })
        // One close interval and 3 s: a channel held now is usually free by then.
        const waitMax = Duration.min(limits.channelWait ?? Duration.millis(ledgerMillis + 3_000), within)
        const conditions = { now, ledgerMillis, channels: count.known() }
        const retryAfterMillis = admission.enter(principal, Duration.toMillis(waitMax), conditions)
        if (retryAfterMillis !== undefined) return { _tag: "Full", retryAfterMillis } as const
        let isLeft = false
        const leave = Effect.sync(() => {
          if (!isLeft) admission.leave(principal)
          isLeft = true
        })
        return { _tag: "Place", leave, lease: Effect.ensuring(lease(principal, waitMax), leave) } as const
      })

      return ChannelPool.of({ enter, release, freed, counts, waiting: () => admission.places })
    })
  ).pipe(Layer.provide(ChannelQueue.layer))
}
