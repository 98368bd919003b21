// Reads a payment channel's terms from a seller's offer and checks them against the operator's bounds before the seller
// is contacted. Also reads a channel's total from a corrective answer; it counts only with a voucher signed by our own
// key. Pure.
import { StrKey } from "@stellar/stellar-sdk/base"
import type { SignedTotals } from "../budget/BudgetStore.ts"
import type { Deposit } from "../call/Invocation.ts"
import { decodeAmount } from "../../x402-batch/contract.ts"
import type { BatchPayments } from "../Config.ts"
import { type Challenge, type Fields, isFields, type PaymentOption } from "../seller/SellerWire.ts"

export const batchScheme = "batch-settlement"
const delayMin = 900

export interface ChannelTerms {
  readonly contract: string
  readonly receiverAuthorizer: string
  /** Seconds. */
  readonly withdrawDelay: number
  /** Minimum deposit that the seller announces, in atomic units. */
  readonly depositMin: bigint
}

/** A seller's value in a message: a number, or nothing of it. */
const inert = (value: unknown): string => (/^-?[0-9]{1,39}$/.test(String(value)) ? String(value) : "no amount")
/** At most the ledger's largest: a larger one would have the digest, and so the signature, of a smaller voucher. */
export const amountIn = decodeAmount

/** The channel terms of an option, or a sentence that explains why no channel is opened for it. */
export const readChannelTerms = (option: PaymentOption, batch: BatchPayments): ChannelTerms | string => {
  const extra = isFields(option.sent["extra"]) ? option.sent["extra"] : {}
  const { batchContract, receiverAuthorizer, withdrawDelay } = extra
  if (batchContract !== batch.contract) return "the operator does not allow the seller's batch contract"
  if (typeof receiverAuthorizer !== "string" || !StrKey.isValidEd25519PublicKey(receiverAuthorizer))
    return "the seller does not name an authorizer for its claims"
  if (!Number.isSafeInteger(withdrawDelay) || (withdrawDelay as number) < delayMin)
    return "the seller's withdraw delay is not valid"
  if ((withdrawDelay as number) > batch.withdrawDelayMax)
    return "the seller's withdraw delay is longer than the operator allows"
  const depositMin = amountIn(extra["minDeposit"]) ?? 0n
  if (depositMin > batch.depositMax || option.amount > batch.depositMax)
    return "the seller asks for a larger deposit than the operator allows"
  return { contract: batchContract, receiverAuthorizer, withdrawDelay: withdrawDelay as number, depositMin }
}

/**
 * The amount to deposit: enough for several calls, at least the announced minimum, at most the bound. The policy
 * decides on exactly this amount.
 */
export const depositFor = (
  { amount }: Pick<PaymentOption, "amount">,
  { depositMin }: Pick<ChannelTerms, "depositMin">,
  { depositCalls, depositMax }: BatchPayments
): bigint => {
  const wished = amount * BigInt(depositCalls)
  const most = wished > depositMax ? depositMax : wished
  return depositMin > most ? depositMin : most
}

/** The deposit that a call by this option may need; undefined for an option that does not use a channel. */
export const depositOf = (option: PaymentOption, batch: BatchPayments | undefined): Deposit | undefined => {
  if (option.scheme !== batchScheme || batch === undefined) return undefined
  const terms = readChannelTerms(option, batch)
  if (typeof terms === "string") return undefined
  const { contract, withdrawDelay: withdrawDelaySeconds } = terms
  return { amount: depositFor(option, terms, batch), price: option.amount, contract, withdrawDelaySeconds }
}

/** The total from a corrective answer, and the voucher that proves it. */
export interface Correction {
  readonly charged: bigint
  readonly signedMax: bigint
  /** Hex. */
  readonly signature: string
}

/**
 * True if a corrective voucher is an earlier one: from a call that counts, or from a process that has lost its totals.
 * A voucher sent by a call that is still open proves nothing; otherwise we would pay for that call twice.
 */
export const isEarlier = ({ signedMax }: Correction, { counted, sent }: SignedTotals): boolean =>
  signedMax <= counted || signedMax > sent

/**
 * The total charged after an answer to a voucher for `max`, or why the answer contradicts it. Without a total in the
 * answer the whole voucher counts.
 */
export const answeredTotal = (
  { channelId, max, price }: { readonly channelId: string; readonly max: bigint; readonly price: bigint },
  extra: Fields = {}
): bigint | string => {
  const state = isFields(extra["channelState"]) ? extra["channelState"] : {}
  const { channelId: about = channelId, chargedCumulativeAmount: total } = state
  const { chargedAmount } = extra
  const [base, charge] = [max - price, amountIn(chargedAmount ?? price.toString())]
  if (about !== channelId) return "it is about another channel"
  if (charge === undefined || charge > price) return `it charges ${inert(chargedAmount)} for a price of ${price}`
  if (total === undefined) return base + charge
  const read = amountIn(total)
  const isFitting =
    read !== undefined && (chargedAmount === undefined ? read >= base && read <= max : read === base + charge)
  return isFitting ? read : `its total is ${inert(total)}, after ${base} and a charge of ${charge}`
}

/** The channel's state in a 402; undefined if it is missing or cannot be true. */
export const readCorrection = (challenge: Challenge | undefined, channelId: string): Correction | undefined => {
  for (const { sent } of challenge?.options ?? []) {
    const extra = isFields(sent["extra"]) ? sent["extra"] : {}
    const { channelState, voucherState } = extra
    if (!isFields(channelState) || !isFields(voucherState) || channelState["channelId"] !== channelId) continue
    const charged = amountIn(channelState["chargedCumulativeAmount"])
    const [signedMax, { signature }] = [amountIn(voucherState["signedMaxClaimable"]), voucherState]
    if (charged === undefined || signedMax === undefined || charged > signedMax) continue
    if (typeof signature === "string" && /^[0-9a-f]{128}$/.test(signature)) return { charged, signedMax, signature }
  }
  return undefined
}
