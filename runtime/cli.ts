// The `tollkeeper` command. It reads a profile, starts what the profile says, and prints in a few lines what runs
// where. With the files beside it the only place that reads the environment or writes to the terminal.
import "effect/schema/SchemaJITCompiler/enable"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Cause, Console, Effect, FileSystem, Layer, Logger, Option, References, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { Console as TerminalConsole } from "node:console"
import process from "node:process"
import { sections } from "../kernel/config/Setting.ts"
import { decodeSection } from "../kernel/config/Settings.ts"
import { makeCatalogue } from "./App.ts"
import { crashAt } from "./crashAt.ts"
import { analyticsCommand } from "./analyticsCommand.ts"
import { auditCommand } from "./auditCommand.ts"
import { budgetCommand } from "./budgetCommand.ts"
import { catalogCommand } from "./catalogCommand.ts"
import { ledgerCommand } from "./ledgerCommand.ts"
import { greeting } from "./greeting.ts"
import { loadProfile } from "./profile.ts"
import { layer as telemetry } from "./platform/telemetry.ts"
import { databaseAt, serve } from "./serve.ts"
import { channelsCommand } from "./channelsCommand.ts"
import { settlementsCommand } from "./settlementsCommand.ts"

const version = "0.1.0"

const profileFlagOf = (shipped: string) =>
  Flag.String("profile").pipe(
    Flag.withDescription("A shipped profile (local, hosted, self-hosted, tools) or the path of a YAML file"),
    Flag.withDefault(shipped)
  )
const profileFlag = profileFlagOf("local")
const stateFlag = Flag.String("state").pipe(
  Flag.withDescription("Folder of this process's state"),
  Flag.withDefault(".tollkeeper")
)
const setFlag = Flag.String("set").pipe(
  Flag.withDescription("Override one setting: path=value, the value being YAML"),
  Flag.atLeast(0)
)
const portFlag = (name: string, what: string) =>
  Flag.Int(name).pipe(Flag.withDescription(`Port of ${what}; 0 picks a free one`), Flag.optional)

const portOverride = (path: string, port: Option.Option<number>): ReadonlyArray<string> =>
  Option.match(port, { onNone: () => [], onSome: (port) => [`${path}=${port}`] })

/** Stdout may belong to a protocol: then everything that people read goes to stderr. */
const aside = Effect.provideService(
  Console.Console,
  new TerminalConsole(process.stderr, process.stderr) as Console.Console
)

const run = Effect.fnUntraced(function* (
  flags: { readonly profile: string; readonly state: string },
  overrides: ReadonlyArray<string>
) {
  const profile = yield* loadProfile(flags.profile, overrides, process.env)
  const served = serve({
    profile,
    stateFolder: flags.state,
    database: databaseAt(profile.secret("DATABASE_URL"), flags.state),
    onReady: (address, services) => greeting({ address, profile, services, stateFolder: flags.state })
  }).pipe(crashAt(process.env["TOLLKEEPER_TEST_CRASH_AT"]))
  return yield* profile.plugins.includes("mcp-tools") ? aside(served) : served
})

const start = Command.make(
  "start",
  {
    profile: profileFlag,
    state: stateFlag,
    set: setFlag,
    port: portFlag("port", "the facilitator"),
    ledgerPort: portFlag("ledger-port", "the embedded ledger"),
    ledgerHttpsPort: portFlag("ledger-https-port", "the embedded ledger over HTTPS")
  },
  Effect.fn(function* (flags) {
    const ledgerUrl = Option.match(flags.ledgerPort, {
      onNone: () => [],
      onSome: (port) => [
        `networks.ledger:testnet.rpc_urls=["http://127.0.0.1:${port}"]`,
        `networks.ledger:testnet.friendbot_url=http://127.0.0.1:${port}/friendbot`
      ]
    })
    const overrides = [
      ...portOverride("server.port", flags.port),
      ...portOverride("local_ledger.port", flags.ledgerPort),
      ...portOverride("local_ledger.https_port", flags.ledgerHttpsPort),
      ...ledgerUrl,
      ...flags.set
    ]
    return yield* run(flags, overrides)
  })
).pipe(Command.withDescription("Run a facilitator, or whatever the profile names"))

const tools = Command.make(
  "tools",
  {
    profile: profileFlagOf("tools"),
    state: stateFlag,
    set: setFlag,
    port: portFlag("port", "the tool server's HTTP transport")
  },
  (flags) => run(flags, [...portOverride("http.port", flags.port), ...flags.set])
).pipe(
  Command.withDescription(
    "Run the agent tool server, by default over stdin and stdout in front of the facilitator on this machine"
  )
)

const configSchema = Command.make("schema", {}, () =>
  Console.log(
    JSON.stringify(
      Object.fromEntries(
        [...sections()].map(([name, section]) => [name, Schema.toJsonSchemaDocument(section.schema).schema])
      ),
      null,
      2
    )
  )
).pipe(Command.withDescription("Print every setting with its type, default and documentation"))

const configCheck = Command.make(
  "check",
  { profile: profileFlag, set: setFlag },
  Effect.fn(function* (flags) {
    const profile = yield* loadProfile(flags.profile, flags.set, process.env)
    makeCatalogue(profile)
    for (const section of sections().values()) yield* decodeSection(section, profile.tree)
    yield* Console.log(`${profile.name}: ${profile.plugins.join(", ")}: every setting is well-formed`)
  })
).pipe(Command.withDescription("Check a profile without starting anything"))

const config = Command.make("config").pipe(
  Command.withDescription("Settings and profiles"),
  Command.withSubcommands([configSchema, configCheck])
)

const reset = Command.make(
  "reset",
  { state: stateFlag },
  Effect.fn(function* (flags) {
    const files = yield* FileSystem.FileSystem
    yield* files.remove(flags.state, { recursive: true, force: true })
    yield* files.remove(`${flags.state}/database.lock`, { force: true })
    yield* Console.log(`${flags.state} is gone: database, ledger and development keys`)
  })
).pipe(Command.withDescription("Delete the local state: database, embedded ledger and development keys"))

const tollkeeper = Command.make("tollkeeper").pipe(
  Command.withDescription("An x402 payment facilitator for the Stellar ledger"),
  Command.withSubcommands([
    start,
    tools,
    budgetCommand,
    ledgerCommand,
    catalogCommand,
    analyticsCommand,
    channelsCommand,
    settlementsCommand,
    auditCommand,
    config,
    reset
  ])
)

/** Warnings and worse on a terminal, where people read; one JSON object a line otherwise, where machines do. */
const logging = Layer.mergeAll(
  Logger.layer([process.stderr.isTTY ? Logger.consolePretty({ stderr: true } as never) : Logger.consoleJson]),
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
