// The `tollkeeper` command: one file a subcommand in `commands/`. With the files beside it the only place that reads
// the environment or writes to the terminal.
import "effect/schema/SchemaJITCompiler/enable"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Cause, Console, Effect, Layer, Logger, References } from "effect"
import { Command } from "effect/cli"
import process from "node:process"
import { analytics } from "./commands/analytics.ts"
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
import { layer as telemetry } from "./platform/telemetry.ts"

const version = "0.1.0"

const tollkeeper = Command.make("tollkeeper").pipe(
  Command.withDescription("An x402 payment facilitator for the Stellar ledger"),
  Command.withSubcommands([
    start,
    tools,
    toolsBudget,
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

/**
 * To stderr, since stdout is for answers and may belong to a protocol. Warnings and worse on a terminal, where people
 * read; one JSON object a line otherwise, where machines do.
 */
const logging = Layer.mergeAll(
  Logger.layer([
    process.stderr.isTTY ? Logger.consolePretty({ stderr: true } as never) : Logger.withConsoleError(Logger.formatJson)
  ]),
  Layer.succeed(References.MinimumLogLevel, process.stderr.isTTY ? "Warn" : "Info")
)

/** What an expected error is about: the path of a setting, the id of a plugin. */
const subjectOf = (error: object): string =>
  ["path", "plugin"]
    .flatMap((key) => (key in error ? [`${String((error as Record<string, unknown>)[key])}: `] : []))
    .join("")

/** A refusal is one calm sentence and exit code 1; only a defect shows a trace. */
const report = (cause: Cause.Cause<unknown>) => {
  const error = Cause.squash(cause)
  const isExpected = typeof error === "object" && error !== null && "_tag" in error && !Cause.hasDies(cause)
  if (!isExpected) return Effect.logError("tollkeeper ended on a defect", cause)
  const sentence = "message" in error ? String(error.message) : String(error._tag)
  return Console.error(`tollkeeper: ${subjectOf(error)}${sentence.replace(/\s*\n\s*/g, " ")}`)
}

const main: Effect.Effect<void, unknown> = Command.run(tollkeeper, { version }).pipe(
  Effect.tapCause((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.void : report(cause))),
  Effect.provide(Layer.mergeAll(NodeServices.layer, telemetry.pipe(Layer.provideMerge(logging))))
) as Effect.Effect<void, unknown>

NodeRuntime.runMain(main, {
  disableErrorReporting: true,
  // A stop that was asked for is a success.
  teardown: (exit, onExit) => onExit(exit._tag === "Success" || Cause.hasInterruptsOnly(exit.cause) ? 0 : 1)
})
