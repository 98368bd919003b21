// A call paid from a payment channel. Where the deposit does not cover it a deposit is made, which is a payment like
// any other: reserved in the budget whole, stored before it is signed and sent, proven by the ledger, sent again by the
// same call. Else one voucher pays: it moves nothing now and counts nothing more, since its deposit was counted. No
// ledger decides on a voucher: a refused one is let go, since the next voucher of the channel is for the same atoms;
// one without an answer holds its call, which is never paid twice.
import { Effect, Semaphore } from "effect"
import { type Caller, toolError, ToolError } from "../../mcp-tools/contract.ts"
import { BudgetStore } from "../budget/BudgetStore.ts"
import type { PaidAnswer, Seller } from "../call/Invocation.ts"
import { deliver, paidAnswer, sendPayment, storeUnavailable, type Waiter } from "../call/sendPayment.ts"
import { type Purchase, reserve, sign } from "../call/signPurchase.ts"
import { Config } from "../Config.ts"
import { PaymentBuilder } from "../payer/PaymentBuilder.ts"
import { encodePayment } from "../seller/SellerWire.ts"
import { type AgentChannel, AgentChannels, type ChannelBalance, doubt } from "./AgentChannels.ts"
import { depositFor, readChannelTerms, readCorrection } from "./channelTerms.ts"

/** One call of an agent at a seller. */
interface Order {
  readonly purchase: Purchase
  readonly caller: Caller
  readonly seller: Seller
  readonly waiter: Waiter
  readonly channel: AgentChannel
}

const notEnabled = toolError("PAYMENT_REJECTED", "the operator allows no payment by batch-settlement")

/** What was withdrawn is missing: charged and not claimed before. */
const emptied = toolError("PAYMENT_REJECTED", "the channel lacks more than the deposit that the policy decided on")

const payByDeposit = Effect.fnUntraced(function* (order: Order, known: ChannelBalance, max: bigint) {
  const { caller, channel, purchase, seller, waiter } = order
  const { batch } = yield* Config
  if (batch === undefined) return yield* notEnabled
  const { option } = purchase
  const store = yield* BudgetStore
  const ledger = yield* (yield* PaymentBuilder).latestLedger
  const amount = depositFor(option, channel.terms, batch)
  if (max - known.balance > amount) return yield* emptied
  const identifier = yield* reserve(purchase.invocation, caller, purchase.made, ledger, amount)
  const moves = { asset: option.asset, payTo: channel.terms.contract, amount, channel: channel.config }
  const payload = (transaction: string) => ({
    type: "deposit",
    channelConfig: channel.config,
    voucher: channel.voucher(max),
    deposit: { amount: amount.toString(), authorization: { transaction } }
  })
  const open = yield* Effect.onError(sign(purchase, identifier, ledger, { moves, payload }), () =>
    Effect.ignore(store.move(identifier, { state: "released" }))
  )
  // A process that dies from here on leaves the terms, by which the payer's account can withdraw.
  yield* Effect.logInfo("a deposit into a payment channel is signed", {
    channel: channel.channelId,
    amount: amount.toString(),
    terms: JSON.stringify(channel.config)
  })
  // Until the ledger has shown the deposit, it is asked again.
  doubt(channel, known.charged)
  const output = yield* sendPayment(open, seller, waiter)
  channel.known = { charged: max, balance: known.balance + amount }
  return output
})

/** What a voucher's answer comes to; `again`: the seller has proven another total, and nothing was paid. */
const readAnswer = (answer: PaidAnswer | ToolError, channel: AgentChannel) => {
  if (answer instanceof ToolError) return { _tag: "Unknown", why: answer.message } as const
  if (answer.asksAgain !== undefined) {
    const correction = readCorrection(answer.asksAgain.challenge, channel.channelId)
    return correction !== undefined && channel.isOurs(correction)
      ? ({ _tag: "Corrected", correction } as const)
      : ({ _tag: "Refused", reason: answer.settlement?.reason ?? answer.asksAgain.reason } as const)
  }
  if (answer.isContent && answer.isPart === true)
    return { _tag: "Unknown", why: "its answer was cut off", part: answer.content } as const
  return answer.isContent && answer.settlement?.success !== false
    ? ({ _tag: "Paid", answer } as const)
    : ({ _tag: "Unknown", why: "the seller answers with a failure of its own" } as const)
}

const payByVoucher = Effect.fnUntraced(function* (order: Order, known: ChannelBalance, max: bigint) {
  const { caller, channel, purchase, seller, waiter } = order
  const { challenge, invocation, option, released: replaces } = purchase
  const store = yield* BudgetStore
  const ledger = yield* (yield* PaymentBuilder).latestLedger
  const identifier = yield* reserve(invocation, caller, purchase.made, ledger, 0n)
  const moved = (state: "signed" | "unknown" | "released") =>
    Effect.mapError(store.move(identifier, { state }), () => storeUnavailable)
  if (!(yield* moved("signed")))
    return yield* toolError("PAYMENT_REJECTED", "the reservation no longer exists; nothing was paid")
  const payload = { type: "voucher", channelConfig: channel.config, voucher: channel.voucher(max) }
  const answer = yield* paidAnswer(seller, encodePayment({ challenge, option, payload, identifier }))
  const read = readAnswer(answer, channel)
  switch (read._tag) {
    case "Paid": {
      const { content, settlement } = read.answer
      const said = settlement?.chargedTotal
      const charged = said !== undefined && said >= known.charged && said < max ? said : max
      channel.known = { charged, balance: known.balance }
      const misfits = settlement?.success === true ? [] : ["receipt"]
      const amount = charged - known.charged
      const proven = { status: "settled", transaction: undefined, source: "seller", misfits, amount } as const
      return yield* deliver({ identifier, invocation, replaces }, { content, misfits, named: null }, proven, waiter)
    }
    case "Corrected": {
      doubt(channel, read.correction.charged)
      yield* moved("released")
      return undefined
    }
    case "Refused": {
      doubt(channel, known.charged)
      yield* moved("released")
      return yield* toolError("PAYMENT_REJECTED", "the seller refused the voucher", {
        paymentIdentifier: identifier,
        reason: read.reason
      })
    }
    case "Unknown": {
      yield* moved("unknown")
      return yield* toolError("SETTLEMENT_UNKNOWN", `a voucher was sent: ${read.why}. This call is not paid again`, {
        paymentIdentifier: identifier,
        ...("part" in read ? { partialContent: read.part } : {})
      })
    }
  }
})

/** One turn; nothing where the seller has corrected the total. */
const turn = Effect.fnUntraced(function* (order: Order) {
  const { channel, purchase, seller } = order
  const { amount } = purchase.option
  const channels = yield* AgentChannels
  const before = yield* channels.balance(channel)
  // A deposit whose answer was lost is in the channel already.
  if (before.charged + amount > before.balance) doubt(channel, before.charged)
  const known = yield* channels.balance(channel)
  channel.last = { seller, challenge: purchase.challenge, option: purchase.option }
  const max = known.charged + amount
  return max > known.balance ? yield* payByDeposit(order, known, max) : yield* payByVoucher(order, known, max)
})

/** Pays one call from the agent's channel with its seller; a total that the seller has proven is taken once. */
export const payByChannel = Effect.fnUntraced(function* (
  purchase: Purchase,
  caller: Caller,
  seller: Seller,
  waiter: Waiter
) {
  const { batch } = yield* Config
  const terms = batch === undefined ? "" : readChannelTerms(purchase.option, batch)
  if (typeof terms === "string") return yield* notEnabled
  const channel = yield* (yield* AgentChannels).of(caller.principal, purchase.option, terms)
  const pay = Effect.gen(function* () {
    const first = yield* turn({ purchase, caller, seller, waiter, channel })
    if (first !== undefined) return first
    const again = { ...purchase, made: purchase.made + 1 }
    const second = yield* turn({ purchase: again, caller, seller, waiter, channel })
    return second ?? (yield* toolError("PAYMENT_REJECTED", "the seller corrected the channel's total twice"))
  })
  return yield* Semaphore.withPermit(channel.lock)(pay)
})
