// Reports a command's failure: nothing more for a command-line error, which the presenter has reported; one sentence
// for an expected error; a trace in the log for a defect.
import { Cause, Effect } from "effect"
import { CliError } from "effect/cli"
import { sayRefusal } from "./logging.ts"
import { sentenceOf } from "./sentence.ts"

/** Reports the cause. `isServing`: the program's stderr is a log. */
export const report = (cause: Cause.Cause<unknown>, isServing: boolean): Effect.Effect<void> => {
  if (CliError.isCliError(Cause.squash(cause))) return Effect.void
  const sentence = sentenceOf(cause)
  return sentence === undefined
    ? Effect.logError("tollkeeper ended on an internal error; please report it with these lines", cause)
    : sayRefusal(sentence, isServing)
}

/** A requested stop or help page is a success. */
export const isAsked = (cause: Cause.Cause<unknown>): boolean => {
  const error = Cause.squash(cause)
  return Cause.hasInterruptsOnly(cause) || (error instanceof CliError.ShowHelp && error.errors.length === 0)
}
