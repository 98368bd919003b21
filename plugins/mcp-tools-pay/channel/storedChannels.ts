// Agents' channels in the budget's store, each with its terms and the request that asks its seller for a refund. After
// a restart the process can thus ask for the rest of a channel that an earlier process opened.
import { Effect, Option, Schema, Semaphore } from "effect"
import { toolError, ToolsConfig, Upstreams } from "../../mcp-tools/contract.ts"
import { BudgetStore, type StoredChannel } from "../budget/BudgetStore.ts"
import { withDecimals } from "../budget/ReservationWire.ts"
import type { KeptRequest } from "../call/Invocation.ts"
import { Config } from "../Config.ts"
import { PaymentSeal } from "../payer/PaymentSeal.ts"
import { sellerOf } from "../seller/mcpSeller.ts"
import { type Challenge, type PaymentOption, readOption } from "../seller/SellerWire.ts"
import { type AgentChannel, AgentChannels } from "./AgentChannels.ts"
import { readChannelTerms } from "./channelTerms.ts"

const Fields = Schema.Record(Schema.String, Schema.Unknown)
const LastCall = Schema.fromJsonString(
  Schema.Struct({
    /** Why the seller's last answer contradicts its voucher. */
    disputed: Schema.optionalKey(Schema.String),
    sent: Fields,
    challenge: Schema.Struct({
      version: Schema.Literals([1, 2]),
      resourceUrl: Schema.String,
      resource: Fields,
      extensions: Fields
    }),
    request: Schema.Struct({
      url: Schema.String,
      method: Schema.String,
      headers: Schema.Record(Schema.String, Schema.String),
      body: Schema.optionalKey(Schema.String)
    })
  })
)
const decode = Schema.decodeUnknownOption(LastCall)

const inUse = toolError(
  "UPSTREAM_TIMEOUT",
  "another process is paying on this payment channel; nothing was signed for this call. Repeat it later"
)

/** Uses a channel for one call at a time, in this process and in all others that share the store. */
export const inChannelTurn = <A, E, R>({ channelId, lock }: AgentChannel, use: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    yield* Effect.mapError((yield* BudgetStore).holdChannel(channelId), () => inUse)
    return yield* use
  }).pipe(Effect.scoped, Semaphore.withPermit(lock))

/** Stores a channel: before money goes to it, and when an answer contradicts its voucher. */
export const keepChannel = Effect.fnUntraced(function* (
  { channelId, config, disputed, terms }: AgentChannel,
  agent: string,
  {
    challenge,
    option,
    request
  }: {
    readonly challenge: Challenge
    readonly option: PaymentOption
    readonly request: KeptRequest
  }
) {
  const { extensions, resource, resourceUrl, version } = challenge
  const last = { sent: option.sent, challenge: { version, resourceUrl, resource, extensions }, request, disputed }
  const sealed = (yield* PaymentSeal).seal(channelId, JSON.stringify(last, withDecimals))
  yield* (yield* BudgetStore).keepChannel({ channelId, agent, contract: terms.contract, config, sealed })
})

/**
 * Opens a stored channel. Undefined if this process cannot open its data or the operator no longer allows its terms.
 */
export const openChannel = Effect.fnUntraced(function* ({ agent, channelId, config, sealed }: StoredChannel) {
  const { batch } = yield* Config
  const text = (yield* PaymentSeal).open(channelId, sealed)
  const last = text === undefined ? undefined : Option.getOrUndefined(decode(text))
  const option = readOption(last?.sent)
  const terms = batch === undefined || option === undefined ? "" : readChannelTerms(option, batch)
  if (last === undefined || option === undefined || typeof terms === "string") return undefined
  const channel = yield* (yield* AgentChannels).of(agent, option, terms, config.salt)
  if (channel.channelId !== channelId) return undefined
  const { allowInsecureLocal: isOpen, paidCallTimeoutMillis } = yield* ToolsConfig
  const upstream = (yield* Upstreams).within({ allowLocal: isOpen, allowPlain: isOpen, isStranger: true })
  channel.isKept = true
  channel.disputed ??= last.disputed
  channel.last ??= {
    seller: sellerOf(upstream, last.request, paidCallTimeoutMillis),
    challenge: { ...last.challenge, options: [option], reason: undefined },
    option,
    request: last.request
  }
  return channel
})

export const openStored = Effect.gen(function* () {
  for (const stored of yield* (yield* BudgetStore).channels) {
    const channel = yield* Effect.orElseSucceed(openChannel(stored), () => undefined)
    if (channel === undefined)
      yield* Effect.logWarning("a stored payment channel cannot be used here; its payer can withdraw under its terms", {
        channel: stored.channelId,
        terms: JSON.stringify(stored.config)
      })
  }
})
