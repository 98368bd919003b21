// `tollkeeper audit`: compares the ledger's transactions of our accounts with the database, without trusting the code
// that wrote it, and prints every mismatch. It reads only; it may run beside facilitators on one PostgreSQL. Exit code
// 1 on any mismatch.
import { Console, Data, Effect, Layer, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { FetchHttpClient } from "effect/http"
import process from "node:process"
import { readClaims } from "../kernel/audit/auditRows.ts"
import { compare } from "../kernel/audit/compare.ts"
import { readLedger } from "../kernel/audit/readLedger.ts"
import { Limits } from "../kernel/config/Limits.ts"
import { Network } from "../kernel/config/Network.ts"
import { Settings } from "../kernel/config/Settings.ts"
import { Database } from "../kernel/database/Database.ts"
import * as NodeCrypto from "./platform/nodeCrypto.ts"
import { loadProfile } from "./profile.ts"
import { databaseAt } from "./serve.ts"

/** The books do not agree. */
class AuditFailed extends Data.TaggedError("AuditFailed")<{ readonly message: string }> {}

export const auditCommand = Command.make(
  "audit",
  {
    profile: Flag.String("profile").pipe(
      Flag.withDescription("The profile the facilitators run with"),
      Flag.withDefault("local")
    ),
    state: Flag.String("state").pipe(
      Flag.withDescription("State folder, for the embedded database; no process may hold it"),
      Flag.withDefault(".tollkeeper")
    ),
    set: Flag.String("set").pipe(Flag.withDescription("Override one setting: path=value"), Flag.atLeast(0)),
    rpc: Flag.String("rpc").pipe(Flag.withDescription("RPC to ask; default the profile's first"), Flag.optional),
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("Print the report as one JSON object"),
      Flag.withDefault(false)
    )
  },
  Effect.fn(function* (flags) {
    const profile = yield* loadProfile(flags.profile, flags.set, process.env)
    const audit = Effect.gen(function* () {
      const network = yield* Network
      const { rpcTimeout } = yield* Limits
      const claims = yield* readClaims()
      const accounts = new Set([
        ...claims.channels.map(({ address }) => address),
        ...claims.settlements.flatMap(({ channel, sponsor }) => [channel, sponsor]),
        ...claims.sponsorTransactions.map(({ sponsor }) => sponsor)
      ])
      const sinceLedger = claims.settlements.reduce(
        (least, { recorded_ledger }) => Math.min(least, Number(recorded_ledger)),
        Number.MAX_SAFE_INTEGER
      )
      const url = Option.getOrElse(flags.rpc, () => network.rpcUrls[0]!)
      return compare(
        claims,
        yield* readLedger({ url, passphrase: network.passphrase, timeout: rpcTimeout, accounts, sinceLedger })
      )
    })
    const report = yield* audit.pipe(
      Effect.provide(
        Layer.mergeAll(Database.layer, Network.layer, Limits.layer).pipe(
          Layer.provide(databaseAt(profile.secret("DATABASE_URL"), flags.state)),
          Layer.provide(Settings.layer(profile)),
          Layer.merge(Layer.merge(NodeCrypto.layer, FetchHttpClient.layer))
        )
      )
    )
    if (flags.json) yield* Console.log(JSON.stringify(report))
    else for (const { detail, rule, subject } of report.mismatches) yield* Console.log(`${rule}: ${subject} ${detail}`)
    const { forgotten, mismatches, open, settlements, transactions, unresolved } = report
    yield* Console.log(
      `audit: ${settlements} settlements (${open} open, ${unresolved} unresolved, ${forgotten} older than the ledger's memory), ${transactions} transactions, ${mismatches.length} mismatches`
    )
    if (mismatches.length > 0)
      return yield* new AuditFailed({ message: `${mismatches.length} mismatches between ledger and database` })
  })
).pipe(Command.withDescription("Compare the ledger with the database, independently"))
