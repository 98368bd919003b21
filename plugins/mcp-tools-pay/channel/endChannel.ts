// Ends one stored channel for an operator's command: asks its seller for a refund, or withdraws without the seller. A
// withdrawal has two steps with the channel's delay between them; the command makes the step that is due. The
// facilitator submits and pays for both. The remaining amount is always read from the ledger.
import { Effect, Layer, Option, Redacted } from "effect"
import { Limits } from "../../../kernel/config/Limits.ts"
import { Network } from "../../../kernel/config/Network.ts"
import { Settings } from "../../../kernel/config/Settings.ts"
import { WireVocabulary } from "../../../kernel/config/WireVocabulary.ts"
import { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import * as MakeLedgerRpc from "../../../kernel/ledger/makeLedgerRpc.ts"
import { fetchError, spelled, toolError, ToolsConfig, Upstreams } from "../../mcp-tools/contract.ts"
import * as Store from "../budget/openStore.ts"
import { BudgetStore, type StoredChannel } from "../budget/BudgetStore.ts"
import { StoreDatabase } from "../budget/StoreDatabase.ts"
import { Config } from "../Config.ts"
import * as OpenPayer from "../payer/openPayer.ts"
import { Payer } from "../payer/Payer.ts"
import { PaymentBuilder } from "../payer/PaymentBuilder.ts"
import { PaymentSeal } from "../payer/PaymentSeal.ts"
import { isFields } from "../seller/SellerWire.ts"
import { AgentChannels, readState } from "./AgentChannels.ts"
import { batchScheme } from "./channelTerms.ts"
import { askRefund } from "./refundChannels.ts"
import { inChannelTurn, openChannel } from "./storedChannels.ts"

/** Seconds that a step's authorization is valid. */
const timeoutSeconds = 60

export interface Ended {
  readonly channelId: string
  readonly outcome: "refunded" | "nothing left" | "withdrawal started" | "withdrawal not due" | "withdrawn"
  /** Atomic units that are the payer's, or will be. */
  readonly amount: string
  /** From when the withdrawal may end. */
  readonly endsAt?: string
}

const refused = (message: string, details?: unknown) => toolError("PAYMENT_REJECTED", message, details)

const find = Effect.fnUntraced(function* (channelId: string) {
  const stored = (yield* (yield* BudgetStore).channels).find((one) => one.channelId === channelId)
  if (stored === undefined)
    return yield* refused("no channel of this id is stored: see tollkeeper channels --agent list")
  if ((yield* (yield* Payer).address) !== stored.config.payer)
    return yield* refused(`the channel's payer is ${stored.config.payer}, which is not the account that pays here`)
  return stored
})

/** A channel's state on the ledger; `left` is not claimed. */
const stateOf = Effect.fnUntraced(function* ({ channelId, contract }: StoredChannel) {
  const state = yield* readState(yield* LedgerRpc, contract, channelId)
  const { balance = 0n, totalClaimed = 0n, withdrawRequestedAt = 0 } = state ?? {}
  return { balance, left: balance - totalClaimed, withdrawRequestedAt }
})

const nothingLeft = Effect.fnUntraced(function* (channelId: string) {
  yield* (yield* BudgetStore).forgetChannel(channelId)
  return { channelId, outcome: "nothing left", amount: "0" } satisfies Ended
})

/** Asks the seller of the channel's last call. */
const refund = Effect.fnUntraced(function* (stored: StoredChannel) {
  const { channelId } = stored
  const before = yield* stateOf(stored)
  if (before.left === 0n) return yield* nothingLeft(channelId)
  const channel = yield* openChannel(stored)
  if (channel === undefined)
    return yield* refused("the channel's last call cannot be opened with this profile and key; withdraw it instead")
  const outcome = yield* inChannelTurn(channel, askRefund(channel))
  if (outcome === "refused" || outcome === "corrected")
    return yield* refused("the seller does not refund; withdraw it instead")
  const after = yield* stateOf(stored)
  return { channelId, outcome, amount: String(before.balance - after.balance) } satisfies Ended
})

/** Has the facilitator settle one step; the moved amount. */
const submit = Effect.fnUntraced(function* (
  { channelId, config, contract }: StoredChannel,
  withdraw: "withdraw_start" | "withdraw_end",
  keyEnv: string
) {
  const builder = yield* PaymentBuilder
  const transfer = { asset: config.token, payTo: contract, amount: 0n, channel: config, withdraw }
  const ledger = yield* builder.latestLedger
  const ordered = { ...transfer, maxTimeoutSeconds: timeoutSeconds }
  const { transaction } = yield* builder.build(ordered, ledger, () => Effect.void)
  const terms = {
    scheme: batchScheme,
    network: (yield* spelled)((yield* Network).id),
    asset: config.token,
    amount: "0",
    payTo: config.receiver,
    maxTimeoutSeconds: timeoutSeconds,
    extra: {
      areFeesSponsored: true,
      batchContract: contract,
      receiverAuthorizer: config.receiverAuthorizer,
      withdrawDelay: config.withdrawDelay
    }
  }
  const type = withdraw === "withdraw_start" ? "withdrawStart" : "withdrawEnd"
  const payload = { type, channelConfig: config, voucher: { channelId }, authorization: { transaction } }
  const body = {
    x402Version: 2,
    paymentPayload: { x402Version: 2, accepted: terms, payload },
    paymentRequirements: terms
  }
  const { facilitatorMayBeInsecure: isOpen, facilitatorUrl, paidCallTimeoutMillis } = yield* ToolsConfig
  const upstream = (yield* Upstreams).within({ allowLocal: isOpen, allowPlain: isOpen, isStranger: false })
  const key = (yield* Settings).secret(keyEnv)
  const headers = {
    "content-type": "application/json",
    ...Option.match(key, {
      onNone: () => ({}),
      onSome: (value) => ({ authorization: `Bearer ${Redacted.value(value)}` })
    })
  }
  const url = new URL(`${facilitatorUrl.href.replace(/\/$/, "")}/settle`)
  const request = { method: "POST", headers, body: new TextEncoder().encode(JSON.stringify(body)) }
  const answered = yield* Effect.mapError(
    upstream.fetch(url, request, { timeoutMillis: paidCallTimeoutMillis }),
    fetchError("the facilitator")
  )
  const answer = yield* Effect.orElseSucceed(upstream.parse(answered.body), () => undefined)
  const receipt = isFields(answer) ? answer : {}
  if (receipt["success"] === true) return String(receipt["amount"])
  return yield* refused("the facilitator did not settle the withdrawal's step; the same command tries again", {
    status: answered.status,
    reason: receipt["errorReason"],
    message: receipt["errorMessage"]
  })
})

const withdraw = Effect.fnUntraced(function* (stored: StoredChannel, keyEnv: string) {
  const { channelId, config } = stored
  const state = yield* stateOf(stored)
  if (state.left === 0n) return yield* nothingLeft(channelId)
  const { closedAtSeconds } = yield* (yield* PaymentBuilder).latestLedger
  const amount = String(state.left)
  const endsAt = (since: number) => new Date((since + config.withdrawDelay) * 1_000).toISOString()
  const { withdrawRequestedAt: since } = state
  if (since === 0) {
    yield* submit(stored, "withdraw_start", keyEnv)
    // The ledger's own start, if the node shows it already.
    const { withdrawRequestedAt: started } = yield* stateOf(stored)
    return {
      channelId,
      outcome: "withdrawal started",
      amount,
      endsAt: endsAt(started === 0 ? closedAtSeconds : started)
    } satisfies Ended
  }
  if (closedAtSeconds < since + config.withdrawDelay)
    return { channelId, outcome: "withdrawal not due", amount, endsAt: endsAt(since) } satisfies Ended
  const moved = yield* submit(stored, "withdraw_end", keyEnv)
  yield* (yield* BudgetStore).forgetChannel(channelId)
  return { channelId, outcome: "withdrawn", amount: moved } satisfies Ended
})

const rpc = Layer.unwrap(
  Effect.gen(function* () {
    const { passphrase, rpcHeaders, rpcUrls } = yield* Network
    const { rpcTimeout } = yield* Limits
    return MakeLedgerRpc.layer({ urls: rpcUrls, passphrase, timeout: rpcTimeout, headers: rpcHeaders })
  })
)

const services = AgentChannels.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(PaymentBuilder.layer, PaymentSeal.layer)),
  Layer.provideMerge(Layer.merge(Store.layer, OpenPayer.layer)),
  Layer.provideMerge(StoreDatabase.layer),
  Layer.provideMerge(Upstreams.layer),
  Layer.provideMerge(rpc),
  Layer.provideMerge(Layer.mergeAll(Config.layer, ToolsConfig.layer, Limits.layer, Network.layer, WireVocabulary.layer))
)

/** Ends a channel. `keyEnv` names the variable with the API key that the facilitator asks for, if it does. */
export const endChannel = (channelId: string, way: "refund" | "withdraw", keyEnv: string) =>
  Effect.gen(function* () {
    const stored = yield* find(channelId)
    return yield* way === "refund" ? refund(stored) : withdraw(stored, keyEnv)
  }).pipe(Effect.scoped, Effect.provide(services))
