// The time that a replica stores and ages by (`../time/trustedTime.ts`), if there is a ledger.
import { Clock, Effect, Layer } from "effect"
import { TrustedTime } from "../time/trustedTime.ts"
import { LedgerClock } from "./LedgerClock.ts"

/** A ledger closed this long ago casts no doubt on a clock: it may have halted, or not have been polled recently. */
const aheadMillis = 600_000

/** The machine's time, or the ledger's if the machine is far ahead of it. */
export const trustedTimeLayer = Layer.effect(
  TrustedTime,
  Effect.map(LedgerClock, ({ status }) =>
    Effect.gen(function* () {
      const machine = yield* Clock.currentTimeMillis
      const { time } = yield* status
      if (time === undefined) return { now: machine, isSure: false }
      const ledger = time.closedAtSeconds * 1_000
      return { now: machine - ledger > aheadMillis ? ledger : machine, isSure: true }
    })
  )
)
