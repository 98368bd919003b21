// A facilitator of the sellers' simulation. Its checks of a voucher against the ledger's state are the product's; its
// node lags by up to two ledgers, its answers are slow or lost, and a settle is repeated by its key.
import { stateError, channelStateExtra } from "../../../plugins/x402-batch/verifyVoucher.ts"
import { unknownChannel } from "../../../plugins/x402-batch/stateChecks.ts"
import { isVoucherOf } from "../../../examples/batch/vouchers.ts"
import type { ChannelConfig } from "../../../examples/batch/channels.ts"
import type { Random } from "../random.ts"
import { type ChannelLedger, type Claim, type Transaction, place } from "./ChannelLedger.ts"

const word = (reason: string) => `invalid_batch_settlement_stellar_${reason}`
const refused = (reason: string) => ({ success: false, errorReason: word(reason), transaction: "", network: "" })

const claimOf = ({ signature, totalClaimed, voucher }: any, idOf: (config: any) => string): Claim => ({
  channel: idOf(voucher.channel),
  key: voucher.channel.payerAuthorizer,
  max: BigInt(voucher.maxClaimableAmount),
  signature,
  total: BigInt(totalClaimed)
})

/** The world as facilitators see it. */
interface Surroundings {
  readonly ledger: ChannelLedger
  readonly random: Random
  readonly idOf: (config: ChannelConfig) => string
  /** One way of a call: it takes time, and may be lost. */
  readonly travel: () => Promise<void>
  /** Called when a refund of a channel is about to be submitted. */
  onRefund: (channel: string) => void
}

export class ChannelFacilitator {
  readonly #world: Surroundings
  /** Ledgers that its node is behind. */
  readonly #lagMax: number
  readonly #settled = new Map<string, Promise<any>>()

  constructor(world: Surroundings, lagMax: number) {
    this.#world = world
    this.#lagMax = lagMax
  }

  #shown(channel: string) {
    const { ledger, random } = this.#world
    const shown = ledger.shown(channel, random.int(0, this.#lagMax))
    if (shown.state !== undefined) return shown
    // A simulation proves whether it exists; it also finds archived entries.
    return { state: ledger.stateOf(channel), asOf: ledger.seconds }
  }

  async verify({ payload }: any, { amount }: any): Promise<any> {
    await this.#world.travel()
    const { channelConfig: config, deposit, type, voucher } = payload
    const invalid = (reason: string) => ({ isValid: false, invalidReason: word(reason) })
    if (!isVoucherOf(config.payerAuthorizer, place, voucher)) return invalid("voucher_signature")
    const { asOf, state } = this.#shown(voucher.channelId)
    const after =
      type === "deposit"
        ? { ...(state ?? unknownChannel), balance: (state?.balance ?? 0n) + BigInt(deposit.amount) }
        : state
    const asked = { _tag: "Voucher", type: type === "refund" ? "refund" : "voucher", config } as const
    const signed = { ...voucher, maxClaimableAmount: BigInt(voucher.maxClaimableAmount) }
    const error = stateError({ ...asked, voucher: signed } as never, after, BigInt(amount))
    if (error !== undefined) return invalid(error[0])
    await this.#world.travel()
    return { isValid: true, extra: channelStateExtra(voucher.channelId, state ?? unknownChannel, asOf) }
  }

  async settle({ payload }: any, _terms: unknown, key = ""): Promise<any> {
    await this.#world.travel()
    const earlier = key === "" ? undefined : this.#settled.get(key)
    const answer = earlier ?? this.#settleOnce(payload)
    if (key !== "") this.#settled.set(key, answer)
    const settled = await answer
    await this.#world.travel()
    return settled
  }

  #transactionOf(payload: any): Transaction {
    const { idOf } = this.#world
    const channel = payload.voucher?.channelId
    const claims = (payload.claims ?? []).map((one: unknown) => claimOf(one, idOf))
    switch (payload.type) {
      case "deposit":
        return { claims, act: { kind: "deposit", channel, amount: BigInt(payload.deposit.amount) } }
      case "refund": {
        const { amount, expiresAt: expires, refundNonce } = payload
        const act = { channel, amount: BigInt(amount), refundNonce: Number(refundNonce), expires }
        return { claims, act: { kind: "refund", ...act } }
      }
      default:
        return { claims }
    }
  }

  async #settleOnce(payload: any): Promise<any> {
    if (payload.type === "settle") return refused("nothing_to_settle")
    const { ledger } = this.#world
    const transaction = this.#transactionOf(payload)
    const { act, claims } = transaction
    const isDone = claims.every(({ channel, total }) => (ledger.stateOf(channel)?.totalClaimed ?? 0n) >= total)
    if (payload.type === "claim" && isDone) return refused("nothing_to_claim")
    if (!ledger.allows(transaction)) return refused("transaction_failed")
    if (act?.kind === "refund") this.#world.onRefund(act.channel)
    if (!(await ledger.submit(transaction))) return { success: false, errorReason: "settle_stellar_transaction_failed" }
    if (act === undefined || !("channel" in act)) return { success: true, transaction: "ab" }
    const { state } = ledger.shown(act.channel, this.#world.random.int(0, this.#lagMax))
    const isAfter =
      state !== undefined &&
      (act.kind === "refund"
        ? state.refundNonce > act.refundNonce
        : state.balance >= BigInt(payload.voucher.maxClaimableAmount))
    return {
      success: true,
      transaction: "ab",
      extra: isAfter ? { channelState: channelStateExtra(act.channel, state) } : {}
    }
  }
}
