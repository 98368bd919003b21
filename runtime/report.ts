// How a command's failure is told: nothing more where the command line was at fault, which the presenter has said; one
// sentence for what somebody foresaw; a trace in the log for what nobody did.
import { Cause, Effect } from "effect"
import { CliError } from "effect/cli"
import { sayRefusal } from "./logging.ts"
import { sentenceOf } from "./sentence.ts"

/** Tells why; `isServing` for a program whose stderr is a log. */
export const report = (cause: Cause.Cause<unknown>, isServing: boolean): Effect.Effect<void> => {
  if (CliError.isCliError(Cause.squash(cause))) return Effect.void
  const sentence = sentenceOf(cause)
  return sentence === undefined
    ? Effect.logError("tollkeeper ended on a fault of its own; please report it with these lines", cause)
    : sayRefusal(sentence, isServing)
}

/** A stop or a page of help that was asked for is a success. */
export const isAsked = (cause: Cause.Cause<unknown>): boolean => {
  const error = Cause.squash(cause)
  return Cause.hasInterruptsOnly(cause) || (error instanceof CliError.ShowHelp && error.errors.length === 0)
}
