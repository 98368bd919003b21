// How the command line answers what is no command: help goes to stdout when it was asked for; a command line that
// cannot be understood gets what is wrong with it, what was perhaps meant, and where the help is, on stderr. No page of
// help buries the one line that matters.
import { Console, Effect } from "effect"
import { type CliError, CliOutput } from "effect/cli"

/** "Did you mean this?" and an indented line become a part of the sentence. */
const oneLine = (error: CliError.NonShowHelpErrors): string =>
  error.message
    .replace(/\s*\n\s*Did you mean (?:this|one of these)\?\s*/g, "; did you mean ")
    .replace(/\s*\n\s*/g, " ")
    .trim()

export const presentation = CliOutput.layerPresenter({
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Effect.forEach(
          // After an unknown command its flags are reported as unknown as well, which adds nothing.
          event.errors[0]?._tag === "UnknownSubcommand" ? event.errors.slice(0, 1) : event.errors,
          (error) => {
            const sentence = oneLine(error).replace(/\.$/, "")
            const mark = sentence.includes("did you mean") ? "?" : ""
            return Console.error(`tollkeeper: ${sentence}${mark} (see ${event.commandPath.join(" ")} --help)`)
          },
          { discard: true }
        )
      : CliOutput.defaultPresenter.present(event)
})
