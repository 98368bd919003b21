// The `tollkeeper` command: one file a subcommand in `commands/`. With the files beside it the only place that reads
// the environment or writes to the terminal.
import "effect/schema/SchemaJITCompiler/enable"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Cause, Effect, Layer } from "effect"
import { CliError, Command } from "effect/cli"
import process from "node:process"
import { analytics } from "./commands/analytics.ts"
import { approvals } from "./commands/approvals.ts"
import { audit } from "./commands/audit.ts"
import { catalog } from "./commands/catalog.ts"
import { channels } from "./commands/channels.ts"
import { config } from "./commands/config.ts"
import { ledger } from "./commands/ledger.ts"
import { reset } from "./commands/reset.ts"
import { settlements } from "./commands/settlements.ts"
import { start, tools } from "./commands/start.ts"
import { toolsBudget } from "./commands/toolsBudget.ts"
import { webhooks } from "./commands/webhooks.ts"
import { logging, sayRefusal } from "./logging.ts"
import { layer as telemetry } from "./platform/telemetry.ts"
import { presentation } from "./presentation.ts"
import { sentenceOf } from "./sentence.ts"

const version = "0.1.0"

const tollkeeper = Command.make("tollkeeper").pipe(
  Command.withDescription("An x402 payment facilitator for the Stellar ledger"),
  Command.withSubcommands([
    start,
    tools,
    toolsBudget,
    approvals,
    ledger,
    catalog,
    analytics,
    channels,
    settlements,
    webhooks,
    audit,
    config,
    reset
  ])
)

/** Programs that run until they are stopped, and whose stderr is a log. */
const isServing = ["start", "tools", "ledger"].includes(process.argv[2] ?? "")

/** A refusal is one calm sentence and exit code 1; only what nobody foresaw shows a trace. */
const report = (cause: Cause.Cause<unknown>): Effect.Effect<void> => {
  // The presenter has said it, or the help was what was asked for.
  if (CliError.isCliError(Cause.squash(cause))) return Effect.void
  const sentence = sentenceOf(cause)
  return sentence === undefined
    ? Effect.logError("tollkeeper ended on a fault of its own; please report it with these lines", cause)
    : sayRefusal(sentence, isServing)
}

const main: Effect.Effect<void, unknown> = Command.run(tollkeeper, { version }).pipe(
  Effect.tapCause((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.void : report(cause))),
  Effect.provide(Layer.mergeAll(NodeServices.layer, telemetry.pipe(Layer.provideMerge(logging)), presentation))
) as Effect.Effect<void, unknown>

const isAsked = (cause: Cause.Cause<unknown>): boolean => {
  const error = Cause.squash(cause)
  return Cause.hasInterruptsOnly(cause) || (error instanceof CliError.ShowHelp && error.errors.length === 0)
}

NodeRuntime.runMain(main, {
  disableErrorReporting: true,
  // A stop that was asked for is a success, and so is help that was asked for.
  teardown: (exit, onExit) => onExit(exit._tag === "Success" || isAsked(exit.cause) ? 0 : 1)
})
