// Presentation of command-line errors. Requested help goes to stdout. For an invalid command line, stderr gets the
// error, a suggestion and the help command, without a page of help that would bury them.
import { Console, Effect } from "effect"
import { type CliError, CliOutput } from "effect/cli"

/** Turns the library's "Did you mean this?" and its indented line into part of the sentence. */
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
