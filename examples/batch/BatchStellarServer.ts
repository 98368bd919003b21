// The seller's side of `batch-settlement`, in the official resource server's interface. It sets prices, verifies
// vouchers itself while its state of the channel is recent enough, reserves the channel for the request, charges the
// amount used and corrects a buyer whose total differs. The facilitator settles deposits and refunds; vouchers need
// neither the facilitator nor the ledger. The seller stores its channels and its authorizer's key, or the facilitator's
// store keeps them (`remoteChannels.ts`). `BatchClaims.ts` claims the charged amounts.
import { randomUUID } from "node:crypto"
import type { Channel, ChannelConfig, Charge, Charged, PendingRefund, SellerChannels, Voucher } from "./channels.ts"
import { channelsOver, impliedBase, largest, memoryStorage, stateIn } from "./channels.ts"
import {
  channelIdIn,
  contractOf,
  isVoucherOf,
  placeOf,
  signClaims,
  type Signer,
  signerOf,
  signRefund,
  type WireClaim
} from "./vouchers.ts"

/** The seller's additions to the buyer's refund. */
export interface EnrichedRefund {
  readonly amount: string
  readonly refundNonce: string
  readonly claims: ReadonlyArray<WireClaim>
  /** Last ledger close time at which the signatures are valid, Unix seconds. */
  readonly expiresAt: number
  /** Absent if the facilitator holds the authorizer's key and signs. */
  readonly refundAuthorizerSignature?: string
  readonly claimAuthorizerSignature?: string
}

export interface RefundAsked {
  readonly network: string
  readonly contract: string
  readonly channel: Channel
  /** The voucher for the total charged so far. */
  readonly voucher: Voucher
  /** The refund to sign, as in the channel's record. */
  readonly held: PendingRefund
}

/** The key that allows claims and refunds of the seller's channels. */
export interface ReceiverAuthorizer {
  readonly address: string
  readonly refund: (asked: RefundAsked) => Promise<EnrichedRefund>
  /** Absent if another party claims for the seller. Returns nothing if the facilitator holds the key and signs. */
  readonly signClaims?: (
    network: string,
    contract: string,
    claims: ReadonlyArray<WireClaim>,
    expiresAt: number
  ) => string | undefined
}

export interface BatchServerOptions {
  /** The payee: G… or C…, the routes' `payTo`. */
  readonly receiver: string
  readonly authorizer: ReceiverAuthorizer
  /** Default: in memory, for one process. */
  readonly channels?: SellerChannels
  /** Seconds between a payer's withdrawal and its end: the time to claim. Default 900, the minimum. */
  readonly withdrawDelay?: number
  /** How long we use the ledger's state of a channel before we read it again. Default 60 000. */
  readonly stateTtlMillis?: number
  /** Enforced minimum deposit, a multiple of the price (default 10), at least the facilitator's own. */
  readonly minDepositTimes?: number
}

/** A refund as sent to the facilitator, unsigned, with the claim of the amount charged before it. */
export const refundOf = ({ channel, held, voucher }: RefundAsked) => {
  const { maxClaimableAmount, signature } = voucher
  const claims: ReadonlyArray<WireClaim> =
    BigInt(channel.chargedCumulativeAmount) > BigInt(channel.totalClaimed)
      ? [
          {
            voucher: { channel: channel.channelConfig, maxClaimableAmount },
            signature,
            totalClaimed: channel.chargedCumulativeAmount
          }
        ]
      : []
  const { amount, expiresAt, refundNonce } = held
  return { amount, refundNonce: String(refundNonce), expiresAt, claims }
}

/** A seller's own key as its channels' authorizer. */
export const keyAuthorizer = (secret: string): ReceiverAuthorizer => {
  const signer: Signer = signerOf(secret)
  return {
    address: signer.address,
    signClaims: (network, contract, claims, expiresAt) =>
      signClaims(signer, placeOf(network, contract), claims, expiresAt),
    refund: async (asked) => {
      const { channel, contract, held, network } = asked
      const refund = refundOf(asked)
      const { claims, expiresAt } = refund
      const place = placeOf(network, contract)
      return {
        ...refund,
        refundAuthorizerSignature: signRefund(signer, place, channel.channelId, held),
        ...(claims.length === 0 ? {} : { claimAuthorizerSignature: signClaims(signer, place, claims, expiresAt) })
      }
    }
  }
}

/** The reservation of this request. */
interface Request {
  readonly pendingId: string
  readonly channel: Channel
}

const reservationMillisMin = 5_000
/** Minimum reservation for a deposit or refund, because the ledger settles it while the channel is reserved. */
const settledMillisMin = 60_000
const reservationMillisMax = 600_000

const isOfScheme = (payload: any): boolean => ["deposit", "voucher", "refund"].includes(payload?.type)
const sameConfig = (a: ChannelConfig, b: ChannelConfig): boolean =>
  (Object.keys(a) as Array<keyof ChannelConfig>).every((name) => a[name] === b[name])

const stateExtra = (channel: Channel) => ({
  channelId: channel.channelId,
  balance: channel.balance,
  totalClaimed: channel.totalClaimed,
  withdrawRequestedAt: channel.withdrawRequestedAt,
  refundNonce: String(channel.refundNonce),
  chargedCumulativeAmount: channel.chargedCumulativeAmount
})

export class BatchStellarServer {
  readonly scheme = "batch-settlement"
  readonly defaultAssetTransferMethod = "default"
  readonly paymentFlows = { default: { supported: ["authorization"], default: "authorization" } }
  readonly channels: SellerChannels
  readonly authorizer: ReceiverAuthorizer
  readonly receiver: string
  readonly schemeHooks
  readonly #options: BatchServerOptions
  readonly #requests = new WeakMap<object, Request>()
  readonly #stale = new WeakMap<object, Channel>()

  constructor(options: BatchServerOptions) {
    this.#options = options
    this.channels = options.channels ?? channelsOver(memoryStorage())
    this.authorizer = options.authorizer
    this.receiver = options.receiver
    this.schemeHooks = {
      onBeforeVerify: (context: any) => this.#beforeVerify(context),
      onAfterVerify: (context: any) => this.#afterVerify(context),
      onBeforeSettle: (context: any) => this.#beforeSettle(context),
      onAfterSettle: (context: any) => this.#afterSettle(context),
      onVerifyFailure: (context: any) => this.#release(context),
      onSettleFailure: (context: any) => this.#release(context),
      onVerifiedPaymentCanceled: (context: any) => this.#release(context)
    }
  }

  get withdrawDelay(): number {
    return this.#options.withdrawDelay ?? 900
  }

  async parsePrice(price: any): Promise<any> {
    if (typeof price?.amount !== "string" || typeof price.asset !== "string")
      throw new Error("a price is { amount, asset } with the amount in atomic units")
    return { amount: price.amount, asset: price.asset, extra: price.extra ?? {} }
  }

  /** The terms of a channel with this seller, and the contract that the facilitator announces. */
  async enhancePaymentRequirements(requirements: any, kind: any): Promise<any> {
    const { areFeesSponsored, batchContract, minDeposit } = kind.extra ?? {}
    const times = BigInt(this.#options.minDepositTimes ?? 10)
    return {
      ...requirements,
      extra: {
        ...requirements.extra,
        areFeesSponsored,
        batchContract,
        receiverAuthorizer: this.authorizer.address,
        withdrawDelay: this.withdrawDelay,
        // The facilitator does not sponsor deposits below its own minimum.
        minDeposit: String(largest(BigInt(requirements.amount) * times, BigInt(minDeposit ?? 0)))
      }
    }
  }

  /** Verifies a voucher without the facilitator while the channel's state is known. */
  async #beforeVerify({ paymentPayload, requirements }: any): Promise<any> {
    const { channelConfig, claims, refundNonce, type, voucher } = paymentPayload.payload
    if (!isOfScheme(paymentPayload.payload)) return
    // The facilitator checks such a refund as the seller's own, and returns no state of the channel.
    if (claims !== undefined || refundNonce !== undefined)
      return this.#abort(requirements, "refund_payload", "claims and refundNonce are the seller's to add")
    try {
      const id = channelIdIn(requirements.network, contractOf(requirements), channelConfig)
      if (id !== voucher.channelId) return this.#abort(requirements, "channel_id_mismatch", "another channel's id")
      const channel = await this.channels.get(voucher.channelId)
      const price = type === "refund" ? "0" : requirements.amount
      const implied = impliedBase(voucher.maxClaimableAmount, price)
      const base = channel?.chargedCumulativeAmount ?? implied
      // A restored record may be behind: the facilitator reads the ledger, and the reservation decides.
      if (BigInt(implied) > BigInt(base)) return
      if (BigInt(voucher.maxClaimableAmount) !== BigInt(base) + BigInt(price)) {
        if (channel !== undefined) this.#stale.set(paymentPayload, channel)
        return this.#abort(requirements, "cumulative_amount_mismatch", "the voucher's base is not what was charged")
      }
      if (type !== "voucher" || channel === undefined) return
      const result = this.#verifyHere(channel, paymentPayload.payload, requirements)
      return result === undefined ? undefined : { skip: true, result }
    } catch {
      return this.#abort(requirements, "verification_state_unavailable", "the channel's state cannot be read")
    }
  }

  #verifyHere(channel: Channel, { channelConfig, voucher }: any, requirements: any): any {
    const age = Date.now() - (channel.onchainSyncedAt ?? Number.NaN) // Negative if the clock was set back.
    if (!(age >= 0 && age <= (this.#options.stateTtlMillis ?? 60_000))) return undefined
    const max = BigInt(voucher.maxClaimableAmount)
    // On any mismatch the facilitator verifies, with the ledger's newest state.
    const isFine =
      sameConfig(channel.channelConfig, channelConfig) &&
      channelConfig.receiver === requirements.payTo &&
      channelConfig.token === requirements.asset &&
      channelConfig.receiverAuthorizer === requirements.extra?.receiverAuthorizer &&
      channelConfig.withdrawDelay === requirements.extra?.withdrawDelay &&
      channel.withdrawRequestedAt === 0 &&
      channel.pendingRefund == null &&
      max <= BigInt(channel.balance) &&
      max > BigInt(channel.totalClaimed) &&
      isVoucherOf(channelConfig.payerAuthorizer, placeOf(requirements.network, contractOf(requirements)), voucher)
    if (!isFine) return undefined
    return { isValid: true, payer: channelConfig.payer, extra: { ...stateExtra(channel), isLocal: true } }
  }

  /** Reserves the channel for this request. */
  async #afterVerify({ paymentPayload, requirements, result }: any): Promise<any> {
    if (!result.isValid || !isOfScheme(paymentPayload.payload)) return
    const { channelConfig, type, voucher } = paymentPayload.payload
    // Do not use the buyer's payment identifier: sent to two instances concurrently, both would answer one voucher.
    const pendingId = randomUUID()
    const least = type === "voucher" ? reservationMillisMin : settledMillisMin
    const ttlMillis = Math.min(reservationMillisMax, Math.max(least, requirements.maxTimeoutSeconds * 1_000))
    const price = type === "refund" ? "0" : requirements.amount
    const state = result.extra?.isLocal === true ? undefined : stateIn(result.extra)
    let reserved
    try {
      reserved = await this.channels.reserve({ pendingId, channelConfig, voucher, price, state, ttlMillis })
    } catch {
      return this.#abort(requirements, "verification_state_unavailable", "the channel's record cannot be reached")
    }
    if (reserved.status === "busy")
      return this.#abort(requirements, "channel_busy", "another request of the channel is in progress")
    if (reserved.status === "stale") {
      if (reserved.channel !== undefined) this.#stale.set(paymentPayload, reserved.channel)
      return this.#abort(requirements, "cumulative_amount_mismatch", "the voucher's base is not what was charged")
    }
    this.#requests.set(paymentPayload, { pendingId, channel: reserved.channel! })
    if (type !== "refund") return
    const body = { message: "the refund is being settled", channelId: voucher.channelId }
    return { skipHandler: true, response: { contentType: "application/json", body } }
  }

  /** Undefined if the store's answer is missing: it may have charged. A hook that throws would settle uncharged. */
  readonly #charge = (charge: Charge): Promise<Charged | undefined> =>
    this.channels.charge(charge).catch(() => undefined)

  /** Charges a voucher. This is the whole settlement; nothing goes to the ledger. Settles nothing unreserved. */
  async #beforeSettle({ paymentPayload, requirements }: any): Promise<any> {
    const { type, voucher } = paymentPayload.payload
    const request = this.#requests.get(paymentPayload)
    if (request === undefined) return this.#abort(requirements, "missing_channel", "the request has no reservation")
    if (type !== "voucher") return
    const [{ pendingId }, { amount }] = [request, requirements]
    const charged = await this.#charge({ channelId: voucher.channelId, pendingId, amount, voucher })
    if (charged?.status !== "charged") {
      if (charged?.status === "exceeded") await this.#release({ paymentPayload }).catch(() => undefined)
      const reason = this.#uncharged(requirements, charged?.status)
      return { abort: true, reason, message: "the voucher cannot be charged" }
    }
    return {
      skip: true,
      result: {
        success: true,
        payer: request.channel.channelConfig.payer,
        transaction: "",
        network: requirements.network,
        amount: "",
        extra: { chargedAmount: amount, channelState: stateExtra(charged.channel!) }
      }
    }
  }

  /** The seller's part of a refund. */
  enrichSettlementPayload = async ({ paymentPayload, requirements }: any): Promise<any> => {
    const { amount, type, voucher } = paymentPayload.payload
    if (type !== "refund") return
    const request = this.#requests.get(paymentPayload)
    if (request === undefined) throw new Error(this.#word(requirements, "channel_busy"))
    const { channel, pendingId } = request
    const held = await this.channels.holdRefund({ channelId: channel.channelId, pendingId, voucher, amount })
    const { network } = requirements
    const refund = await this.authorizer.refund({ network, contract: contractOf(requirements), channel, voucher, held })
    const { amount: refunded, ...rest } = refund
    return amount === undefined ? { amount: refunded, ...rest } : rest
  }

  async #afterSettle({ paymentPayload, requirements, result }: any): Promise<any> {
    const { type, voucher } = paymentPayload.payload
    const request = this.#requests.get(paymentPayload)
    if (!result.success || request === undefined || type === "voucher") return
    const state = stateIn(result.extra?.channelState)
    const { pendingId } = request
    // Without a reading the refund stays pending, and the facilitator verifies the next voucher.
    if (type === "refund")
      return state === undefined
        ? this.channels.release(voucher.channelId, pendingId)
        : this.channels.sync(voucher.channelId, state, pendingId)
    const { amount } = requirements
    const charged = await this.#charge({ channelId: voucher.channelId, pendingId, amount, voucher, state })
    if (charged?.status !== "charged") {
      // The deposit pays the next request. This request was not charged, so it gets no content.
      const errorReason = this.#uncharged(requirements, charged?.status)
      return void Object.assign(result, { success: false, errorReason })
    }
    this.#requests.set(paymentPayload, { pendingId, channel: charged.channel! })
  }

  enrichSettlementResponse = async ({ paymentPayload, requirements }: any): Promise<any> => {
    const { type } = paymentPayload.payload
    const request = this.#requests.get(paymentPayload)
    if (type === "voucher" || request === undefined) return
    const { chargedCumulativeAmount } = request.channel
    return {
      channelState: { chargedCumulativeAmount },
      ...(type === "deposit" ? { chargedAmount: requirements.amount } : {})
    }
  }

  /** Sends a buyer with a different total the seller's total, and the voucher that proves it. */
  enrichPaymentRequiredResponse = async ({ paymentPayload, requirements }: any): Promise<any> => {
    const channel = paymentPayload === undefined ? undefined : this.#stale.get(paymentPayload)
    if (channel === undefined) return
    const { network } = paymentPayload.accepted
    const accept = requirements.find((one: any) => one.scheme === this.scheme && one.network === network)
    if (accept === undefined) return
    accept.extra = {
      ...accept.extra,
      channelState: stateExtra(channel),
      voucherState: { signedMaxClaimable: channel.signedMaxClaimable, signature: channel.signature }
    }
  }

  async #release({ paymentPayload }: any): Promise<void> {
    const request = this.#requests.get(paymentPayload)
    if (request === undefined) return
    this.#requests.delete(paymentPayload)
    await this.channels.release(request.channel.channelId, request.pendingId)
  }

  #uncharged(requirements: any, status: Exclude<Charged["status"], "charged"> | undefined): string {
    const word = { missing: "missing_channel", busy: "channel_busy", exceeded: "charge_exceeds_signed_cumulative" }
    return status === undefined ? "settlement_pending" : this.#word(requirements, word[status])
  }

  #word({ network }: any, word: string): string {
    return `invalid_batch_settlement_${String(network).startsWith("stellar:") ? "stellar" : "ledger"}_${word}`
  }

  #abort(requirements: any, word: string, message: string): any {
    return { abort: true, reason: this.#word(requirements, word), message }
  }
}
