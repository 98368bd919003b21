// `tollkeeper audit`: compares the ledger's transactions of our accounts with the database, without trusting the code
// that wrote it, and prints every mismatch. It reads only; it may run beside facilitators on one PostgreSQL. Exit code
// 1 on any mismatch.
import { Console, Data, Effect, Layer, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { readClaims } from "../../kernel/audit/auditRows.ts"
import { compare } from "../../kernel/audit/compare.ts"
import { readLedger } from "../../kernel/audit/readLedger.ts"
import { Limits } from "../../kernel/config/Limits.ts"
import { Network } from "../../kernel/config/Network.ts"
import * as NodeHttpCalls from "../platform/nodeHttpCalls.ts"
import { jsonFlag, kernelTables, type CommandTarget, placeFlags, databaseStatus } from "./CommandTarget.ts"

/** Ledger and database differ. */
class AuditFailed extends Data.TaggedError("AuditFailed")<{ readonly message: string }> {}

/** Both sides, read and compared; `rpc` in place of the profile's first endpoint. */
const examine = Effect.fnUntraced(function* (rpc: Option.Option<string>) {
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
  const url = Option.getOrElse(rpc, () => network.rpcUrls[0]!)
  return compare(
    claims,
    yield* readLedger({
      url,
      // An address given by flag receives no configured API key.
      headers: Option.isSome(rpc) ? [] : network.rpcHeaders,
      passphrase: network.passphrase,
      timeout: rpcTimeout,
      accounts,
      sinceLedger
    })
  )
})

const booksOf = (place: CommandTarget) =>
  databaseStatus(Layer.merge(Network.layer, Limits.layer).pipe(Layer.provideMerge(kernelTables(place)))).pipe(
    Layer.merge(NodeHttpCalls.layer)
  )

export const audit = Command.make(
  "audit",
  {
    ...placeFlags(),
    rpc: Flag.String("rpc").pipe(Flag.withDescription("RPC to ask; default the profile's first"), Flag.optional),
    json: jsonFlag
  },
  Effect.fn(function* ({ json, rpc, ...place }) {
    const report = yield* Effect.provide(examine(rpc), booksOf(place))
    if (json) yield* Console.log(JSON.stringify(report))
    else for (const { detail, rule, subject } of report.mismatches) yield* Console.log(`${rule}: ${subject} ${detail}`)
    const { forgotten, mismatches, open, settlements, transactions, unresolved } = report
    const states = `${open} open, ${unresolved} unresolved, ${forgotten} older than the ledger's memory`
    const found = `${transactions} transactions, ${mismatches.length} mismatches`
    if (!json) yield* Console.log(`audit: ${settlements} settlements (${states}), ${found}`)
    if (mismatches.length > 0)
      return yield* new AuditFailed({ message: `${mismatches.length} mismatches between ledger and database` })
  })
).pipe(Command.withDescription("Compare the ledger with the database, independently"))
