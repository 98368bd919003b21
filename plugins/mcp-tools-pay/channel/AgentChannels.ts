// The payment channels of agents: one for each agent, origin and set of terms. Any origin can copy a seller's terms,
// and in a shared channel its answers, or a missing one, would stop the calls of that seller. A channel's balance is
// only cached in memory. After a loss we read the claimed and deposited amounts from the ledger, and accept the
// seller's total only with a voucher signed by our own key. Vouchers are signed by a key derived from the key that
// seals payments, never by the payer's key. The derived key can only spend a channel towards its seller. A channel
// serves one call at a time.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Context, Effect, Layer, Redacted, Result, Semaphore } from "effect"
import { max as larger } from "effect/BigInt"
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
import type { KeptRequest, Seller } from "../call/Invocation.ts"
import { Payer } from "../payer/Payer.ts"
import { PaymentSeal } from "../payer/PaymentSeal.ts"
import type { Challenge, Fields, PaymentOption } from "../seller/SellerWire.ts"
import type { ChannelTerms, Correction } from "./channelTerms.ts"

/** In atomic units: the total charged, as far as we have seen, and the amount deposited. */
export interface ChannelBalance {
  readonly charged: bigint
  readonly balance: bigint
}

/** How the latest call reached its seller; a refund request goes the same way. */
interface LastCall {
  readonly seller: Seller
  readonly challenge: Challenge
  readonly option: PaymentOption
  readonly request?: KeptRequest | undefined
}

export interface AgentChannel {
  readonly channelId: string
  readonly config: ChannelConfig
  readonly terms: ChannelTerms
  readonly lock: Semaphore.Semaphore
  /** Undefined: read the ledger first. */
  known: ChannelBalance | undefined
  /** Minimum charged, if the ledger shows a smaller claimed amount. */
  charged: bigint
  last: LastCall | undefined
  usedMillis: number
  /** True once its terms are in the store. */
  isKept: boolean
  refundsFailed: number
  /** Why the seller's last answer contradicts its voucher. While it is set, we sign no payment here. */
  disputed: string | undefined
  /** The voucher for a cumulative amount of at most `max`, in wire format. */
  readonly voucher: (max: bigint) => Fields
  /** True if our own key signed the voucher in a correction. */
  readonly isOurs: (correction: Correction) => boolean
}

const channelsMax = 1_000

/** Makes the next use read the ledger again. `charged` is kept, because the ledger does not show it yet. */
export const doubt = (channel: AgentChannel, charged: bigint): void =>
  void Object.assign(channel, { known: undefined, charged })

const unavailable = toolError("UPSTREAM_TIMEOUT", "the ledger is unavailable; retry later")

/**
 * Reads the channel's state from the ledger. An archived entry is missing from the normal read; without the fallback we
 * would pay its claimed amount again.
 */
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
    readonly of: (
      agent: string,
      option: PaymentOption,
      terms: ChannelTerms,
      salt: string
    ) => Effect.Effect<AgentChannel, ToolError>
    /** The salt of an agent's channel with the sellers of one origin. */
    readonly saltFor: (agent: string, origin: string | undefined) => string
    /**
     * The cached balance, or the ledger's. The claimed amount counts as charged until the seller shows another total.
     */
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
          disputed: undefined,
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
        saltFor: (agent, origin = "") =>
          Hex.encode(crypto.sha256(new TextEncoder().encode(`tollkeeper agent channel ${agent}\n${origin}`))),
        of: Effect.fnUntraced(function* (agent, { asset, payTo }, terms, salt) {
          const seed = seedFor(`channels of ${agent}`)
          const config: ChannelConfig = {
            payer: yield* payer.address,
            payerAuthorizer: StrKey.encodeEd25519PublicKey(crypto.ed25519PublicKey(Redacted.value(seed))),
            receiver: payTo,
            receiverAuthorizer: terms.receiverAuthorizer,
            token: asset,
            withdrawDelay: terms.withdrawDelay,
            salt
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
