// `tollkeeper start` and `tollkeeper tools`: a facilitator, or an agent tool server, as the profile says. They run
// until a signal, or until an actor gives up.
import { Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import process from "node:process"
import { crashAt } from "../crashAt.ts"
import { greeting } from "../greeting.ts"
import { databaseAt, serve } from "../serve.ts"
import { type Place, placeFlags, profileAt } from "./place.ts"

const portFlag = (name: string, what: string) =>
  Flag.Int(name).pipe(Flag.withDescription(`Port of ${what}; 0 picks a free one`), Flag.optional)

const portOverride = (path: string, port: Option.Option<number>): ReadonlyArray<string> =>
  Option.match(port, { onNone: () => [], onSome: (port) => [`${path}=${port}`] })

const run = Effect.fnUntraced(function* (place: Place, overrides: ReadonlyArray<string>) {
  const profile = yield* profileAt(place, overrides)
  return yield* serve({
    profile,
    stateFolder: place.state,
    database: databaseAt(profile.secret("DATABASE_URL"), place.state),
    onReady: (address) => greeting({ address, profile: profile.name, stateFolder: place.state })
  }).pipe(crashAt(process.env["TOLLKEEPER_TEST_CRASH_AT"]))
})

/** Who moves the embedded ledger to another port means the facilitator's RPC as well. */
const ledgerOverrides = (port: Option.Option<number>): ReadonlyArray<string> =>
  Option.match(port, {
    onNone: () => [],
    onSome: (port) => [
      `networks.ledger:testnet.rpc_urls=["http://127.0.0.1:${port}"]`,
      `networks.ledger:testnet.friendbot_url=http://127.0.0.1:${port}/friendbot`
    ]
  })

export const start = Command.make(
  "start",
  {
    ...placeFlags(),
    port: portFlag("port", "the facilitator"),
    ledgerPort: portFlag("ledger-port", "the embedded ledger"),
    ledgerHttpsPort: portFlag("ledger-https-port", "the embedded ledger over HTTPS")
  },
  (flags) =>
    run(flags, [
      ...portOverride("server.port", flags.port),
      ...portOverride("local_ledger.port", flags.ledgerPort),
      ...portOverride("local_ledger.https_port", flags.ledgerHttpsPort),
      ...ledgerOverrides(flags.ledgerPort)
    ])
).pipe(Command.withDescription("Run a facilitator, or whatever the profile names"))

export const tools = Command.make(
  "tools",
  { ...placeFlags("tools"), port: portFlag("port", "the tool server's HTTP transport") },
  (flags) => run(flags, portOverride("http.port", flags.port))
).pipe(
  Command.withDescription(
    "Run the agent tool server, by default over stdin and stdout in front of the facilitator on this machine"
  )
)
