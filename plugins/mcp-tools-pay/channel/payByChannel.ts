// Pays a call from a payment channel. If the channel's deposit does not cover the call, we make a deposit. A deposit is
// a payment like any other: reserved in the budget as a whole, stored before it is signed and sent, proven by the
// ledger, sent again by the same call. Otherwise one voucher pays. It moves nothing now and adds nothing to the budget,
// since its deposit was counted. No ledger decides on a voucher. A refused voucher is released, since the channel's
// next voucher covers the same amount. A voucher without an answer holds its call, so that the call is never paid
// twice; the same applies to a voucher that the seller shows as an earlier total. The signed amount is in the budget's
// store before a voucher is sent.
import { Clock, Effect } from "effect"
import { max as larger } from "effect/BigInt"
import { type Caller, toolError, ToolError } from "../../mcp-tools/contract.ts"
import { BudgetStore, type SignedTotals } from "../budget/BudgetStore.ts"
import type { Reservation } from "../budget/Reservation.ts"
import { contentOf, keepContent, type Proof, withReceipt } from "../call/delivery.ts"
import { heldError } from "../call/heldError.ts"
import type { OpenVoucher, Output, PaidAnswer, Seller } from "../call/Invocation.ts"
import { decodeKeptPayment, decodeKeptVoucher, encodeKeptPayment, type KeptContent } from "../call/KeptWire.ts"
import { answerAgain, deliver, paidAnswer, sendPayment, storeUnavailable } from "../call/sendPayment.ts"
import { type Purchase, reserve, sign } from "../call/signPurchase.ts"
import { Config } from "../Config.ts"
import { PaymentBuilder } from "../payer/PaymentBuilder.ts"
import { PaymentSeal } from "../payer/PaymentSeal.ts"
import { encodePayment, type Fields, isFields } from "../seller/SellerWire.ts"
import { type AgentChannel, AgentChannels, type ChannelBalance, doubt } from "./AgentChannels.ts"
import { inChannelTurn, keepChannel } from "./storedChannels.ts"
import {
  amountIn,
  answeredTotal,
  type ChannelTerms,
  depositFor,
  isEarlier,
  readChannelTerms,
  readCorrection
} from "./channelTerms.ts"

/** One call of an agent at a seller. */
interface Order {
  readonly purchase: Purchase
  readonly caller: Caller
  readonly seller: Seller
  readonly channel: AgentChannel
  /** The terms that the policy decided on. */
  readonly terms: ChannelTerms
}

const notEnabled = toolError("PAYMENT_REJECTED", "the operator does not allow batch-settlement payments")

/** The payer withdrew money, so an amount that was charged and not yet claimed is missing. */
const emptied = toolError("PAYMENT_REJECTED", "the channel needs a larger deposit than the policy decided")

const disputed = ({ channelId, disputed: reason }: AgentChannel) =>
  toolError(
    "PAYMENT_REJECTED",
    "an answer of this seller contradicts the voucher that it received, so its channel pays nothing more; " +
      "an operator ends the channel with tollkeeper channels --agent",
    { channel: channelId, reason }
  )

/** Stores that a voucher for `max` is about to be sent. Returns the totals, including this one. */
const noteSent = Effect.fnUntraced(function* ({ channelId }: AgentChannel, max: bigint) {
  const store = yield* BudgetStore
  const { counted, sent } = yield* Effect.mapError(store.totals(channelId), () => storeUnavailable)
  const totals = { counted, sent: larger(sent, max) }
  yield* Effect.mapError(store.keepTotals(channelId, totals), () => storeUnavailable)
  return totals
})

/** Counts a voucher if its call was paid or has an unknown outcome. */
const noteCounted = Effect.fnUntraced(function* (channelId: string, max: bigint) {
  const store = yield* BudgetStore
  yield* store.totals(channelId).pipe(
    Effect.flatMap(({ counted, sent }) =>
      store.keepTotals(channelId, { counted: larger(counted, max), sent: larger(sent, max) })
    ),
    Effect.ignore
  )
})

/** The voucher of a stored payment; a deposit contains one too. */
const voucherIn = ({ payload }: Fields) => {
  const { channelConfig, voucher } = isFields(payload) ? payload : {}
  if (!isFields(voucher) || !isFields(channelConfig)) return undefined
  const [channelId, max, salt] = [voucher["channelId"], amountIn(voucher["maxClaimableAmount"]), channelConfig["salt"]]
  return typeof channelId === "string" && max !== undefined && typeof salt === "string"
    ? { channelId, max, salt }
    : undefined
}

/** Counts a delivered payment's voucher, if it has one. */
export const noteDelivered = (payment: Fields) => {
  const voucher = voucherIn(payment)
  return voucher === undefined ? Effect.void : noteCounted(voucher.channelId, voucher.max)
}

/** Stops the channel if an answer contradicts the voucher. Returns the charged total, at most the voucher. */
const noteTotal = Effect.fnUntraced(function* (
  channel: AgentChannel,
  { agent, max, price }: { readonly agent: string; readonly max: bigint; readonly price: bigint },
  extra: Fields | undefined
) {
  const total = answeredTotal({ channelId: channel.channelId, max, price }, extra)
  if (typeof total !== "string") return total
  channel.disputed = total
  const request = channel.last?.request
  if (channel.last !== undefined && request !== undefined)
    yield* Effect.ignore(keepChannel(channel, agent, { ...channel.last, request }))
  yield* Effect.logWarning("a seller's answer contradicts its voucher; its channel pays nothing more", {
    channel: channel.channelId,
    reason: total,
    terms: JSON.stringify(channel.config)
  })
  return max
})

const payByDeposit = Effect.fnUntraced(function* (order: Order, balance: ChannelBalance, max: bigint) {
  const { caller, channel, purchase, seller, terms } = order
  const { batch } = yield* Config
  if (batch === undefined) return yield* notEnabled
  const { option } = purchase
  const store = yield* BudgetStore
  const ledger = yield* (yield* PaymentBuilder).latestLedger
  const amount = depositFor(option, terms, batch)
  if (max - balance.balance > amount) return yield* emptied
  yield* noteSent(channel, max)
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
  // If the process dies from here on, the log has the terms that the payer's account needs to withdraw.
  yield* Effect.logInfo("a deposit into a payment channel is signed", {
    channel: channel.channelId,
    amount: amount.toString(),
    terms: JSON.stringify(channel.config)
  })
  // Read the ledger again until it shows the deposit.
  doubt(channel, balance.charged)
  let extra: Fields | undefined
  const noted = ({ settlement }: PaidAnswer) => void (extra = settlement?.extra)
  const noting: Seller = {
    ...seller,
    send: (payment) => Effect.tap(seller.send(payment), (one) => Effect.sync(() => noted(one)))
  }
  const output = yield* sendPayment(open, noting)
  yield* noteCounted(channel.channelId, max)
  const charged = yield* noteTotal(channel, { agent: caller.principal, max, price: option.amount }, extra)
  channel.known = { charged, balance: balance.balance + amount }
  return output
})

/** Interprets the answer to a voucher. `Corrected`: the seller has proven another total, and nothing was paid. */
const readAnswer = (answer: PaidAnswer | ToolError, channel: AgentChannel, totals: SignedTotals) => {
  if (answer instanceof ToolError) return { _tag: "Unknown", why: answer.message } as const
  if (answer.asksAgain !== undefined) {
    const correction = readCorrection(answer.asksAgain.challenge, channel.channelId)
    if (correction === undefined || !channel.isOurs(correction))
      return { _tag: "Refused", reason: answer.settlement?.reason ?? answer.asksAgain.reason } as const
    return isEarlier(correction, totals)
      ? ({ _tag: "Corrected", correction } as const)
      : ({ _tag: "Unknown", why: "the seller shows it as an earlier total" } as const)
  }
  if (answer.isContent && answer.isPart === true)
    return { _tag: "Unknown", why: "its answer was cut off", part: answer.content } as const
  // A tool's error without a settlement is no purchased result.
  if (answer.content["isError"] === true && answer.settlement?.success !== true)
    return { _tag: "Unknown", why: "the seller's tool failed" } as const
  return answer.isContent && answer.settlement?.success !== false
    ? ({ _tag: "Paid", answer } as const)
    : ({ _tag: "Unknown", why: "the seller answers with its own failure" } as const)
}

/** The receipt of a voucher: only the seller states the charged amount, within the signed one. */
const provenBy = ({ amount, misfits }: KeptContent): Proof => ({
  status: "settled",
  transaction: undefined,
  source: "seller",
  misfits,
  ...(amount === undefined ? {} : { amount })
})

/** Delivers the content paid with a voucher for `max`. */
const deliverPaid = Effect.fnUntraced(function* (
  open: OpenVoucher,
  channel: AgentChannel,
  { content, settlement }: PaidAnswer,
  { agent, max }: { readonly agent: string; readonly max: bigint }
) {
  const price = open.invocation.option.amount
  const base = max - price
  const charged = yield* noteTotal(channel, { agent, max, price }, settlement?.extra)
  if (channel.known !== undefined) channel.known = { ...channel.known, charged: larger(channel.known.charged, charged) }
  const misfits = settlement?.success === true ? [] : ["receipt"]
  const kept = { content, misfits, named: null, amount: charged - base }
  return yield* deliver(open, kept, provenBy(kept))
})

/** The outcome of a voucher that was sent without proof that it paid. */
const unknown = Effect.fnUntraced(function* (identifier: string, { part, why }: { why: string; part?: Output }) {
  yield* Effect.ignore((yield* BudgetStore).move(identifier, { state: "unknown" }))
  return yield* toolError(
    "SETTLEMENT_UNKNOWN",
    `a voucher was sent: ${why}. The same call sends the same voucher again`,
    {
      paymentIdentifier: identifier,
      ...(part === undefined ? {} : { partialContent: part })
    }
  )
})

const payByVoucher = Effect.fnUntraced(function* (order: Order, balance: ChannelBalance, max: bigint) {
  const { caller, channel, purchase, seller } = order
  const { challenge, invocation, option, released: replaces } = purchase
  const store = yield* BudgetStore
  const ledger = yield* (yield* PaymentBuilder).latestLedger
  const totals = yield* noteSent(channel, max)
  const identifier = yield* reserve(invocation, caller, purchase.made, ledger, 0n)
  const moved = (state: "signed" | "released") =>
    Effect.mapError(store.move(identifier, { state }), () => storeUnavailable)
  const payload = { type: "voucher", channelConfig: channel.config, voucher: channel.voucher(max) }
  const open = { identifier, invocation, replaces, payment: encodePayment({ challenge, option, payload, identifier }) }
  // Like any payment, the voucher is stored before it is sent: the same call sends the same voucher again, from any
  // process.
  const sealed = (yield* PaymentSeal).seal(identifier, encodeKeptPayment(open))
  const isKept = Effect.mapError(store.keep(identifier, { payment: sealed }), () => storeUnavailable)
  if (!(yield* moved("signed")) || !(yield* isKept))
    return yield* toolError("PAYMENT_REJECTED", "the reservation no longer exists; nothing was paid")
  const read = readAnswer(yield* paidAnswer(seller, open.payment), channel, totals)
  if (read._tag === "Paid" || read._tag === "Unknown") yield* noteCounted(channel.channelId, max)
  switch (read._tag) {
    case "Paid":
      return yield* deliverPaid(open, channel, read.answer, { agent: caller.principal, max })
    case "Corrected": {
      yield* noteCounted(channel.channelId, read.correction.signedMax)
      yield* moved("released")
      doubt(channel, larger(read.correction.charged, balance.charged))
      return undefined
    }
    case "Refused": {
      doubt(channel, balance.charged)
      yield* moved("released")
      return yield* toolError("PAYMENT_REJECTED", "the seller refused the voucher", {
        paymentIdentifier: identifier,
        reason: read.reason
      })
    }
    case "Unknown":
      return yield* unknown(identifier, read)
  }
})

/**
 * The outcome of a voucher sent earlier, here or by an earlier process: its stored content, or the answer to the same
 * voucher sent again. It covers the same amount, so it pays only once, and it is never released.
 */
export const resumeVoucher = Effect.fnUntraced(function* (
  open: OpenVoucher,
  reservation: Reservation,
  connect: Effect.Effect<Seller, ToolError>
) {
  const { content: sealed } = yield* Effect.mapError((yield* BudgetStore).kept(open.identifier), () => storeUnavailable)
  const content = yield* contentOf(open, sealed)
  if (content !== undefined) return yield* withReceipt(open, content.content, provenBy(content))
  const { batch } = yield* Config
  const { option } = open.invocation
  const [terms, voucher] = [batch === undefined ? "" : readChannelTerms(option, batch), voucherIn(open.payment)]
  if (typeof terms === "string" || voucher === undefined) return yield* heldError(reservation)
  const { max, salt } = voucher
  const channel = yield* (yield* AgentChannels).of(reservation.agent, option, terms, salt)
  const again = Effect.gen(function* () {
    const seller = yield* Effect.catch(connect, ({ message: why }) => unknown(open.identifier, { why }))
    const answer = yield* Effect.ensuring(paidAnswer(seller, open.payment), seller.close)
    const read = readAnswer(answerAgain(answer), channel, { counted: max, sent: max })
    if (read._tag === "Paid") return yield* deliverPaid(open, channel, read.answer, { agent: reservation.agent, max })
    return yield* unknown(open.identifier, read._tag === "Unknown" ? read : { why: "the seller refuses it now" })
  })
  return yield* inChannelTurn(channel, again)
})

const unresolved = (identifier: string) =>
  toolError(
    "UPSTREAM_TIMEOUT",
    "an earlier call on this payment channel has no answer yet, and its seller cannot be reached now; nothing " +
      "was signed for this one. Repeat it later",
    { paymentIdentifier: identifier }
  )

/** A failure of the resource itself is its answer only for a call this old: a seller's facilitator may be away. */
const failingMillis = 180_000

/** The sent payments of the channel's open calls, with their age. */
const openCalls = Effect.fnUntraced(
  function* ({ channelId }: AgentChannel, agent: string) {
    const store = yield* BudgetStore
    const seal = yield* PaymentSeal
    const found: Array<{ readonly open: OpenVoucher; readonly ageMillis: number }> = []
    const now = yield* Clock.currentTimeMillis
    for (const one of yield* store.open) {
      if (one.agent !== agent || one.state === "reserved") continue
      const { content, payment } = yield* store.kept(one.id)
      const text = payment === undefined || content !== undefined ? undefined : seal.open(one.id, payment)
      const open = text === undefined ? undefined : (decodeKeptVoucher(text, one) ?? decodeKeptPayment(text, one))
      if (open !== undefined && voucherIn(open.payment)?.channelId === channelId)
        found.push({ open, ageMillis: now - one.createdAtMillis })
    }
    return found
  },
  Effect.mapError(() => storeUnavailable)
)

/**
 * Asks for the answers of the channel's open calls before a new voucher is signed. Afterwards the seller would not
 * accept the earlier voucher any more, and its price would be lost. The content that comes is stored for its own call.
 */
const resolveOpen = Effect.fnUntraced(function* ({ caller, channel, purchase, seller }: Order) {
  const store = yield* BudgetStore
  for (const { ageMillis, open } of yield* openCalls(channel, caller.principal)) {
    const { request } = open.invocation
    // Payments of earlier versions were stored without their request, so we cannot ask again.
    if (open.invocation.key === purchase.invocation.key || request === undefined) continue
    const asked = seller.ofRequest?.(request)
    const max = voucherIn(open.payment)?.max ?? 0n
    const given = asked === undefined ? undefined : yield* paidAnswer(asked, open.payment)
    const answer = given === undefined ? undefined : answerAgain(given)
    const read = answer === undefined ? undefined : readAnswer(answer, channel, { counted: max, sent: max })
    if (read?._tag === "Paid") {
      const { content } = read.answer
      const amount = open.invocation.option.amount
      yield* keepContent(open, { content, misfits: [], named: null, amount })
      if (!("authorization" in open)) yield* Effect.ignore(store.move(open.identifier, { state: "spent" }))
      // This amount belongs to that call only.
      channel.charged = larger(channel.charged, max)
      if (channel.known !== undefined) channel.known = { ...channel.known, charged: larger(channel.known.charged, max) }
      continue
    }
    // A refusal is a decision; a missing answer is not.
    const isAnswer = given !== undefined && !(given instanceof ToolError) && given.isPart !== true
    const isFailing = isAnswer && given.isContent && given.isFailure === true && ageMillis >= failingMillis
    if (!isFailing && !(isAnswer && given.asksAgain !== undefined)) return yield* unresolved(open.identifier)
  }
})

/** One attempt. Undefined if the seller corrected the total. */
const turn = Effect.fnUntraced(function* (order: Order) {
  const { channel, purchase, seller } = order
  const { amount } = purchase.option
  const channels = yield* AgentChannels
  if (channel.disputed !== undefined) return yield* disputed(channel)
  yield* resolveOpen(order)
  const before = yield* channels.balance(channel)
  // A deposit with a lost answer may already be in the channel.
  if (before.charged + amount > before.balance) doubt(channel, before.charged)
  const balance = yield* channels.balance(channel)
  const { request } = purchase.invocation
  // A tool's session ends with its call, so a refund goes to the stored request.
  const again = request === undefined ? seller : (seller.ofRequest?.(request) ?? seller)
  channel.last = { seller: again, challenge: purchase.challenge, option: purchase.option, request }
  if (request !== undefined && !channel.isKept) {
    const last = { ...channel.last, request }
    yield* Effect.mapError(keepChannel(channel, order.caller.principal, last), () => storeUnavailable)
    channel.isKept = true
  }
  const max = balance.charged + amount
  return max > balance.balance ? yield* payByDeposit(order, balance, max) : yield* payByVoucher(order, balance, max)
})

/** Pays one call from the agent's channel with its seller. Accepts one proven correction of the total. */
export const payByChannel = Effect.fnUntraced(function* (purchase: Purchase, caller: Caller, seller: Seller) {
  const { batch } = yield* Config
  const terms = batch === undefined ? "" : readChannelTerms(purchase.option, batch)
  if (typeof terms === "string") return yield* notEnabled
  const channels = yield* AgentChannels
  const salt = channels.saltFor(caller.principal, purchase.invocation.about.origin)
  const channel = yield* channels.of(caller.principal, purchase.option, terms, salt)
  const pay = Effect.gen(function* () {
    const order = { purchase, caller, seller, channel, terms }
    const first = yield* turn(order)
    if (first !== undefined) return first
    const second = yield* turn({ ...order, purchase: { ...purchase, made: purchase.made + 1 } })
    return second ?? (yield* toolError("PAYMENT_REJECTED", "the seller corrected the channel's total twice"))
  })
  return yield* inChannelTurn(channel, pay)
})
