// Asks sellers to refund the rest of agents' channels, after an idle time and when the tool server ends. The seller
// refunds, the ledger pays the payer, and we verify it on the ledger. If a seller does not refund, the money stays in
// the channel, for the next call or for the payer's own withdrawal, and we log it.
import { Duration, Effect, Schedule } from "effect"
import { Hex } from "effect/encoding"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { ToolError } from "../../mcp-tools/contract.ts"
import { paidAnswer } from "../call/sendPayment.ts"
import { BudgetStore } from "../budget/BudgetStore.ts"
import { Config } from "../Config.ts"
import { encodePayment } from "../seller/SellerWire.ts"
import { type AgentChannel, AgentChannels, type ChannelBalance, doubt } from "./AgentChannels.ts"
import { isEarlier, readCorrection } from "./channelTerms.ts"
import { inChannelTurn, openStored } from "./storedChannels.ts"

/** Consecutive refusals of one seller after which we stop asking. */
const refundsFailedMax = 3
/** How long shutdown waits for refunds. */
const endTimeout = "10 seconds"
const everyMaxMillis = 30_000

/** How often we read the ledger after a seller reports a refund, and the interval. */
const readsMax = 5
const betweenReads = Schedule.spaced("500 millis")

/** True if the ledger shows no more than the charged amount in the channel. */
const isRefunded = Effect.fnUntraced(function* (channel: AgentChannel, charged: bigint) {
  const { balance: read } = yield* AgentChannels
  const isLeft = ({ balance }: ChannelBalance) => balance > charged
  const again = Effect.suspend(() => {
    doubt(channel, charged)
    return read(channel)
  })
  const reads = { schedule: betweenReads, times: readsMax - 1, while: isLeft }
  return !isLeft(yield* Effect.repeat(again, reads))
})

/** Asks once for a refund. `corrected`: the seller has proven another total, so we may ask again with that one. */
const askOnce = Effect.fnUntraced(function* (channel: AgentChannel) {
  const { last } = channel
  const channels = yield* AgentChannels
  const { balance, charged } = yield* channels.balance(channel)
  if (balance <= charged) return "nothing left"
  if (last === undefined) return "refused"
  const { challenge, option, seller } = last
  const payload = { type: "refund", channelConfig: channel.config, voucher: channel.voucher(charged) }
  const identifier = `pay_${Hex.encode((yield* Crypto).randomBytes(16))}`
  const answer = yield* paidAnswer(seller, encodePayment({ challenge, option, payload, identifier }))
  if (answer instanceof ToolError) return "refused"
  // We do not drop a channel that still has money because its seller claims a refund.
  if (answer.settlement?.success === true) return (yield* isRefunded(channel, charged)) ? "refunded" : "refused"
  const correction = readCorrection(answer.asksAgain?.challenge, channel.channelId)
  if (correction === undefined || !channel.isOurs(correction)) return "refused"
  // A refund adds nothing to the signed amount, but its total would be the base of the next call.
  const totals = yield* Effect.option((yield* BudgetStore).totals(channel.channelId))
  if (totals._tag === "None" || !isEarlier(correction, totals.value)) return "refused"
  doubt(channel, correction.charged)
  return "corrected"
})

/** Asks for a refund, and again by a total that the seller has proven. A channel without money is forgotten. */
export const askRefund = Effect.fnUntraced(function* (channel: AgentChannel) {
  const channels = yield* AgentChannels
  const first = yield* askOnce(channel)
  const outcome = first === "corrected" ? yield* askOnce(channel) : first
  if (outcome === "refunded" || outcome === "nothing left") {
    channels.forget(channel)
    yield* Effect.ignore((yield* BudgetStore).forgetChannel(channel.channelId))
  }
  return outcome
})

const ask = Effect.fnUntraced(function* (channel: AgentChannel) {
  const outcome = yield* askRefund(channel)
  if (outcome === "refunded" || outcome === "nothing left") return
  const channels = yield* AgentChannels
  channel.refundsFailed += 1
  if (channel.refundsFailed < refundsFailedMax) return
  channels.forget(channel)
  // The log contains the terms that the payer's account needs to withdraw the rest.
  yield* Effect.logWarning("a seller does not refund a channel", {
    channel: channel.channelId,
    terms: JSON.stringify(channel.config)
  })
})

const refund = (channel: AgentChannel) => Effect.ignore(inChannelTurn(channel, ask(channel)))

/** Starts the refund worker, if payments from channels are enabled. */
export const startRefunds = Effect.gen(function* () {
  const { batch } = yield* Config
  if (batch === undefined) return
  const channels = yield* AgentChannels
  const services = yield* Effect.context<AgentChannels | BudgetStore | Crypto>()
  // Channels left by an earlier process.
  yield* Effect.ignore(openStored)
  yield* Effect.addFinalizer(() =>
    Effect.forEach(channels.all(), refund, { concurrency: "unbounded", discard: true }).pipe(
      Effect.timeout(endTimeout),
      Effect.ignore,
      Effect.provideContext(services)
    )
  )
  yield* reconciler({
    id: "agent-channel-refunds",
    every: Duration.millis(Math.min(batch.refundIdleMillis, everyMaxMillis)),
    turn: Effect.gen(function* () {
      const now = yield* monotonicMillis
      const idle = channels.all().filter(({ usedMillis }) => now - usedMillis >= batch.refundIdleMillis)
      yield* Effect.forEach(idle, refund, { discard: true })
    }).pipe(Effect.provideContext(services))
  })
})
