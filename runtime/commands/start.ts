// `tollkeeper start` and `tollkeeper tools`: a facilitator or an agent tool server, depending on the profile. They run
// until a signal, or until an actor gives up.
import { Console, Context, Effect, Option, Redacted } from "effect"
import { Command, Flag } from "effect/cli"
import { join } from "node:path"
import process from "node:process"
import { Network } from "../../kernel/config/Network.ts"
import { SettingsRefused } from "../../kernel/config/Settings.ts"
import * as Loader from "../../kernel/plugin/Loader.ts"
import { CrashPoints, type Step, steps } from "../../kernel/settlement/CrashPoints.ts"
import { describeDatabase } from "../answeredBy.ts"
import { makeCatalogue } from "../App.ts"
import { type ClientForm, clients } from "../clientConfig.ts"
import { greeting } from "../greeting.ts"
import { familiesOf, listenForOperators } from "../listenForOperators.ts"
import { isForPeople, progress } from "../logging.ts"
import { lockFolder } from "../platform/folderLock.ts"
import { releaseMemory } from "../platform/nodeMemory.ts"
import { portFlag } from "../runCommands.ts"
import type { Profile } from "../profile.ts"
import { databaseAt, requireNamedDatabase, serve } from "../serve.ts"
import { announce, claimState, databaseMark, describeInstance, instancesOf, StateRefused } from "../state.ts"
import { isTested } from "../system.mjs"
import { version } from "../version.ts"
import { defaulting, type CommandTarget, placeFlags, profileAt } from "./CommandTarget.ts"
import { printConfig } from "./printConfig.ts"
import { type AddressInfo, createServer } from "node:net"
import { execFile } from "node:child_process"

// Notifies systemd that the service is ready (`Type=notify`), through systemd's own program, because Node does not
// support Unix datagram sockets. Without a `NOTIFY_SOCKET`, systemd is not waiting and nothing runs.

/** Reports readiness with a status line. A failure is logged; systemd then ends the start by its own timeout. */
const notifyReady = (status: string): Effect.Effect<void> =>
  (process.env["NOTIFY_SOCKET"] ?? "") === ""
    ? Effect.void
    : Effect.callback<void, Error>((resume) => {
        execFile("systemd-notify", ["--ready", `--status=${status}`], { timeout: 5_000 }, (error) =>
          resume(error === null ? Effect.void : Effect.fail(error))
        )
      }).pipe(Effect.catch((error) => Effect.logError("systemd could not be notified of readiness", error)))

/**
 * Finds a free port, for a program that needs the number before it opens the port. Another program may take it in
 * between: then the start fails with that message, and the next one gets another port.
 */
const freePort: Effect.Effect<number> = Effect.callback<number>((resume) => {
  const server = createServer().once("error", (error) => resume(Effect.die(error)))
  server.listen(0, "127.0.0.1", () => {
    const { port } = server.address() as AddressInfo
    server.close(() => resume(Effect.succeed(port)))
  })
})

const isStep = (name: string): name is Step => (steps as ReadonlyArray<string>).includes(name)

/** For tests only: crash points that kill this process at `name`, as a power cut would; none when it is absent. */
const crashAt =
  (name: string | undefined) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    name === undefined || !isStep(name)
      ? effect
      : Effect.provideService(effect, CrashPoints, (step: Step) =>
          step === name
            ? Effect.sync(() => void process.kill(process.pid, "SIGKILL")).pipe(Effect.andThen(Effect.never))
            : Effect.void
        )

/** The facilitator's port in the shipped profiles. */
const portDefault = 4022

/** The default of the embedded ledger's own port setting. */
const ledgerPortDefault = 8_000

/** Offset of the ledger's HTTPS port from its HTTP port, used if only the HTTP port is chosen: 8000 and 8443. */
const httpsAbove = 443

const ownPortFlag = (name: string, what: string, from: string) =>
  portFlag(name).pipe(Flag.withDescription(`Port of ${what}, 0 picks a free one; default ${from}`), Flag.optional)

const portOverride = (path: string, port: Option.Option<number>): ReadonlyArray<string> =>
  Option.match(port, { onNone: () => [], onSome: (port) => [`${path}=${port}`] })

/**
 * Whether the process needs exclusive use of the state folder: for an embedded ledger, or for the embedded database
 * when an enabled plugin needs one. An inconsistent profile is refused later.
 */
const keepsState = (profile: Profile): Effect.Effect<boolean> =>
  Effect.match(Loader.select(makeCatalogue(profile), profile.plugins), {
    onFailure: () => true,
    onSuccess: (plugins) => {
      const has = (id: string) => plugins.some((one) => one.id === id)
      return has("ledger-local") || (Option.isNone(profile.secret("DATABASE_URL")) && has("database"))
    }
  })

/** Exclusive use of the state folder; the refusal names the running process and what to do. */
const aloneIn = Effect.fnUntraced(function* (folder: string) {
  const other = instancesOf(folder).find(({ isAlone }) => isAlone)
  if (other !== undefined) {
    const stop = `stop it (Ctrl+C in its terminal, or kill ${other.pid} where it runs)`
    const second = "start a second one with --state DIR and its own ports"
    return yield* new StateRefused({
      message: `a Tollkeeper already runs over ${folder} (${describeInstance(other)}); ${stop}, or ${second}`
    })
  }
  yield* lockFolder(join(folder, "state"))
})

const addressOf = (address: { readonly host: string; readonly port: number } | undefined) =>
  address === undefined
    ? {}
    : { url: `http://${address.host === "0.0.0.0" ? "127.0.0.1" : address.host}:${address.port}` }

const rpcOf = (services: Context.Context<never>) => {
  const rpc = Option.map(Context.getOption(services, Network), ({ rpcUrls }) => rpcUrls[0])
  // A remote endpoint's URL may hold a key, which must not be written to a file.
  return Option.isSome(rpc) && /^http:\/\/(127\.0\.0\.1|localhost)[:/]/.test(rpc.value ?? "") ? { rpc: rpc.value! } : {}
}

/** The listeners of a process with an embedded ledger: setting, flag, and default port. */
const listeners = [
  { section: "server", key: "port", flag: "--port", otherwise: portDefault },
  { section: "local_ledger", key: "port", flag: "--ledger-port", otherwise: ledgerPortDefault },
  { section: "local_ledger", key: "https_port", flag: "--ledger-https-port", otherwise: ledgerPortDefault + httpsAbove }
] as const

const everywhere = new Set(["0.0.0.0", "::", "[::]"])

/**
 * A message if two listeners of this process have the same port, otherwise undefined. The system's own error would
 * blame another program.
 */
export const samePort = ({ plugins, tree }: Pick<Profile, "plugins" | "tree">): string | undefined => {
  if (!plugins.includes("ledger-local")) return undefined
  const named = listeners.map(({ flag, key, otherwise, section }) => {
    const settings = Object(tree[section])
    const isOff = key === "https_port" && settings.https === false
    return { flag, port: isOff ? 0 : (settings[key] ?? otherwise), host: settings.host ?? "127.0.0.1" }
  })
  for (const [index, one] of named.entries())
    for (const other of named.slice(0, index)) {
      const isOneHost = one.host === other.host || everywhere.has(one.host) || everywhere.has(other.host)
      if (one.port !== 0 && one.port === other.port && isOneHost)
        return `port ${one.port} is given to ${other.flag} and ${one.flag} both; choose another with ${one.flag} PORT`
    }
  return undefined
}

const run = Effect.fnUntraced(function* (place: CommandTarget, overrides: ReadonlyArray<string>) {
  const profile = yield* profileAt(place, overrides)
  const twice = samePort(profile)
  if (twice !== undefined) return yield* new SettingsRefused({ path: "", message: twice })
  yield* requireNamedDatabase(profile)
  yield* claimState(place.state)
  const isAlone = yield* keepsState(profile)
  if (isAlone) yield* aloneIn(place.state)
  if (!isTested(process.platform))
    yield* progress(`${process.platform} should work but is untested; please report how it went`)
  yield* progress(`Starting ${profile.plugins.join(", ")} …`)
  return yield* serve({
    profile,
    stateFolder: place.state,
    database: databaseAt(profile, place.state),
    onReady: (address, services) =>
      Effect.gen(function* () {
        // A tool server that does not pay has no services for operators' commands.
        const families = familiesOf(services)
        const operators =
          families.length === 0 ? {} : { operators: { ...(yield* listenForOperators(services, version)), families } }
        yield* announce(place.state, {
          profile: profile.name,
          isAlone,
          database: databaseMark(Option.getOrUndefined(Option.map(profile.secret("DATABASE_URL"), Redacted.value))),
          databaseName: describeDatabase(profile, place.state),
          ...addressOf(address),
          ...rpcOf(services),
          ...operators
        })
        const reported = { address, profile: profile.name, stateFolder: place.state }
        yield* greeting({ ...reported, isForPeople: isForPeople(process.stdout) })
        yield* notifyReady(`profile ${profile.name}${address === undefined ? "" : `, port ${address.port}`}`)
        yield* Effect.forkScoped(releaseMemory)
      })
  }).pipe(crashAt(process.env["TOLLKEEPER_TEST_CRASH_AT"]))
}, Effect.scoped)

/** The ledger's HTTPS port: as chosen, or at the offset from the other one; 0 is any free port. */
export const httpsPortOf = (chosen: Option.Option<number>, ledgerPort: Option.Option<number>) =>
  Option.orElse(chosen, () =>
    Option.map(ledgerPort, (port) => (port === 0 || port + httpsAbove > 65_535 ? 0 : port + httpsAbove))
  )

/** Moving the embedded ledger's port moves the facilitator's RPC as well; 0 is any free port. */
const ledgerOverrides = (port: Option.Option<number>) =>
  Effect.map(
    Option.exists(port, (port) => port === 0) ? Effect.map(freePort, Option.some) : Effect.succeed(port),
    (port) =>
      Option.match(port, {
        onNone: (): ReadonlyArray<string> => [],
        onSome: (port) => [
          `local_ledger.port=${port}`,
          `networks.ledger:testnet.rpc_urls=["http://127.0.0.1:${port}"]`,
          `networks.ledger:testnet.friendbot_url=http://127.0.0.1:${port}/friendbot`
        ]
      })
  )

/** Only the facilitator's pages may query the embedded ledger; `--set` allows other origins. */
const ownPages = (port: Option.Option<number>): ReadonlyArray<string> => {
  const at = Option.getOrElse(port, () => portDefault)
  return at === 0 ? [] : [`local_ledger.allowed_origins=["http://127.0.0.1:${at}", "http://localhost:${at}"]`]
}

export const start = Command.make(
  "start",
  {
    ...placeFlags(),
    port: ownPortFlag("port", "the facilitator", String(portDefault)),
    ledgerPort: ownPortFlag("ledger-port", "the embedded ledger", String(ledgerPortDefault)),
    ledgerHttpsPort: ownPortFlag("ledger-https-port", "the embedded ledger over HTTPS", "443 above --ledger-port")
  },
  Effect.fn(function* (flags) {
    return yield* run(flags, [
      ...portOverride("server.port", flags.port),
      ...ownPages(flags.port),
      ...portOverride("local_ledger.https_port", httpsPortOf(flags.ledgerHttpsPort, flags.ledgerPort)),
      ...(yield* ledgerOverrides(flags.ledgerPort))
    ])
  })
).pipe(Command.withDescription("Run a facilitator, or the program that the profile names"))

export const tools = Command.make(
  "tools",
  {
    ...placeFlags("tools"),
    port: ownPortFlag("port", "the tool server's HTTP transport", "4522"),
    printConfig: Flag.Boolean("print-config").pipe(
      Flag.withDescription("Print a client's configuration for this server, and start nothing; default false"),
      Flag.withDefault(false)
    ),
    client: Flag.Literals("client", clients).pipe(
      defaulting(
        "With --print-config, the format: any (mcpServers), vscode, codex, or the registry's server.json",
        "any" as ClientForm
      )
    )
  },
  ({ client, printConfig: isPrinting, ...flags }) => {
    const overrides = portOverride("http.port", flags.port)
    return isPrinting ? Effect.flatMap(printConfig(client, flags, overrides), Console.log) : run(flags, overrides)
  }
).pipe(
  Command.withDescription(
    "Run the agent tool server, by default over stdin and stdout in front of the facilitator on this machine"
  )
)
