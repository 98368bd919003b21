// `tollkeeper ledger`: only the embedded ledger, for tests that need nothing but a Stellar RPC. Its program
// (`runLedger.ts`) is loaded when it runs.
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { portFlag } from "../runCommands.ts"

const text = (name: string, description: string) => Flag.String(name).pipe(Flag.withDescription(description))
const number = (name: string, description: string) => Flag.Int(name).pipe(Flag.withDescription(description))
const isOn = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

export const ledger = Command.make(
  "ledger",
  {
    port: portFlag("port").pipe(Flag.withDescription("TCP port; 0 picks a free one"), Flag.withDefault(8_000)),
    https: portFlag("https").pipe(
      Flag.withDescription("TCP port for HTTPS; needs --state for its certificate"),
      Flag.optional
    ),
    close: text("close", "Time between ledgers (1s, 250ms), or manual: POST /close makes the next one").pipe(
      Flag.withDefault("1s")
    ),
    contractTime: text(
      "contract-time",
      "Execution time for contracts per ledger, other transactions wait; default a quarter of --close"
    ).pipe(Flag.optional),
    fault: text("fault", "Fault to inject, such as drop=0.1 or rpc=getTransaction:503:0.2").pipe(Flag.atLeast(0)),
    allowOrigin: text("allow-origin", "Allowed web origin (CORS), such as http://localhost:3000; default none").pipe(
      Flag.atLeast(0)
    ),
    state: text("state", "Folder to store the ledger in; default in memory").pipe(Flag.optional),
    fork: text("fork", "Address of a Stellar RPC: start from its network's state, fetched as it is needed").pipe(
      Flag.optional
    ),
    seed: text("seed", "Seed of all randomness, for repeatable runs").pipe(Flag.optional),
    time: text("time", "Initial time (2026-01-01T00:00:00Z); it then advances one second with every ledger").pipe(
      Flag.optional
    ),
    strictCloseTimes: isOn(
      "strict-close-times",
      "Close times at least one second apart, even if they run ahead of the clock"
    ),
    protocol: number("protocol", "Protocol version; default that of the test network").pipe(Flag.optional),
    limits: text("limits", "Limits of contract transactions: testnet, or unlimited").pipe(Flag.withDefault("testnet")),
    minTtl: number(
      "min-ttl",
      "Minimum lifetime of a new contract entry, in ledgers; default that of the test network"
    ).pipe(Flag.optional),
    repair: isOn("repair", "Discard everything after a damaged or missing part of the stored ledger"),
    script: text("script", "JSON file of initial accounts and contracts").pipe(Flag.optional),
    seedAccounts: isOn("seed-accounts", "Create four accounts with XLM and USDC at the start")
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("../runLedger.ts")),
      ({ runLedger }) => runLedger(flags)
    )
).pipe(Command.withDescription("Run the embedded ledger alone"))
