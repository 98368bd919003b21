// What a paid call came to (S215). The seller's word alone settles nothing and releases nothing: a success counts when
// it fits the payment and the ledger has it, a refusal leaves the reservation held for as long as the authorization
// lives. Whatever cannot be told is unknown.
import { Clock, Effect } from "effect"
import { neutralWord } from "../../../kernel/Dialect.ts"
import type { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import { provesPayment } from "../payer/proveSpent.ts"
import { type Fields, readChallenge, readSettlement, type SettlementWord } from "../seller/SellerWire.ts"
import type { ToolFault } from "../ToolFault.ts"
import type { OpenPayment } from "./Invocation.ts"

export type Judged =
  | { readonly _tag: "Settled"; readonly transaction: string }
  /** The seller asks for payment again. */
  | { readonly _tag: "StillRequired"; readonly reason: string | undefined }
  | { readonly _tag: "Rejected"; readonly reason: string | undefined }
  | { readonly _tag: "Unknown"; readonly why: string; readonly transaction: string | undefined }

const confirmPause = "400 millis"

const pendingReasons = new Set([
  "settlement_pending",
  "settle_ledger_transaction_status_unknown",
  "settle_ledger_temporarily_unavailable"
])

/** What in a settlement does not fit the payment, by name. */
const misfits = (
  word: SettlementWord,
  {
    authorization,
    invocation: {
      terms: { option }
    }
  }: OpenPayment
): ReadonlyArray<string> => [
  ...(word.transaction === undefined ? ["transaction"] : []),
  ...(word.network === option.network ? [] : ["network"]),
  ...(word.payer === authorization.payer ? [] : ["payer"]),
  ...(word.amount === undefined || word.amount === option.amount.toString() ? [] : ["amount"])
]

const unknown = (why: string, transaction?: string): Judged => ({ _tag: "Unknown", why, transaction })

/** `confirmMillis`: how long the ledger is asked, whose node may be a little behind the seller's. */
export const makeJudge = (rpc: LedgerRpc["Service"], confirmMillis: number) => {
  const confirmed = Effect.fnUntraced(function* (
    transaction: string,
    {
      authorization,
      invocation: {
        terms: { option }
      }
    }: OpenPayment
  ) {
    const end = (yield* Clock.currentTimeMillis) + confirmMillis
    while (true) {
      const proven = yield* Effect.catch(provesPayment(rpc, transaction, option, authorization), () =>
        Effect.succeed(false)
      )
      if (proven || (yield* Clock.currentTimeMillis) >= end) return proven
      yield* Effect.sleep(confirmPause)
    }
  })

  return Effect.fn("Tools.judge")(function* (answer: Fields | ToolFault, open: OpenPayment): Effect.fn.Return<Judged> {
    if ("_tag" in answer && answer["_tag"] === "ToolFault") return unknown((answer as ToolFault).message)
    const result = answer as Fields
    const word = readSettlement(result)
    if (word === undefined) {
      const challenged = readChallenge(result)
      return challenged._tag === "None"
        ? unknown("the seller's answer says nothing of a settlement")
        : { _tag: "StillRequired", reason: challenged._tag === "Challenge" ? challenged.challenge.reason : undefined }
    }
    if (!word.success) {
      const reason = word.reason === undefined ? undefined : neutralWord(word.reason)
      return reason !== undefined && pendingReasons.has(reason)
        ? unknown("the settlement is under way", word.transaction)
        : { _tag: "Rejected", reason }
    }
    const wrong = misfits(word, open)
    if (wrong.length > 0)
      return unknown(`the settlement does not fit the payment: ${wrong.join(", ")}`, word.transaction)
    return (yield* confirmed(word.transaction!, open))
      ? { _tag: "Settled", transaction: word.transaction! }
      : unknown("the ledger does not confirm the settlement", word.transaction)
  })
}
