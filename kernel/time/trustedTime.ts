// The time that a replica stores with its observations, and that retention decides by: this machine's, unless that is
// far ahead of the ledger's (`ledger/ledgerTrustedTime.ts`). A deletion by a clock that is ahead is permanent, and a
// delay by such a clock applies to every replica, so no single clock decides about either. A clock that is behind is
// trusted: it keeps data longer, and observations that it dates too early are made again. A ledger's time that is ahead
// of the machine's may be the lie of one endpoint. Without a ledger, as in unit tests, only the machine's time is
// available.
import { Clock, Context, Effect } from "effect"

interface TrustedNow {
  /** Unix milliseconds. */
  readonly now: number
  /** The ledger's time is known, so that `now` does not depend on one clock. */
  readonly isSure: boolean
}

export const TrustedTime = Context.Reference<Effect.Effect<TrustedNow>>("tollkeeper/TrustedTime", {
  defaultValue: () => Effect.map(Clock.currentTimeMillis, (now) => ({ now, isSure: true }))
})

const nowOf = ({ now }: TrustedNow): number => now

/** Unix milliseconds, for stored values. */
export const trustedMillis: Effect.Effect<number> = Effect.map(Effect.flatten(TrustedTime), nowOf)

/** The same, acquired while a plugin is built, for code that runs later in the fiber of a request. */
export const trustedClock: Effect.Effect<Effect.Effect<number>> = Effect.map(TrustedTime, Effect.map(nowOf))

/** The current time for decisions by age: until we have the ledger's time, nothing is old and nothing is due. */
export const ageMillis: Effect.Effect<number> = Effect.map(Effect.flatten(TrustedTime), ({ isSure, now }) =>
  isSure ? now : 0
)

/** The cutoff of a retention period: older entries may be deleted. */
export const oldBefore = (keepMillis: number): Effect.Effect<Date> =>
  Effect.map(ageMillis, (now) => new Date(now - keepMillis))
