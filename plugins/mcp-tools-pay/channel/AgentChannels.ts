// The payment channels of agents: one for each agent, seller and set of terms. What is known of one is kept in memory
// alone: after a loss the ledger says what was claimed and deposited, and the seller's total is taken by a voucher that
// our own key signed. Vouchers are signed by a key derived from the one that seals payments, never by the payer's; it
// can spend a channel towards its seller and nothing else. One call of a channel at a time.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Context, Effect, Layer, Redacted, Result, Semaphore } from "effect"
import { Hex } from "effect/encoding"
import { Network, passphrases } from "../../../kernel/config/Network.ts"
import { verifyEd25519 } from "../../../kernel/ledger/Ed25519.ts"
import { LedgerRpc } from "../../../kernel/ledger/LedgerRpc.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { toolError, type ToolError } from "../../mcp-tools/contract.ts"
import {
  type BatchContract,
  type ChannelConfig,
  channelIdOf,
  channelKey,
  channelStateOf,
  networkIdOf,
  proveState,
  voucherDigest
} from "../../x402-batch/contract.ts"
import type { Seller } from "../call/Invocation.ts"
import { Payer } from "../payer/Payer.ts"
import { PaymentSeal } from "../payer/PaymentSeal.ts"
import type { Challenge, Fields, PaymentOption } from "../seller/SellerWire.ts"
import type { ChannelTerms, Correction } from "./channelTerms.ts"

/** Atomic units: charged in all, as far as known, and deposited. */
export interface ChannelBalance {
  readonly charged: bigint
  readonly balance: bigint
}

/** How the newest call reached its seller: a refund is asked the same way. */
export interface LastCall {
  readonly seller: Seller
  readonly challenge: Challenge
  readonly option: PaymentOption
}

export interface AgentChannel {
  readonly channelId: string
  readonly config: ChannelConfig
  readonly terms: ChannelTerms
  readonly lock: Semaphore.Semaphore
  /** Undefined: the ledger is to be asked. */
  known: ChannelBalance | undefined
  /** What is known to be charged at least, where the ledger shows less claimed. */
  charged: bigint
  last: LastCall | undefined
  usedMillis: number
  /** Its terms are in the store. */
  isKept: boolean
  refundsFailed: number
  /** The voucher for at most `max` in all, as on the wire. */
  readonly voucher: (max: bigint) => Fields
  /** Whether our own key signed the voucher that a correction shows. */
  readonly isOurs: (correction: Correction) => boolean
}

/** Channels of one process that are open at the same time. */
const channelsMax = 1_000

/** Has the ledger asked before the channel is used again; what was charged is not on it. */
export const doubt = (channel: AgentChannel, charged: bigint): void =>
  void Object.assign(channel, { known: undefined, charged })

export const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b)

const unavailable = toolError("UPSTREAM_TIMEOUT", "the ledger is unavailable; retry later")

/** The ledger's state; an archived channel is not shown, and what was claimed of it would be paid again. */
export const readState = Effect.fnUntraced(
  function* (rpc: LedgerRpc["Service"], contract: string, channelId: string) {
    const key = channelKey(contract, channelId)
    const { latestLedger, values } = yield* rpc.contractData([key])
    if (values.has(key)) return channelStateOf(values.get(key))
    return (yield* proveState(rpc, contract, channelId, latestLedger)).state
  },
  Effect.mapError(() => unavailable)
)

export class AgentChannels extends Context.Service<
  AgentChannels,
  {
    readonly of: (agent: string, option: PaymentOption, terms: ChannelTerms) => Effect.Effect<AgentChannel, ToolError>
    /** What is known of a channel, or what the ledger shows: claimed is the base until the seller shows another. */
    readonly balance: (channel: AgentChannel) => Effect.Effect<ChannelBalance, ToolError>
    readonly all: () => ReadonlyArray<AgentChannel>
    readonly forget: (channel: AgentChannel) => void
  }
>()("tollkeeper/mcp-tools-pay/AgentChannels") {
  static readonly layer = Layer.effect(
    AgentChannels,
    Effect.gen(function* () {
      const crypto = yield* Crypto
      const rpc = yield* LedgerRpc
      const payer = yield* Payer
      const { seedFor } = yield* PaymentSeal
      const networkId = networkIdOf(passphrases[(yield* Network).id])
      const channels = new Map<string, AgentChannel>()

      const open = (at: BatchContract, agent: string, config: ChannelConfig, terms: ChannelTerms): AgentChannel => {
        const [seed, channelId] = [seedFor(`channels of ${agent}`), channelIdOf(at, config)]
        const known = channels.get(channelId)
        if (known !== undefined) return known
        const channel: AgentChannel = {
          channelId,
          config,
          terms,
          lock: Semaphore.makeUnsafe(1),
          known: undefined,
          charged: 0n,
          last: undefined,
          usedMillis: 0,
          isKept: false,
          refundsFailed: 0,
          voucher: (max) => ({
            channelId,
            maxClaimableAmount: max.toString(),
            signature: Hex.encode(crypto.ed25519Sign(Redacted.value(seed), voucherDigest(at, channelId, max)))
          }),
          isOurs: ({ signature, signedMax }) => {
            const bytes = Result.getOrThrow(Hex.decode(signature))
            const key = crypto.ed25519PublicKey(Redacted.value(seed))
            return verifyEd25519(crypto, key, voucherDigest(at, channelId, signedMax), bytes)
          }
        }
        channels.set(channelId, channel)
        return channel
      }

      return AgentChannels.of({
        of: Effect.fnUntraced(function* (agent, { asset, payTo }, terms) {
          const seed = seedFor(`channels of ${agent}`)
          const salt = crypto.sha256(new TextEncoder().encode(`tollkeeper agent channel ${agent}`))
          const config: ChannelConfig = {
            payer: yield* payer.address,
            payerAuthorizer: StrKey.encodeEd25519PublicKey(crypto.ed25519PublicKey(Redacted.value(seed))),
            receiver: payTo,
            receiverAuthorizer: terms.receiverAuthorizer,
            token: asset,
            withdrawDelay: terms.withdrawDelay,
            salt: Hex.encode(salt)
          }
          const at = { networkId, address: terms.contract }
          if (channels.size >= channelsMax && !channels.has(channelIdOf(at, config)))
            return yield* toolError("PAYMENT_REJECTED", "too many payment channels are open; retry later")
          const channel = open(at, agent, config, terms)
          channel.usedMillis = yield* monotonicMillis
          return channel
        }),
        balance: Effect.fnUntraced(function* (channel) {
          if (channel.known !== undefined) return channel.known
          const state = yield* readState(rpc, channel.terms.contract, channel.channelId)
          channel.known = { charged: larger(state?.totalClaimed ?? 0n, channel.charged), balance: state?.balance ?? 0n }
          return channel.known
        }),
        all: () => [...channels.values()],
        forget: ({ channelId }) => void channels.delete(channelId)
      })
    })
  )
}
