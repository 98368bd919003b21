// `tollkeeper receipts verify`: checks a stored receipt without trusting the facilitator that signed it: signature,
// claims, the log's proof, and the ledger if one is given. It needs no profile and no state. Exit code 1 if a check
// fails. `begin-epoch` is for operators: it ends a log that a witness has shown to be a fork.
import { Data, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { SqlClient } from "effect/sql"
import type { StatementReport, VerifyOptions } from "../verifyReceipt.ts"
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

const refusing = <A>(check: () => Promise<A>) =>
  Effect.tryPromise({
    try: check,
    catch: (cause) =>
      new ReceiptRefused({ message: `not verified: ${cause instanceof Error ? cause.message : String(cause)}` })
  })

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
    expect: Flag.String("expect").pipe(
      Flag.withDescription(
        "A claim that the receipt must have: resource=URL, amount=10000; default none, may be repeated"
      ),
      Flag.atLeast(0)
    ),
    json: jsonFlag
  },
  Effect.fn(function* ({ did, expect, file, json, ledger, log, sellerDid, witness }) {
    const { verifyReceipt, verifyStatement } = yield* Effect.promise(() => import("../verifyReceipt.ts"))
    const options: VerifyOptions = {
      file,
      did: Option.getOrUndefined(did),
      sellerDid: Option.getOrUndefined(sellerDid),
      ledger: Option.getOrUndefined(ledger),
      log: Option.getOrUndefined(log),
      witnesses: witness,
      expected: expectedIn(expect)
    }
    if (file.endsWith(".jsonl")) return yield* answerStatement(json, yield* refusing(() => verifyStatement(options)))
    const report = yield* refusing(() => verifyReceipt(options))
    const { checks, claims, issuer, outcome } = report
    const what = Object.entries(claims).map(([name, value]) => `  ${name.padEnd(15)}${value}`)
    yield* answer(json, report, [...checks.map((check) => `ok  ${check}`), `${outcome}  receipt of ${issuer}`, ...what])
    if (outcome === "MISMATCH")
      return yield* new ReceiptRefused({ message: "payment and delivery contradict each other" })
  })
).pipe(Command.withDescription("Check a receipt, offline or against ledger and log"))

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
      const { readPublished } = yield* Effect.promise(() => import("../readLog.ts"))
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

export const receipts = Command.make("receipts").pipe(
  Command.withDescription("Signed receipts of payments: verify one; the log's epochs, for operators"),
  Command.withSubcommands([verify, beginEpoch])
)
