// The steps before a payment is sent, for every scheme: reserve its amount in the budget, for the ledger's day, then
// store the authorization, then store the signed payment.
import { Clock, Effect } from "effect"
import { Hex } from "effect/encoding"
import type { LatestLedger } from "../../../kernel/ledger/LedgerRpc.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { type Caller, toolError } from "../../mcp-tools/contract.ts"
import { BudgetStore } from "../budget/BudgetStore.ts"
import type { Reservation } from "../budget/Reservation.ts"
import { Config } from "../Config.ts"
import type { Transfer } from "../payer/authorization.ts"
import { PaymentBuilder } from "../payer/PaymentBuilder.ts"
import { PaymentSeal } from "../payer/PaymentSeal.ts"
import { type Challenge, encodePayment, type Fields, type PaymentOption } from "../seller/SellerWire.ts"
import { concurrent } from "./heldError.ts"
import type { Invocation, OpenPayment } from "./Invocation.ts"
import { encodeKeptPayment } from "./KeptWire.ts"
import { storeUnavailable } from "./sendPayment.ts"

/** Uses the ledger's day, so that a machine with a wrong clock neither opens a second budget nor closes the first. */
export const reserve = Effect.fnUntraced(function* (
  invocation: Invocation,
  caller: Caller,
  made: number,
  { closedAtSeconds }: LatestLedger,
  amount = invocation.option.amount
) {
  const { asset, network, payTo } = invocation.option
  const { ceilings } = yield* Config
  const now = yield* Clock.currentTimeMillis
  const id = `pay_${Hex.encode((yield* Crypto).randomBytes(16))}`
  const reservation: Reservation = {
    id,
    day: new Date(closedAtSeconds * 1_000).toISOString().slice(0, 10),
    agent: caller.principal,
    session: caller.session,
    invocation: invocation.key,
    network,
    asset,
    payTo,
    origin: invocation.about.origin,
    grade: invocation.about.grade,
    amount,
    state: "reserved",
    createdAtMillis: now,
    ledgerSeconds: closedAtSeconds,
    authorization: undefined,
    transaction: undefined
  }
  const reserved = yield* Effect.mapError(
    (yield* BudgetStore).reserve(reservation, ceilings, made),
    () => storeUnavailable
  )
  if (reserved === "kept") return id
  if (reserved === "changed") {
    return yield* concurrent
  }
  return yield* toolError(
    "BUDGET_EXCEEDED",
    "the remaining budget, or the number of payments allowed per minute, does not cover this call",
    {
      amount: amount.toString(),
      asset
    }
  )
})

/** Input of a payment: the invocation, the seller's terms, and the option to pay. */
export interface Purchase {
  /** How often the call had been paid for when this payment was approved. */
  readonly made: number
  /** Its payments that were signed and never spent. */
  readonly released: ReadonlyArray<string>
  readonly invocation: Invocation
  readonly challenge: Challenge
  readonly option: PaymentOption
}

/**
 * Steps 7 to 9: the authorization is stored before it is signed, and the signed payment before it is sent.
 */
export const sign = Effect.fnUntraced(function* (
  { challenge, invocation, option, released: replaces }: Purchase,
  identifier: string,
  ledger: LatestLedger,
  deposit?: { readonly moves: Transfer; readonly payload: (transaction: string) => Fields }
) {
  const store = yield* BudgetStore
  const { build } = yield* PaymentBuilder
  const { maxTimeoutSeconds } = option
  const built = yield* build(
    deposit === undefined ? option : { ...deposit.moves, maxTimeoutSeconds },
    ledger,
    (authorization) =>
      Effect.flatMap(
        Effect.mapError(store.move(identifier, { state: "signed", authorization }), () => storeUnavailable),
        (moved) =>
          moved
            ? Effect.void
            : Effect.fail(toolError("PAYMENT_REJECTED", "the reservation no longer exists; nothing was paid"))
      )
  )
  const { authorization, transaction } = built
  const payload = deposit?.payload(transaction) ?? { transaction }
  const payment = encodePayment({ challenge, option, payload, identifier })
  const moves = deposit?.moves
  const open: OpenPayment = { identifier, payment, authorization, invocation, replaces, moves }
  const sealed = (yield* PaymentSeal).seal(identifier, encodeKeptPayment(open))
  const isKept = yield* Effect.mapError(store.keep(identifier, { payment: sealed }), () => storeUnavailable)
  return isKept ? open : yield* toolError("PAYMENT_REJECTED", "the reservation no longer exists; nothing was paid")
})
