// The data that the payer of a batch deposit signs: the contract's `deposit(payer, config, amount)` with the token's
// transfer below it, and a voucher for the first payment from it. The seller's terms define the channel. The payer
// chooses the amount, the key of its vouchers and the salt, and sends the amount charged so far. It passes the checks
// of a deposit, except signatures, with one read of the channel. Pure, except `layOutDeposit`.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Effect, Option } from "effect"
import { Limits } from "../../kernel/config/Limits.ts"
import { Network } from "../../kernel/config/Network.ts"
import { LedgerClock } from "../../kernel/ledger/LedgerClock.ts"
import type { Payment } from "../../kernel/payment/Payment.ts"
import type { Refusal } from "../../kernel/payment/Refusal.ts"
import { type Unsigned, unsignedEntry, unsignedEnvelope, type UnsignedOrder } from "../../kernel/payment/Unsigned.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Signer } from "../../kernel/signer/Signer.ts"
import { contractAddressOf } from "../../kernel/stellar/Address.ts"
import { type Invocation, invocationOf } from "../../kernel/stellar/AuthEntry.ts"
import type { InvokeArgs } from "../../kernel/stellar/ContractCall.ts"
import type { Value } from "../../kernel/stellar/Value.ts"
import { batchFunctions, depositArgs, depositTransferArgs } from "./batchCalls.ts"
import { type BatchContract, type ChannelConfig, channelIdOf, decodeAmount, decodeChannelConfig } from "./batchCodec.ts"
import { callAt, type DepositPayload, type Voucher } from "./BatchWire.ts"
import { ChannelStates } from "./ChannelStates.ts"
import { depositMinError } from "./depositTerms.ts"
import { acceptedRefusal, channelError, unsignedCallError } from "./checks.ts"
import { expectedCall } from "./ledgerCalls.ts"
import { type CheckError, refuse } from "./refusals.ts"
import { depositStateError } from "./stateChecks.ts"
import { priceOf } from "./verifyVoucher.ts"
import { makeVoucherPreimage, type Vouchers } from "./Vouchers.ts"

/** A channel's terms and the first voucher of a deposit, nothing signed. */
interface Asked {
  readonly config: ChannelConfig
  readonly voucher: Voucher
  readonly amount: bigint
}

const noSalt = "00".repeat(32)
const noSignature = "00".repeat(64)

const callOf = (contract: string, functionName: string, args: ReadonlyArray<Value>): InvokeArgs =>
  ({ contractAddress: contractAddressOf(contract), functionName, args: [...args] }) as unknown as InvokeArgs

/**
 * The deposit if the payer does not choose one: the highest of the announced minimum, the facilitator's minimum and the
 * price.
 */
const leastOf = (announced: unknown, price: bigint, depositMin: bigint): bigint =>
  [decodeAmount(announced) ?? 0n, depositMin].reduce((a, b) => (a > b ? a : b), price)

const askedFor = (
  at: BatchContract,
  { requirements: { amount, asset, extra, payTo } }: Payment,
  { choices, payer }: UnsignedOrder,
  depositMin: bigint
): Asked | { readonly error: NonNullable<CheckError> } => {
  const price = Option.getOrElse(amount, () => 0n)
  const { charged = "0", payerAuthorizer = payer, salt = noSalt } = choices
  if (!StrKey.isValidEd25519PublicKey(String(payerAuthorizer)))
    return { error: ["payload_type", "choices.payerAuthorizer: an ed25519 key as G… is required, for a wallet too"] }
  const { receiverAuthorizer, withdrawDelay } = extra
  const parties = { payer, payerAuthorizer, receiver: payTo, receiverAuthorizer }
  const config = decodeChannelConfig({ ...parties, token: asset, withdrawDelay, salt })
  if (config._tag === "Failure")
    return { error: ["payload_type", `the channel of these terms: ${config.failure.reason}`] }
  const before = decodeAmount(charged)
  if (before === undefined) return { error: ["payload_type", "choices.charged is not a decimal string of an amount"] }
  const deposit =
    choices["amount"] === undefined ? leastOf(extra["minDeposit"], price, depositMin) : decodeAmount(choices["amount"])
  if (deposit === undefined) return { error: ["payload_type", "choices.amount is not a decimal string of an amount"] }
  if (deposit === 0n) return { error: ["deposit_amount", "the deposit is not above zero"] }
  const small = depositMinError(deposit, extra["minDeposit"], depositMin)
  if (small !== undefined) return { error: small }
  const channelId = channelIdOf(at, config.success)
  const voucher = { channelId, maxClaimableAmount: before + price, signature: noSignature }
  return { config: config.success, voucher, amount: deposit }
}

/** The layout of a deposit into a channel. */
const unsignedDeposit = (at: BatchContract, { amount, config, voucher }: Asked, order: UnsignedOrder): Unsigned => {
  const { channelId, maxClaimableAmount } = voucher
  const invoked = callOf(at.address, batchFunctions.deposit, depositArgs(config.payer, config, amount))
  const below = callOf(config.token, "transfer", depositTransferArgs(config.payer, at.address, amount))
  const invocation = { ...invocationOf(invoked), subInvocations: [invocationOf(below)] } as unknown as Invocation
  const max = String(maxClaimableAmount)
  return {
    invoked,
    entry: unsignedEntry(order, invocation),
    chosen: { contract: at.address, channelId, amount: String(amount), maxClaimableAmount: max },
    payload: (transaction) => ({
      type: "deposit",
      channelConfig: config,
      voucher: { channelId, maxClaimableAmount: max, signature: "" },
      deposit: { amount: String(amount), authorization: { transaction } }
    }),
    beside: {
      voucher: { signer: config.payerAuthorizer, preimage: makeVoucherPreimage(at)(channelId, maxClaimableAmount) }
    }
  }
}

/** Lays out a deposit by a seller's terms, checked as verify checks one. */
export const layOutDeposit = Effect.fnUntraced(function* (
  {
    at,
    depositMin,
    vouchers
  }: {
    readonly at: BatchContract
    readonly vouchers: Vouchers
    readonly depositMin: bigint
  },
  payment: Payment,
  order: UnsignedOrder
) {
  const { payer } = order
  const refused = (error: NonNullable<CheckError>): Refusal => refuse(error[0], error[1], payer)
  const unaccepted = acceptedRefusal(payment, at.address, false)
  if (unaccepted !== undefined) return { ...unaccepted, payer: Option.some(payer) }
  const asked = askedFor(at, payment, order, depositMin)
  if ("error" in asked) return refused(asked.error)
  const { isOurs } = yield* Signer
  const { amount, config, voucher } = asked
  const most = (yield* Network).assets.get(config.token)?.paymentMax ?? 0n
  const laidOut = unsignedDeposit(at, asked, order)
  const sent = callAt({ transaction: unsignedEnvelope(laidOut.invoked, [laidOut.entry]) }, "deposit.authorization")
  const payload: DepositPayload = { _tag: "Deposit", config, voucher, amount, sent }
  const subject = {
    at,
    sent,
    expected: expectedCall(payload, at.address)!,
    signer: payer,
    maxTimeoutSeconds: payment.accepted.maxTimeoutSeconds,
    time: yield* (yield* LedgerClock).now,
    expiryToleranceLedgers: (yield* Limits).expiryToleranceLedgers,
    isOurs,
    crypto: yield* Crypto
  }
  const error: CheckError =
    channelError(payment, config, voucher.channelId, vouchers, isOurs) ??
    (amount > most ? ["deposit_amount", "the deposit is above this asset's largest payment"] : undefined) ??
    unsignedCallError(subject)
  if (error !== undefined) return refused(error)
  const [known] = yield* (yield* ChannelStates).fresh([voucher.channelId])
  const balance = (known?.state?.balance ?? 0n) + amount
  const stateError = depositStateError(payload, known?.state, balance, priceOf(payment))
  return stateError === undefined ? laidOut : refused(stateError)
})
