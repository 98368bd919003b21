// No answer counts for a ledger that is not believed.
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
  return { seen, provided: Effect.provideService(LedgerClock, clock as never) }
}

describe("an answer's ledger", () => {
  it.effect("an answer's ledger counts up to the selected head", () =>
    Effect.gen(function* () {
      expect(yield* withinLedgerBound(90)).toBe(90)
      expect(yield* withinLedgerBound(1_000_000)).toBe(100)
    }).pipe(clockAt100().provided)
  )

  it.effect("an answer's ledger counts for nothing while the head is unconfirmed", () =>
    Effect.gen(function* () {
      expect(yield* withinLedgerBound(90)).toBe(0)
      expect(yield* isReached(90)).toBe(false)
    }).pipe(clockAt100(true).provided)
  )

  it.effect("a ledger is reached once the clock is there; it polls only if needed", () => {
    const { provided, seen } = clockAt100()
    return Effect.gen(function* () {
      expect(yield* isReached(100)).toBe(true)
      expect(seen.polls).toBe(0)
      expect(yield* isReached(105)).toBe(true)
      expect(seen.polls).toBe(1)
      expect(yield* isReached(106)).toBe(false)
    }).pipe(provided)
  })
})
