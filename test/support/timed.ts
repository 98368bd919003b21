// A test with its own clock, which begins at zero and which only the test moves.
import { Effect } from "effect"
import { TestClock } from "effect/testing"

export const timed =
  <A, E, R>(body: Effect.Effect<A, E, R>) =>
  () =>
    Effect.provide(body, TestClock.layer())
