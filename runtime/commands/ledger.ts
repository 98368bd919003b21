// `tollkeeper ledger`: only the embedded ledger, for tests that need nothing but a Stellar RPC. Its program
// (`runLedger.ts`) is loaded when it runs.
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { portFlag } from "../runCommands.ts"

export const ledger = Command.make(
  "ledger",
  {
    port: portFlag("port").pipe(Flag.withDescription("TCP port; 0 picks a free one"), Flag.withDefault(8_000)),
    https: portFlag("https").pipe(
      Flag.withDescription("TCP port for HTTPS; needs --state for its certificate"),
      Flag.optional
    ),
    close: Flag.String("close").pipe(
      Flag.withDescription("Time between ledgers (1s, 250ms), or manual: POST /close makes the next one"),
      Flag.withDefault("1s")
    ),
    contractTime: Flag.String("contract-time").pipe(
      Flag.withDescription(
        "Execution time for contracts per ledger, other transactions wait; default a quarter of --close"
      ),
      Flag.optional
    ),
    fault: Flag.String("fault").pipe(
      Flag.withDescription("Fault to inject, such as drop=0.1 or rpc=getTransaction:503:0.2"),
      Flag.atLeast(0)
    ),
    allowOrigin: Flag.String("allow-origin").pipe(
      Flag.withDescription("Allowed web origin (CORS), such as http://localhost:3000; default none"),
      Flag.atLeast(0)
    ),
    state: Flag.String("state").pipe(
      Flag.withDescription("Folder to store the ledger in; default in memory"),
      Flag.optional
    ),
    fork: Flag.String("fork").pipe(
      Flag.withDescription("Address of a Stellar RPC: start from its network's state, fetched as it is needed"),
      Flag.optional
    ),
    seed: Flag.String("seed").pipe(Flag.withDescription("Seed of all randomness, for repeatable runs"), Flag.optional),
    time: Flag.String("time").pipe(
      Flag.withDescription("Initial time (2026-01-01T00:00:00Z); it then advances one second with every ledger"),
      Flag.optional
    ),
    strictCloseTimes: Flag.Boolean("strict-close-times").pipe(
      Flag.withDescription("Close times at least one second apart, even if they run ahead of the clock"),
      Flag.withDefault(false)
    ),
    protocol: Flag.Int("protocol").pipe(
      Flag.withDescription("Protocol version; default that of the test network"),
      Flag.optional
    ),
    limits: Flag.String("limits").pipe(
      Flag.withDescription("Limits of contract transactions: testnet, or unlimited"),
      Flag.withDefault("testnet")
    ),
    minTtl: Flag.Int("min-ttl").pipe(
      Flag.withDescription("Minimum lifetime of a new contract entry, in ledgers; default that of the test network"),
      Flag.optional
    ),
    repair: Flag.Boolean("repair").pipe(
      Flag.withDescription("Discard everything after a damaged or missing part of the stored ledger"),
      Flag.withDefault(false)
    ),
    script: Flag.String("script").pipe(
      Flag.withDescription("JSON file of initial accounts and contracts"),
      Flag.optional
    ),
    seedAccounts: Flag.Boolean("seed-accounts").pipe(
      Flag.withDescription("Create four accounts with XLM and USDC at the start"),
      Flag.withDefault(false)
    )
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("../runLedger.ts")),
      ({ runLedger }) => runLedger(flags)
    )
).pipe(Command.withDescription("Run the embedded ledger alone"))
