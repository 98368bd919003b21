// A test with a clock of its own, which begins at zero and is moved by the test alone.
import { Effect } from "effect"
import { TestClock } from "effect/testing"

export const timed =
  <A, E, R>(body: Effect.Effect<A, E, R>) =>
  () =>
    Effect.provide(body, TestClock.layer())
