// The `tollkeeper` command line: one file a subcommand in `commands/`. With the files beside it the only place that
// reads the environment or writes to the terminal.
import "effect/schema/SchemaJITCompiler/enable"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Layer, Option } from "effect"
import { Command } from "effect/cli"
import process from "node:process"
import { askRunning } from "./askRunning.ts"
import { approvals } from "./commands/approvals.ts"
import { config } from "./commands/config.ts"
import { ledger } from "./commands/ledger.ts"
import { pay } from "./commands/pay.ts"
import { reset } from "./commands/reset.ts"
import { start, tools } from "./commands/start.ts"
import { toolsBudget } from "./commands/toolsBudget.ts"
import { logging } from "./logging.ts"
import { isForItself, operatorCommands } from "./operators.ts"
import { layer as telemetry } from "./platform/telemetry.ts"
import { presentation } from "./presentation.ts"
import { isAsked, report } from "./report.ts"
import { systemFault } from "./system.mjs"
import { version } from "./version.ts"

const tollkeeper = Command.make("tollkeeper").pipe(
  Command.withDescription("An x402 payment facilitator for the Stellar ledger"),
  Command.withSubcommands([start, pay, tools, toolsBudget, approvals, ledger, ...operatorCommands, config, reset])
)

/** Programs that run until they are stopped, and whose stderr is a log. */
const isServing = ["start", "tools", "ledger"].includes(process.argv[2] ?? "")

/** An operator's command goes to the process that serves over the same state, when there is one. */
const commandLine = Effect.gen(function* () {
  const words = process.argv.slice(2)
  const isOperators = operatorCommands.some(({ name }) => name === words[0])
  const isHelp = words.some((word) => ["--help", "-h", "--wizard"].includes(word)) || isForItself(words)
  const answered = isOperators && !isHelp ? yield* askRunning(words) : Option.none()
  if (Option.isNone(answered)) return yield* Command.run(tollkeeper, { version })
  const { err, out, status } = answered.value
  if (out !== "") yield* Console.log(out)
  if (err !== "") yield* Console.error(err)
  process.exitCode = status
})

const main: Effect.Effect<void, unknown> = commandLine.pipe(
  Effect.tapCause((cause) => (isAsked(cause) ? Effect.void : report(cause, isServing))),
  Effect.provide(Layer.mergeAll(NodeServices.layer, telemetry.pipe(Layer.provideMerge(logging)), presentation))
) as Effect.Effect<void, unknown>

const system = systemFault(process.platform)
if (system !== undefined) {
  console.error(`tollkeeper: ${system}`)
  process.exit(1)
}

NodeRuntime.runMain(main, {
  disableErrorReporting: true,
  // A stop that was asked for is a success, and so is help that was asked for.
  teardown: (exit, onExit) =>
    onExit(exit._tag === "Success" ? Number(process.exitCode ?? 0) : isAsked(exit.cause) ? 0 : 1)
})
