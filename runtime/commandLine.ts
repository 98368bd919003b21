// The `tollkeeper` command line: one file a subcommand in `commands/`. With the files beside it the only place that
// reads the environment or writes to the terminal.
import "effect/schema/SchemaJITCompiler/enable"
import { Console, Effect, Option } from "effect"
import { Command } from "effect/cli"
import process from "node:process"
import { askRunning } from "./askRunning.ts"
import { approvals } from "./commands/approvals.ts"
import { config } from "./commands/config.ts"
import { ledger } from "./commands/ledger.ts"
import { pay } from "./commands/pay.ts"
import { reset } from "./commands/reset.ts"
import { start, tools } from "./commands/start.ts"
import { operatorCommands } from "./operators.ts"
import { isForItself } from "./operatorWords.ts"
import { runCommands, tollkeeper } from "./runCommands.ts"
import { version } from "./version.ts"

const all = tollkeeper.pipe(
  Command.withSubcommands([start, pay, tools, approvals, ledger, ...operatorCommands, config, reset])
)

/** Programs that run until they are stopped, and whose stderr is a log. */
const isServing = ["start", "tools"].includes(process.argv[2] ?? "")

/** An operator's command goes to the process that serves over the same state, when there is one. */
const commandLine = Effect.gen(function* () {
  const words = process.argv.slice(2)
  const isOperators = operatorCommands.some(({ name }) => name === words[0])
  const isHelp = words.some((word) => ["--help", "-h", "--wizard"].includes(word)) || isForItself(words)
  const answered = isOperators && !isHelp ? yield* askRunning(words) : Option.none()
  if (Option.isNone(answered)) return yield* Command.run(all, { version })
  const { err, out, status } = answered.value
  if (out !== "") yield* Console.log(out)
  if (err !== "") yield* Console.error(err)
  process.exitCode = status
})

runCommands(commandLine, isServing)
