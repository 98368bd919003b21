// `tollkeeper receipts verify`: checks a stored receipt without trusting the facilitator that signed it: signature,
// claims, the log's proof, and the ledger if one is given. It needs no profile and no state. Exit code 1 if a check
// fails. `fetch` reads receipts from a facilitator. `erase` and `begin-epoch` are for operators: `begin-epoch`
// ends a log that a witness has shown to be a fork.
import { Console, Data, Effect, Option, Schema, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { SqlClient } from "effect/sql"
import { inTransaction } from "../../kernel/database/Database.ts"
import type { StatementReport, VerifyOptions } from "../verifyReceipt.ts"
import { visibleText } from "../visibleText.ts"
import { answer, jsonFlag, noted, placeFlags, tablesOf, reasonFlag } from "./CommandTarget.ts"

/** A check failed; the message contains the reason. */
class ReceiptRefused extends Data.TaggedError("ReceiptRefused")<{ readonly message: string }> {}

const optional = (name: string, words: string) =>
  Flag.String(name).pipe(Flag.withDescription(`${words}; default none`), Flag.optional)

const expectedIn = (pairs: ReadonlyArray<string>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=")
      return [pair.slice(0, at), pair.slice(at + 1)]
    })
  )

const refused = (what: string) => (cause: unknown) =>
  new ReceiptRefused({ message: `${what}: ${cause instanceof Error ? cause.message : String(cause)}` })

const refusing = <A>(check: () => Promise<A>) => Effect.tryPromise({ try: check, catch: refused("not verified") })

const answerStatement = Effect.fnUntraced(function* (json: boolean, report: StatementReport) {
  const { refused, totals, verified } = report
  yield* answer(json, report, [
    ...refused.map(({ line, why }) => `line ${line}  not verified: ${why}`),
    `${verified} receipts verified, ${refused.length} refused`,
    ...Object.entries(totals).map(([asset, amount]) => `  ${asset}  ${amount}`)
  ])
  if (refused.length > 0) return yield* new ReceiptRefused({ message: `${refused.length} receipts are refused` })
})

const verify = Command.make(
  "verify",
  {
    file: Argument.String("file").pipe(
      Argument.withDescription(
        "A receipt, an answer of GET /receipts/HASH or /settle, or a PAYMENT-RESPONSE header; FILE.jsonl: one a line"
      )
    ),
    ledger: optional("ledger", "Address of a Stellar RPC, asked for the payment's movement"),
    log: optional("log", "Address of the facilitator, whose log is read"),
    did: Flag.String("did").pipe(
      Flag.withDescription("Its did.json, a file or URL; default the one that the receipt's did:web names"),
      Flag.optional
    ),
    sellerDid: optional("seller-did", "The seller's did.json, a file or URL, for its offer-receipt"),
    witness: Flag.String("witness").pipe(
      Flag.withDescription("A witness's verifier key, NAME+HASH+KEY, that must have cosigned the log; may be repeated"),
      Flag.atLeast(0)
    ),
    maxAge: Flag.Int("max-age").pipe(
      Flag.withDescription(
        "Refuse a checkpoint of more seconds: the proof's, or with --log the log's newest; default a day with --log"
      ),
      Flag.optional
    ),
    expect: Flag.String("expect").pipe(
      Flag.withDescription(
        "A claim that the receipt must have: resource=URL, amount=10000; default none, may be repeated"
      ),
      Flag.atLeast(0)
    ),
    json: jsonFlag
  },
  Effect.fn(function* ({ did, expect, file, json, ledger, log, maxAge, sellerDid, witness }) {
    const { verifyReceipt, verifyStatement } = yield* Effect.promise(() => import("../verifyReceipt.ts"))
    const options: VerifyOptions = {
      file,
      did: Option.getOrUndefined(did),
      sellerDid: Option.getOrUndefined(sellerDid),
      ledger: Option.getOrUndefined(ledger),
      log: Option.getOrUndefined(log),
      witnesses: witness,
      maxAge: Option.getOrUndefined(maxAge),
      expected: expectedIn(expect)
    }
    if (file.endsWith(".jsonl")) return yield* answerStatement(json, yield* refusing(() => verifyStatement(options)))
    const report = yield* refusing(() => verifyReceipt(options))
    const { checks, claims, issuer, outcome } = report
    const textOf = (value: unknown) => (typeof value === "object" ? JSON.stringify(value) : String(value))
    const what = Object.entries(claims).map(([name, value]) => `  ${name.padEnd(15)}${textOf(value)}`)
    yield* answer(json, report, [...checks.map((check) => `ok  ${check}`), `${outcome}  receipt of ${issuer}`, ...what])
    if (outcome === "MISMATCH")
      return yield* new ReceiptRefused({ message: "payment and delivery contradict each other" })
  })
).pipe(Command.withDescription("Check a receipt, offline or against ledger and log"))

const fetched = Command.make(
  "fetch",
  {
    places: Argument.String("receipt").pipe(
      Argument.withDescription("A transaction's hash, or a file with a stored receipt; FILE.jsonl: one a line"),
      Argument.variadic({ min: 1 })
    ),
    url: Flag.String("url").pipe(Flag.withDescription("Address of the facilitator")),
    secretFile: optional(
      "secret-file",
      "File with the seed (S…) of payer or payee, which signs a challenge, or with the API key that settled it"
    )
  },
  Effect.fn(function* ({ places, secretFile, url }) {
    const { fetchReceipts } = yield* Effect.promise(() => import("../fetchReceipts.ts"))
    const lines = fetchReceipts({ places, url, secretFile: Option.getOrUndefined(secretFile) })
    yield* Stream.runForEach(Stream.fromAsyncIterable(lines, refused("not fetched")), (line) =>
      Console.log(visibleText(line))
    )
  })
).pipe(Command.withDescription("Print receipts with new proofs, a line each, for an API key, payer or payee"))

const beginEpoch = Command.make(
  "begin-epoch",
  {
    ...placeFlags(),
    json: jsonFlag,
    reason: reasonFlag,
    published: optional("published", "A copy of the log as it was published, a folder or URL, that the new epoch names")
  },
  ({ json, reason, published, ...place }) =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { readPublished } = yield* Effect.promise(() => import("../auditLog.ts"))
      const copy = Option.isNone(published) ? null : JSON.stringify(yield* readPublished(published.value))
      const [ended] = yield* noted({ action: "begin-epoch", subject: "receipts", reason })(
        sql<{ epoch: number }>`update receipts_epochs set ended = ${`an operator ended it: ${reason}`},
            published = ${copy}::jsonb
          where epoch = (select max(epoch) from receipts_epochs) and ended is null returning epoch`
      )
      yield* answer(json, { ended: ended?.epoch ?? null }, [
        ended === undefined
          ? "a new epoch is already about to begin"
          : "the log begins a new epoch within seconds; /log/epochs shows its name and the epoch that it continues"
      ])
    }).pipe(Effect.provide(tablesOf(place, "receipts")))
).pipe(Command.withDescription("End the log's epoch, as after a restore that a witness shows, and begin the next one"))

interface ErasedLeaf {
  readonly epoch: number
  readonly index: bigint
  readonly isCovered: boolean
}

/** Erases the content of a transaction's leaves, and its receipt. The tree and the map keep their hashes. */
const eraseLeaves = Effect.fnUntraced(function* (transaction: string) {
  const sql = yield* SqlClient.SqlClient
  const own = sql`transaction = decode(${transaction}, 'hex')`
  const leaves = yield* sql<ErasedLeaf>`select l.epoch, l.index, l.index < e.map_size and exists (select 1
      from receipts_checkpoints c where c.epoch = l.epoch and c.size > l.index) as "isCovered"
    from receipts_leaves l join receipts_epochs e using (epoch) where ${own} order by l.epoch, l.index for update of l`
  if (leaves.length === 0) return yield* new ReceiptRefused({ message: "the log has no content of this transaction" })
  if (!leaves.every(({ isCovered }) => isCovered))
    return yield* new ReceiptRefused({ message: "no checkpoint covers it yet; try again in five seconds" })
  yield* sql`update receipts_leaves set erased_transaction = transaction, erased_at = clock_timestamp(), salt = null,
    record = null, transaction = null, principal = null, payer = null, pay_to = null where ${own}`
  yield* sql`delete from receipts_receipts where ${own}`
  return leaves.map(({ epoch, index }) => `leaf ${index} of epoch ${epoch}`)
})

const erase = Command.make(
  "erase",
  {
    ...placeFlags(),
    json: jsonFlag,
    reason: reasonFlag,
    transaction: Argument.String("hash").pipe(
      Argument.withSchema(Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/))),
      Argument.withDescription("The transaction's hash")
    )
  },
  ({ json, reason, transaction, ...place }) =>
    Effect.gen(function* () {
      const erased = yield* noted({ action: "erase-receipt", subject: transaction, reason })(
        inTransaction(eraseLeaves(transaction)),
        (leaves) => ({ before: leaves.join(", "), after: "erased" })
      )
      yield* answer(json, { transaction, erased }, [
        `erased the receipt and the content of ${erased.join(", ")}; the log keeps the hash`,
        "the settlement's own record stays until its retention ends, and holders keep their receipts"
      ])
    }).pipe(Effect.provide(tablesOf(place, "receipts")))
).pipe(Command.withDescription("Erase a transaction's receipt and the content of its leaves, as on a payer's request"))

export const receipts = Command.make("receipts").pipe(
  Command.withDescription("Signed receipts of payments: verify and fetch them; erasure and epochs, for operators"),
  Command.withSubcommands([verify, fetched, erase, beginEpoch])
)
