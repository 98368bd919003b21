// The `tollkeeper` command line. Only the files of this folder read the environment or write to the terminal. A command
// for a running process is sent to it before any command module is loaded.
import "effect/schema/SchemaJITCompiler/enable"
import { Console, Effect, Option } from "effect"
import { Command } from "effect/cli"
import process from "node:process"
import { askRunning } from "./askRunning.ts"
import { isStandaloneCommand, ofAgents, operatorFamilies, stateIssue } from "./operatorWords.ts"
import { runCommands } from "./runCommands.ts"
import { version } from "./version.ts"

/** Long-running programs; their stderr is a log. */
const isServing = ["start", "tools"].includes(process.argv[2] ?? "")

/** Runs a command in this process, by the commands of `commandTree.ts`. */
const here = (words: ReadonlyArray<string>) =>
  Effect.promise(() => import("./commandTree.ts")).pipe(
    Effect.flatMap(({ commandTree }) => Command.runWith(commandTree, { version })(words))
  )

/** An operator's command goes to the process that serves over the same state, when there is one. */
const commandLine = Effect.gen(function* () {
  const words = ofAgents(process.argv.slice(2))
  const issue = stateIssue(words)
  if (issue !== undefined) {
    yield* Console.error(`tollkeeper: ${issue}`)
    process.exitCode = 1
    return
  }
  const isOperators = operatorFamilies.some((family) => family === words[0])
  const isHelp = words.some((word) => ["--help", "-h", "--wizard"].includes(word)) || isStandaloneCommand(words)
  const answered = isOperators && !isHelp ? yield* askRunning(words) : Option.none()
  if (Option.isNone(answered)) return yield* here(words)
  const { by, err, out, status } = answered.value
  yield* Console.error(by)
  if (out !== "") yield* Console.log(out)
  if (err !== "") yield* Console.error(err)
  process.exitCode = status
})

runCommands(commandLine, isServing)
