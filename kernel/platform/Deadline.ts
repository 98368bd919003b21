// A time limit on synchronous work, for code from others that may not terminate. The platform stops the work from
// outside, at any point. The work cannot catch that, and its half-done results must be thrown away. Without platform
// support (the default, for unrelated tests) the work simply runs.
import { Context } from "effect"

/** The work exceeded its time limit. */
export class DeadlinePassed extends Error {
  constructor(millis: number) {
    super(`stopped after ${millis} ms`)
  }
}

/**
 * Runs `work` to its end within the given wall time, milliseconds. Throws `DeadlinePassed`, and any error of `work`.
 */
export type RunWithin = <A>(millis: number, work: () => A) => A

export const Deadline = Context.Reference<RunWithin>("tollkeeper/platform/Deadline", {
  defaultValue: () => (_, work) => work()
})
