// An answer for an untrusted ledger does not count.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { LedgerClock } from "../../../kernel/ledger/LedgerClock.ts"
import { isReached, withinLedgerBound } from "../../../kernel/ledger/withinLedgerBound.ts"

/** A clock at ledger 100 that sees 105 when it polls; `polls` counts that. */
const clockAt100 = (isFirstWord = false) => {
  const seen = { polls: 0 }
  const at = (sequence: number) => ({ sequence, closedAtSeconds: 0, secondsPerLedger: 5, isFirstWord })
  const clock = {
    now: Effect.sync(() => at(seen.polls === 0 ? 100 : 105)),
    fresh: Effect.sync(() => at(seen.polls++ >= 0 ? 105 : 0))
  }
  return { seen, clock: LedgerClock.of(clock as never) }
}

describe("an answer's ledger", () => {
  it.effect("an answer's ledger counts up to the selected head", () =>
    Effect.gen(function* () {
      const { clock } = clockAt100()
      expect(yield* withinLedgerBound(clock, 90)).toBe(90)
      expect(yield* withinLedgerBound(clock, 1_000_000)).toBe(100)
    })
  )

  it.effect("an answer's ledger counts for nothing while the head is unconfirmed", () =>
    Effect.gen(function* () {
      const { clock } = clockAt100(true)
      expect(yield* withinLedgerBound(clock, 90)).toBe(0)
      expect(yield* isReached(clock, 90)).toBe(false)
    })
  )

  it.effect("a ledger is reached once the clock is there; it polls only if needed", () =>
    Effect.gen(function* () {
      const { clock, seen } = clockAt100()
      expect(yield* isReached(clock, 100)).toBe(true)
      expect(seen.polls).toBe(0)
      expect(yield* isReached(clock, 105)).toBe(true)
      expect(seen.polls).toBe(1)
      expect(yield* isReached(clock, 106)).toBe(false)
    })
  )
})
