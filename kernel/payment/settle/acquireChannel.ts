// A leased channel as a resource of the Scope: it is released when the Scope ends, for any reason, unless it was kept.
// A lease is kept once its settlement is recorded, because the record then holds the channel until the outcome.
import { Effect, Option } from "effect"
import { acquireReleaseDetached } from "../../effect/acquireReleaseDetached.ts"
import { ChannelPool, type QueueTicket } from "../../settlement/channels/ChannelPool.ts"
import type { ChannelLease } from "../../settlement/channels/ChannelStore.ts"

interface AcquiredChannel {
  readonly lease: ChannelLease
  /** Converts the lease into the record's hold: the end of the Scope no longer releases the channel. */
  readonly keep: () => void
}

/** None if no channel was released in time. */
export const makeAcquireChannel = Effect.map(ChannelPool, (channels) =>
  Effect.fnUntraced(function* (ticket: QueueTicket) {
    let isKept = false
    const lease = yield* acquireReleaseDetached(
      ticket.lease,
      (lease) => (isKept || Option.isNone(lease) ? Effect.void : channels.release(lease.value)),
      // The wait for a channel ends with its request; the pool then releases a lease that was acquired late.
      { interruptible: true }
    )
    return Option.map(lease, (lease): AcquiredChannel => ({ lease, keep: () => void (isKept = true) }))
  })
)
