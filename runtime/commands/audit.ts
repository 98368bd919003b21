// `tollkeeper audit`: compares the ledger's transactions of our accounts with the database, without trusting the code
// that wrote it, and prints every mismatch. With `--log` the log of receipts is the third side. It only reads, and may
// run while facilitators use the same PostgreSQL. Exit code 1 on any mismatch.
import { Console, Data, Effect, Layer, Option } from "effect"
import { Command, Flag } from "effect/cli"
import type { Claims } from "../../kernel/audit/auditRows.ts"
import { compareBooks } from "../../kernel/audit/compareBooks.ts"
import { readLedger } from "../../kernel/audit/readLedger.ts"
import { Limits } from "../../kernel/config/Limits.ts"
import { Network } from "../../kernel/config/Network.ts"
import { administration as channels } from "../../plugins/x402-batch/plugin.ts"
import * as NodeHttpCalls from "../platform/nodeHttpCalls.ts"
import { auditLog } from "../auditLog.ts"
import { visibleLine, visibleText } from "../visibleText.ts"
import { jsonFlag, type CommandTarget, placeFlags, databaseStatus, tablesOf } from "./CommandTarget.ts"

/** Ledger and database differ. */
class AuditFailed extends Data.TaggedError("AuditFailed")<{ readonly message: string }> {}

interface Examined {
  /** Overrides the profile's first endpoint. */
  readonly rpc: Option.Option<string>
  /** True if the log is compared too. */
  readonly withLog: boolean
  /** A published copy of the log, a folder or URL. */
  readonly logCopy: Option.Option<string>
  /** File with the position in the log. */
  readonly resume?: string | undefined
}

/** The ledger data that these claims need: our accounts, since the oldest settlement. */
const interestOf = ({ channels, settlements, sponsorTransactions }: Claims) => ({
  accounts: new Set([
    ...channels.map(({ address }) => address),
    ...settlements.flatMap(({ channel, sponsor }) => [channel, sponsor]),
    ...sponsorTransactions.map(({ sponsor }) => sponsor)
  ]),
  sinceLedger: settlements.reduce(
    (least, { recorded_ledger }) => Math.min(least, Number(recorded_ledger)),
    Number.MAX_SAFE_INTEGER
  )
})

/** Reads and compares the sides. */
export const examine = Effect.fnUntraced(function* ({ logCopy, resume, rpc, withLog }: Examined) {
  const network = yield* Network
  const { rpcTimeout } = yield* Limits
  const recorded = yield* channels.readRecordedChannels
  const url = Option.getOrElse(rpc, () => network.rpcUrls[0]!)
  // An address given by flag receives no configured API key.
  const endpoint = { url, headers: Option.isSome(rpc) ? [] : network.rpcHeaders, timeout: rpcTimeout }
  const { passphrase } = network
  const { report, view } = yield* compareBooks((read) =>
    readLedger({ ...endpoint, ...interestOf(read), passphrase, contracts: recorded.contracts })
  )
  const { mismatches: ofChannels, ...batch } = yield* channels.auditChannels(recorded, view, endpoint)
  const mismatches = [...report.mismatches, ...ofChannels]
  if (!withLog) return { ...report, batch, logged: undefined, mismatches }
  const log = auditLog({ copy: Option.getOrUndefined(logCopy), file: resume, view })
  const { mismatches: ofLog, ...logged } = yield* log
  return { ...report, batch, logged, mismatches: [...mismatches, ...ofLog] }
})

type Batch = Effect.Success<ReturnType<typeof examine>>["batch"]

/** Channels of `batch-settlement` and their sums, in atomic units. Empty without channels. */
const channelLines = ({
  archived,
  changed,
  channels: count,
  ofOthers,
  older,
  tokens
}: Batch): ReadonlyArray<string> => {
  if (count === 0) return []
  const parts = [
    [older, "older than the ledger's history"],
    [archived, "archived"],
    [changed, "changed while this read"],
    [ofOthers, "moved by others too"]
  ] as const
  const notes = parts.flatMap(([many, what]) => (many === 0 ? [] : [`${many} ${what}`]))
  return [
    `channels: ${count}${notes.length === 0 ? "" : ` (${notes.join(", ")})`}`,
    ...tokens.map(
      ({ has, held, token, unsettled }) =>
        `${token}: ${held} held in channels, ${unsettled} claimed and not paid out, ` +
        (has === null ? "the contract's balance cannot be read" : `the contract has ${has}`)
    )
  ]
}

const booksOf = (place: CommandTarget, ...owners: ReadonlyArray<string>) =>
  databaseStatus(Layer.merge(Network.layer, Limits.layer).pipe(Layer.provideMerge(tablesOf(place, ...owners)))).pipe(
    Layer.merge(NodeHttpCalls.layer)
  )

export const audit = Command.make(
  "audit",
  {
    ...placeFlags(),
    rpc: Flag.String("rpc").pipe(Flag.withDescription("RPC to ask; default the profile's first"), Flag.optional),
    withLog: Flag.Boolean("log").pipe(
      Flag.withDescription("Compare the log of receipts too, with ledger and database; default false"),
      Flag.withDefault(false)
    ),
    logCopy: Flag.String("log-copy").pipe(
      Flag.withDescription(
        "A published copy of the log, a folder or URL (HOST/log), to compare with --log; default none"
      ),
      Flag.optional
    ),
    resume: Flag.String("resume").pipe(
      Flag.withDescription(
        "File with the position in the log: --log continues from it, and stores it after each page; default none"
      ),
      Flag.optional
    ),
    json: jsonFlag
  },
  Effect.fn(function* ({ json, logCopy, resume, rpc, withLog: isAsked, ...place }) {
    const withLog = isAsked || Option.isSome(logCopy) || Option.isSome(resume)
    const books = withLog ? booksOf(place, "receipts") : booksOf(place)
    const report = yield* Effect.provide(
      examine({ rpc, withLog, logCopy, resume: Option.getOrUndefined(resume) }),
      books
    )
    if (json) yield* Console.log(visibleText(JSON.stringify(report)))
    else
      for (const { detail, rule, subject } of report.mismatches)
        yield* Console.log(visibleLine(`${rule}: ${subject} ${detail}`))
    const { batch, forgotten, logged, mismatches, open, settlements, transactions, unresolved } = report
    const states = `${open} open, ${unresolved} unresolved, ${forgotten} older than the ledger's history`
    const leaves =
      logged === undefined
        ? ""
        : `${logged.leaves} logged outcomes (${logged.swept} swept since, ${logged.erased} erased), `
    const found = `${transactions} transactions, ${leaves}${mismatches.length} mismatches`
    if (!json) yield* Effect.forEach(channelLines(batch), (line) => Console.log(line))
    if (!json) yield* Console.log(`audit: ${settlements} settlements (${states}), ${found}`)
    const sides = withLog ? "ledger, database and log" : "ledger and database"
    if (mismatches.length > 0)
      return yield* new AuditFailed({ message: `${mismatches.length} mismatches between ${sides}` })
  })
).pipe(Command.withDescription("Compare the ledger with the database, and with the log, independently"))
