// What a paid call came to (S215). The seller's word alone settles nothing and releases nothing: a success counts when
// it fits the payment and the ledger has it, a refusal leaves the reservation held for as long as the authorization
// lives. Whatever cannot be told is unknown.
import { Context, Effect, Layer } from "effect"
import { neutralWord } from "../../../kernel/Dialect.ts"
import { elapsedMillis } from "../../../kernel/elapsed.ts"
import { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import { provesPayment } from "../payer/proveSpent.ts"
import { ToolFault, ToolsConfig } from "../../mcp-tools/contract.ts"
import type { SettlementWord } from "../seller/SellerWire.ts"
import type { OpenPayment, PaidAnswer } from "./Invocation.ts"

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

/** The payment is on the ledger, and whoever says so has not got its result: a seller without payment identifiers. */
const settledBefore = "settle_ledger_already_settled"

/** What in a settlement does not fit the payment, by name. */
const misfits = (
  word: SettlementWord,
  { authorization, invocation: { option } }: OpenPayment
): ReadonlyArray<string> => [
  ...(word.transaction === undefined ? ["transaction"] : []),
  ...(word.network === option.network ? [] : ["network"]),
  ...(word.payer === authorization.payer ? [] : ["payer"]),
  ...(word.amount === undefined || word.amount === option.amount.toString() ? [] : ["amount"])
]

const unknown = (why: string, transaction?: string): Judged => ({ _tag: "Unknown", why, transaction })

const notSettled = ({ reason: said, transaction }: SettlementWord): Judged => {
  const reason = said === undefined ? undefined : neutralWord(said)
  if (reason === settledBefore)
    return unknown("it was settled before, and the seller delivers nothing for it", transaction)
  return reason !== undefined && pendingReasons.has(reason)
    ? unknown("the settlement is under way", transaction)
    : { _tag: "Rejected", reason }
}

export class Judge extends Context.Service<
  Judge,
  { readonly judge: (answer: PaidAnswer | ToolFault, open: OpenPayment) => Effect.Effect<Judged> }
>()("tollkeeper/mcp-tools-pay/Judge") {
  static readonly layer = Layer.effect(
    Judge,
    Effect.gen(function* () {
      const rpc = yield* LedgerRpc
      const { confirmMillis } = yield* ToolsConfig

      // The ledger is asked for a while: our node may be a little behind the seller's.
      const isConfirmed = Effect.fnUntraced(function* (
        transaction: string,
        { authorization, invocation: { option } }: OpenPayment
      ) {
        const end = (yield* elapsedMillis) + confirmMillis
        const look = Effect.catch(provesPayment(rpc, transaction, option, authorization), () => Effect.succeed(false))
        while (true) {
          const proven = yield* look
          if (proven || (yield* elapsedMillis) >= end) return proven
          yield* Effect.sleep(confirmPause)
        }
      })

      return Judge.of({
        judge: Effect.fn("Tools.judge")(function* (answer, open) {
          if (answer instanceof ToolFault) return unknown(answer.message)
          const { asksAgain, settlement: word } = answer
          if (word === undefined)
            return asksAgain === undefined
              ? unknown("the seller's answer says nothing of a settlement")
              : { _tag: "StillRequired", reason: asksAgain.reason }
          if (!word.success) return notSettled(word)
          const wrong = misfits(word, open)
          if (wrong.length > 0)
            return unknown(`the settlement does not fit the payment: ${wrong.join(", ")}`, word.transaction)
          return (yield* isConfirmed(word.transaction!, open))
            ? { _tag: "Settled", transaction: word.transaction! }
            : unknown("the ledger does not confirm the settlement", word.transaction)
        })
      })
    })
  )
}
