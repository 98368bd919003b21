// A limit in time on synchronous work, for code that a stranger wrote and that cannot be trusted to end. The platform
// stops the work from outside, wherever it is; nothing of it can catch that, and what it leaves half done must be
// thrown away. Without a platform that can (the default, for tests of other things) the work simply runs.
import { Context } from "effect"

/** The work took longer than it may. */
export class DeadlinePassed extends Error {
  constructor(millis: number) {
    super(`stopped after ${millis} ms`)
  }
}

/** Runs `work` to its end within the given wall time, milliseconds. Throws `DeadlinePassed`, and what `work` throws. */
export type RunWithin = <A>(millis: number, work: () => A) => A

export const Deadline = Context.Reference<RunWithin>("tollkeeper/platform/Deadline", {
  defaultValue: () => (_, work) => work()
})
