// Runs a tree of commands as this process: logging and telemetry, the report of a failure, and the exit code. An
// unsupported system is refused first.
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { Command, Flag } from "effect/cli"
import process from "node:process"
import { logging } from "./logging.ts"
import { layer as telemetry } from "./platform/telemetry.ts"
import { presentation } from "./presentation.ts"
import { isAsked, report } from "./report.ts"
import { systemIssue } from "./system.mjs"

export const tollkeeper = Command.make("tollkeeper").pipe(
  Command.withDescription("An x402 payment facilitator for the Stellar ledger")
)

/** `isServing` for a long-running program; its stderr is a log. */
export const runCommands = <E, R>(commands: Effect.Effect<void, E, R>, isServing: boolean): void => {
  const main = commands.pipe(
    Effect.tapCause((cause) => (isAsked(cause) ? Effect.void : report(cause, isServing))),
    Effect.provide(Layer.mergeAll(NodeServices.layer, telemetry.pipe(Layer.provideMerge(logging)), presentation))
  ) as Effect.Effect<void, E>

  const system = systemIssue(process.platform)
  if (system !== undefined) {
    console.error(`tollkeeper: ${system}`)
    process.exit(1)
  }

  NodeRuntime.runMain(main, {
    disableErrorReporting: true,
    // A requested stop or help page is a success.
    teardown: (exit, onExit) =>
      onExit(exit._tag === "Success" ? Number(process.exitCode ?? 0) : isAsked(exit.cause) ? 0 : 1)
  })
}

/** A TCP port; 0 picks a free one. */
export const portFlag = (name: string): Flag.Flag<number> =>
  Flag.Int(name).pipe(
    Flag.filter(
      (port) => port >= 0 && port <= 65_535,
      () => "a port from 1 to 65535, or 0 for a free one"
    )
  )
