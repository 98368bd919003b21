// The result of a payment for the agent: the content with a receipt that shows the proof, or an error that describes
// the payment's state. Content is stored, sealed, with the reservation before it is delivered. The same call, repeated
// at any process, gets it and pays nothing.
import { Effect } from "effect"
import { toolError, spelled, type ToolError } from "../../mcp-tools/contract.ts"
import { BudgetStore } from "../budget/BudgetStore.ts"
import { PaymentSeal } from "../payer/PaymentSeal.ts"
import type { OpenPayment, Output, PaidAnswer } from "./Invocation.ts"
import { type PolicyResult, misfits } from "./PaymentPolicyCheck.ts"
import { decodeKeptContent, encodeKeptContent, type KeptContent } from "./KeptWire.ts"

/** Members of a receipt in addition to the terms. */
export interface Proof {
  readonly status: "settled" | "released"
  readonly transaction: string | undefined
  readonly source: "seller" | "ledger"
  readonly misfits: ReadonlyArray<string>
  /** Amount charged in atomic units, if it differs from the option's amount. */
  readonly amount?: bigint
}

/** The parts of a payment that a delivery needs. */
export type Delivered = Pick<OpenPayment, "identifier" | "invocation" | "replaces" | "moves">

const receiptOf = (
  { identifier, invocation: { option, ref, versionHash }, moves, replaces }: Delivered,
  network: string,
  { amount, misfits, source, status, transaction }: Proof
) => ({
  paymentIdentifier: identifier,
  ref,
  versionHash,
  network,
  scheme: option.scheme,
  asset: option.asset,
  payTo: option.payTo,
  authorizedAmount: option.amount.toString(),
  ...(moves === undefined ? {} : { deposited: moves.amount.toString() }),
  settledAmount: status === "settled" ? (amount ?? option.amount).toString() : "0",
  transaction: transaction ?? null,
  status,
  source,
  ...(misfits.length === 0 ? {} : { sellerReceiptFaults: misfits }),
  ...(replaces.length === 0 ? {} : { replaces })
})

export const withReceipt = (open: Delivered, content: Output, proven: Proof) =>
  Effect.map(spelled, (spell): Output => ({
    ...content,
    receipt: receiptOf(open, spell(open.invocation.option.network), proven)
  }))

const keptNote = (isKept: boolean) => (isKept ? " The content was received and is kept until then." : "")

/** The error for a signed payment without a result. */
export const errorOf = (
  open: OpenPayment,
  verified: Exclude<PolicyResult, { readonly _tag: "Settled" }>,
  isKept: boolean,
  /** The part of the content that came; included if the ledger shows the payment. */
  part?: Output
): Effect.Effect<ToolError, never, Effect.Services<typeof spelled>> =>
  Effect.map(spelled, (spell) => {
    const details = {
      paymentIdentifier: open.identifier,
      network: spell(open.invocation.option.network),
      authorizedUntilLedger: open.authorization.expirationLedger,
      ...(isKept ? { contentKept: true } : {})
    }
    switch (verified._tag) {
      case "StillRequired":
        return toolError(
          "PAYMENT_REQUIRED",
          "the seller asks for payment again; the budget stays reserved while the authorization is valid",
          { ...details, reason: verified.reason }
        )
      case "Rejected":
        return toolError(
          "PAYMENT_REJECTED",
          "the settlement was rejected; the budget stays reserved while the authorization is valid",
          { ...details, reason: verified.reason }
        )
      case "Unknown": {
        const { isPaid = false, transaction, why } = verified
        const what = !isPaid
          ? "signed, unconfirmed"
          : part === undefined
            ? "paid, no content"
            : "paid, part of the content"
        return toolError(
          "SETTLEMENT_UNKNOWN",
          `${what}: ${why}. The same call asks again and pays nothing more.${keptNote(isKept)}`,
          {
            ...details,
            ...(transaction === undefined ? {} : { transaction }),
            ...(isPaid ? { paid: true } : {}),
            ...(isPaid && part !== undefined ? { partialContent: part } : {})
          }
        )
      }
    }
  })

/** True if it was stored. */
export const keepContent = Effect.fnUntraced(function* (
  { identifier }: Pick<OpenPayment, "identifier">,
  kept: KeptContent
) {
  const content = (yield* PaymentSeal).seal(identifier, encodeKeptContent(kept))
  return yield* Effect.orElseSucceed((yield* BudgetStore).keep(identifier, { content }), () => false)
})

/** The parts of an answer to deliver once the payment is proven. */
export const keptOf = (open: OpenPayment, { content, settlement }: PaidAnswer): KeptContent => ({
  content,
  misfits: misfits(settlement, open, settlement?.transaction),
  named: settlement?.transaction ?? null,
  ...(settlement?.receipt === undefined ? {} : { receipt: settlement.receipt })
})

export const contentOf = Effect.fnUntraced(function* (
  { identifier }: Pick<OpenPayment, "identifier">,
  sealed: string | undefined
) {
  if (sealed === undefined) return undefined
  const text = (yield* PaymentSeal).open(identifier, sealed)
  return text === undefined ? undefined : decodeKeptContent(text)
})

/** The proof for stored content after the ledger has shown its payment. */
export const provenOf = ({ misfits, named }: KeptContent, transaction: string | undefined): Proof => ({
  status: "settled",
  transaction,
  source: named !== null && named === transaction ? "seller" : "ledger",
  misfits: [...misfits, ...(named !== null && named !== transaction ? ["transaction"] : [])]
})
