// Verifies a voucher without a simulation and without a database. It checks that the channel's terms match the required
// ones, that its id matches its configuration, and that the payer's authorizer signed. According to the ledger's state
// of the channel, the maximum must be above the claimed amount and within the balance, and no withdrawal may have
// started. Before it refuses because of the channel's state, it reads that state again. The settle of a voucher runs
// the same check and moves nothing, since the seller's record of charges decides.
import { Effect, Option } from "effect"
import type { LedgerUnavailable } from "../../kernel/ledger/LedgerRpc.ts"
import type { AnswerExtra } from "../../kernel/payment/Answer.ts"
import type { Payment } from "../../kernel/payment/Payment.ts"
import { isRefusal, type Refusal } from "../../kernel/payment/Refusal.ts"
import type { Covered, Stage } from "../../kernel/payment/Scheme.ts"
import type { ChannelState } from "./batchCodec.ts"
import type { VoucherPayload } from "./BatchWire.ts"
import type { ChannelStates } from "./ChannelStates.ts"
import type { HasCharged } from "./Delegates.ts"
import { acceptedRefusal, channelError, voucherError } from "./checks.ts"
import { type CheckError, refuse } from "./refusals.ts"
import type { Known } from "./StateCache.ts"
import type { Vouchers } from "./Vouchers.ts"

/**
 * A channel's state in the format of the official packages' `channelState`. `asOf`: a close time at or before the close
 * time of the reading. A seller uses it to see when a refund that it signed has expired.
 */
export const channelStateExtra = (channelId: string, state: ChannelState, asOf?: number): AnswerExtra => ({
  channelId,
  balance: state.balance.toString(),
  totalClaimed: state.totalClaimed.toString(),
  withdrawRequestedAt: state.withdrawRequestedAt,
  refundNonce: state.refundNonce.toString(),
  ...(asOf === undefined ? {} : { asOf })
})

/** Checks a voucher against a channel's state. A paid request raises the claimed total by its price at least. */
export const stateError = (
  { type, voucher }: VoucherPayload,
  state: ChannelState | undefined,
  price: bigint
): CheckError => {
  if (state === undefined || state.balance === 0n) return ["channel_not_found", "the channel holds no balance"]
  const { maxClaimableAmount: max } = voucher
  if (max > state.balance)
    return ["cumulative_exceeds_balance", `the voucher's maximum is above the channel's balance, ${state.balance}`]
  const { totalClaimed } = state
  if (type === "refund" ? max < totalClaimed : max <= totalClaimed || max < totalClaimed + price)
    return ["cumulative_below_claimed", `the voucher's maximum is below the claimed ${totalClaimed} and the price`]
  return type === "voucher" && state.withdrawRequestedAt !== 0
    ? ["withdrawal_started", "the payer has started a withdrawal of the channel"]
    : undefined
}

export const priceOf = ({ requirements }: Payment): bigint => Option.getOrElse(requirements.amount, () => 0n)

/** The offline checks of the channel and the voucher, in order. */
const offlineError = (payment: Payment, payload: VoucherPayload, context: VoucherContext): CheckError => {
  const { config, type, voucher } = payload
  const error = channelError(payment, config, voucher.channelId, context.vouchers, context.isOurs)
  if (error !== undefined) return error
  // The maximum is cumulative: it covers at least this payment.
  if (type === "voucher" && voucher.maxClaimableAmount < priceOf(payment))
    return ["cumulative_amount_mismatch", "the voucher's maximum is below the required amount"]
  return voucherError(config, voucher, context.vouchers)
}

interface VoucherContext {
  readonly contract: string
  readonly vouchers: Vouchers
  readonly states: ChannelStates["Service"]
  readonly hasCharged: HasCharged
  readonly isOurs: (address: string) => boolean
}

export const makeVerifyVoucher = (context: VoucherContext) => {
  const { states } = context
  const decide = (payment: Payment, payload: VoucherPayload, { state }: Known): Covered | Refusal => {
    const error = stateError(payload, state, priceOf(payment))
    const { payer } = payload.config
    if (error !== undefined) return refuse(error[0], error[1], payer)
    return {
      _tag: "Covered",
      payer,
      extra: channelStateExtra(payload.voucher.channelId, state!, states.closedAt(payload.voucher.channelId))
    }
  }
  const check = (
    payment: Payment,
    payload: VoucherPayload,
    stage: Stage
  ): Effect.Effect<Covered | Refusal, LedgerUnavailable> => {
    if (stage === "settle" && payload.type === "refund")
      return Effect.succeed(
        refuse("refund_payload", "a refund to settle names amount, refundNonce and claims", payload.config.payer)
      )
    const unaccepted = acceptedRefusal(payment, context.contract, stage === "settle")
    if (unaccepted !== undefined) return Effect.succeed({ ...unaccepted, payer: Option.some(payload.config.payer) })
    const error = offlineError(payment, payload, context)
    if (error !== undefined) return Effect.succeed(refuse(error[0], error[1], payload.config.payer))
    const { channelId } = payload.voucher
    const settled = (covered: Covered): Covered =>
      stage === "verify"
        ? covered
        : { ...covered, extra: { chargedAmount: priceOf(payment).toString(), channelState: covered.extra } }
    return Effect.flatMap(states.read(channelId), (known) => {
      const answer = decide(payment, payload, known)
      if (!isRefusal(answer)) return Effect.succeed(settled(answer))
      // The node may hide an archived channel, and a lagging node may not show a new one yet.
      const doubted = Effect.flatMap(states.doubt(channelId), (read) =>
        read.state === undefined ? states.prove(channelId, payment.principal) : Effect.succeed(read)
      )
      return Effect.map(doubted, (read) => {
        const again = read === known ? answer : decide(payment, payload, read)
        return isRefusal(again) ? again : settled(again)
      })
    })
  }
  /**
   * Response of verify and settle to a voucher, or to a buyer's request for a refund. A settle of one voucher could
   * succeed any number of times, so the caller receives a success only if its record here has charged the voucher.
   */
  return (...asked: Parameters<typeof check>): ReturnType<typeof check> => {
    const [payment, { config, type, voucher }, stage] = asked
    const answer = check(...asked)
    if (stage !== "settle" || type !== "voucher") return answer
    return Effect.flatMap(answer, (covered) =>
      isRefusal(covered)
        ? Effect.succeed(covered)
        : Effect.map(context.hasCharged(payment.principal.owner, voucher), (isCharged) =>
            isCharged ? covered : refuse("payload_type", "its seller's record charges a voucher", config.payer)
          )
    )
  }
}
