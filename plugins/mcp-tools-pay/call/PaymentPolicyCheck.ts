// Determines the outcome of a paid call (S215). The seller's receipt neither settles nor releases anything. Only the
// ledger does: we ask it, for a bounded time, by the transaction that the seller names and by the authorization's own
// nonce. If the ledger shows the payment, the seller's answer is delivered, with the members of its receipt that do not
// match. A refusal leaves the reservation held for as long as the authorization lives. Any other outcome is unknown.
import { Context, Effect, Layer, Schedule } from "effect"
import { neutralReason } from "../../../kernel/Dialect.ts"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import { fateOf, findPayment, lateFate, type PaymentProof } from "../payer/proveSpent.ts"
import { ToolError, ToolsConfig } from "../../mcp-tools/contract.ts"
import type { SettlementClaim } from "../seller/SellerWire.ts"
import type { OpenPayment, PaidAnswer } from "./Invocation.ts"

export type PolicyResult =
  | {
      readonly _tag: "Settled"
      /** Undefined if only the nonce shows the payment. */
      readonly transaction: string | undefined
      /** Source of the transaction's hash; the ledger has confirmed it in either case. */
      readonly source: "seller" | "ledger"
      /** Members of the seller's receipt that do not match the payment, by name; `receipt`: no readable receipt. */
      readonly misfits: ReadonlyArray<string>
    }
  /** The seller asks for payment again. */
  | { readonly _tag: "StillRequired"; readonly reason: string | undefined }
  | { readonly _tag: "Rejected"; readonly reason: string | undefined }
  | {
      readonly _tag: "Unknown"
      readonly why: string
      readonly transaction: string | undefined
      /** The ledger shows the payment, but the content has not come. */
      readonly isPaid?: true
    }

const confirmations = Schedule.spaced("400 millis")

const pendingReasons = new Set([
  "settlement_pending",
  "settle_ledger_transaction_status_unknown",
  "settle_ledger_temporarily_unavailable"
])

/** The payment is on the ledger but the seller sent no result: a seller without payment identifiers. */
const settledBefore = "settle_ledger_already_settled"

/** Names of the members in a seller's receipt that do not match the payment. */
export const misfits = (
  word: SettlementClaim | undefined,
  { authorization, invocation: { option }, moves }: Pick<OpenPayment, "authorization" | "invocation" | "moves">,
  transaction: string | undefined
): ReadonlyArray<string> => {
  if (word === undefined) return ["receipt"]
  const fits: Readonly<Record<string, boolean>> = {
    success: word.success !== false,
    transaction: word.transaction === undefined || word.transaction === transaction,
    network: word.network === undefined || word.network === option.network,
    payer: word.payer === undefined || word.payer === authorization.payer,
    amount: word.amount === undefined || word.amount === (moves ?? option).amount.toString()
  }
  return Object.keys(fits).filter((member) => !fits[member] || word.unreadable.includes(member))
}

const unknown = (why: string, transaction?: string): Extract<PolicyResult, { readonly _tag: "Unknown" }> => ({
  _tag: "Unknown",
  why,
  transaction
})

const notSettled = ({ reason: said, transaction }: SettlementClaim): PolicyResult => {
  const reason = said === undefined ? undefined : neutralReason(said)
  if (reason === settledBefore)
    return unknown("it was settled before, and the seller delivers nothing for it", transaction)
  return reason !== undefined && pendingReasons.has(reason)
    ? unknown("the settlement is in progress", transaction)
    : { _tag: "Rejected", reason }
}

/** The ledger's evidence for a payment signed earlier. */
type Fate =
  | { readonly _tag: "Paid"; readonly proof: PaymentProof }
  /** It can never be spent. */
  | { readonly _tag: "Dead" }
  /** It may still be spent, or the ledger is unavailable or cannot decide. */
  | { readonly _tag: "Open" }

/** One check; undefined if the ledger is unavailable. */
const findOnce =
  (rpc: LedgerRpc["Service"]) =>
  (named: string | undefined, { authorization, invocation: { option }, moves = option }: OpenPayment) =>
    Effect.orElseSucceed(findPayment(rpc, moves, authorization, named), () => undefined)

/** The outcome of a seller's refusal. The ledger may show the payment anyway. */
const refusedBy = (once: ReturnType<typeof findOnce>) => (word: SettlementClaim, open: OpenPayment) => {
  const said = notSettled(word)
  if (said._tag !== "Unknown") return Effect.succeed(said)
  return Effect.map(once(word.transaction, open), (proof): PolicyResult =>
    proof === undefined ? said : { ...said, transaction: proof.transaction, isPaid: true }
  )
}

export class PaymentPolicyCheck extends Context.Service<
  PaymentPolicyCheck,
  {
    readonly verify: (answer: PaidAnswer | ToolError, open: OpenPayment) => Effect.Effect<PolicyResult>
    /** Checks the ledger once. `named`: the transaction that the seller named, if any. */
    readonly fate: (open: OpenPayment, named: string | undefined) => Effect.Effect<Fate>
    /** Polls the ledger for the payment for a while. */
    readonly find: (open: OpenPayment, named: string | undefined) => Effect.Effect<PaymentProof | undefined>
  }
>()("tollkeeper/mcp-tools-pay/PaymentPolicyCheck") {
  static readonly layer = Layer.effect(
    PaymentPolicyCheck,
    Effect.gen(function* () {
      const rpc = yield* LedgerRpc
      const { confirmMillis } = yield* ToolsConfig

      const once = findOnce(rpc)

      // Polls, because our node may be a little behind the seller's.
      const find = Effect.fnUntraced(function* (named: string | undefined, open: OpenPayment) {
        const end = (yield* monotonicMillis) + confirmMillis
        return yield* Effect.repeat(once(named, open), {
          schedule: confirmations,
          while: (proof: PaymentProof | undefined) =>
            Effect.map(monotonicMillis, (now) => proof === undefined && now < end)
        })
      })

      const refused = refusedBy(once)

      const fate = Effect.fnUntraced(function* (open: OpenPayment, named: string | undefined) {
        const { authorization, invocation } = open
        const proof = yield* findPayment(rpc, open.moves ?? invocation.option, authorization, named)
        if (proof !== undefined) return { _tag: "Paid", proof } as const
        const known = yield* fateOf(rpc, authorization)
        if (known.fate === "dead") return { _tag: "Dead" } as const
        if (known.fate !== "undecidable") return { _tag: "Open" } as const
        return yield* lateFate(rpc, authorization, invocation.option.maxTimeoutSeconds)
      })

      return PaymentPolicyCheck.of({
        find: (open, named) => find(named, open),
        fate: (open, named) => Effect.orElseSucceed(fate(open, named), () => ({ _tag: "Open" }) as const),
        verify: Effect.fn("Tools.verify")(function* (answer, open) {
          if (answer instanceof ToolError || answer.isPart === true) {
            const why =
              "message" in answer
                ? answer.message
                : (answer.why ?? "the seller's answer broke off, or did not end in time")
            const proof = yield* once(undefined, open)
            return proof === undefined ? unknown(why) : { ...unknown(why, proof.transaction), isPaid: true }
          }
          const { asksAgain, isContent, settlement: word } = answer
          if (asksAgain !== undefined && word?.success !== true)
            return word?.success === false
              ? yield* refused(word, open)
              : { _tag: "StillRequired", reason: asksAgain.reason }
          if (!isContent && word?.success === false) return yield* refused(word, open)
          if (!isContent && word?.success !== true) return unknown("the seller answers with its own failure")
          const proof = yield* find(word?.transaction, open)
          // A failure on the way to the content does not end a payment, even with a receipt: the content may still
          // come.
          if (!isContent)
            return {
              ...unknown("the seller answers with its own failure", proof?.transaction ?? word?.transaction),
              ...(proof === undefined ? {} : { isPaid: true as const })
            }
          if (proof !== undefined) {
            const { isNamed, transaction } = proof
            const source = isNamed ? "seller" : "ledger"
            return { _tag: "Settled", transaction, source, misfits: misfits(word, open, transaction) }
          }
          if (word?.success === false) return notSettled(word)
          return word === undefined
            ? unknown("the seller's answer reports no settlement, and the ledger does not show one yet")
            : unknown("the ledger does not confirm the settlement", word.transaction)
        })
      })
    })
  )
}
