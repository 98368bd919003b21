// The payloads of `batch-settlement` on the wire, decoded once: a buyer's (deposit, voucher, refund), a seller's
// (claim, settle, a refund with amount, nonce and claims), and a payer's withdrawal. A failure names the wrong member
// and its required form, never the received value.
import { Result } from "effect"
import { callOf, type ContractCall } from "../../kernel/stellar/ContractCall.ts"
import { plainIn, readEnvelope, sourceOf } from "../../kernel/stellar/Envelope.ts"
import { type ChannelConfig, type ClaimEntry, decodeAmount, decodeChannelConfig, isHex } from "./batchCodec.ts"
import type { BatchWord } from "./refusals.ts"

/** A voucher on the wire: at most `maxClaimableAmount` of the channel, cumulative. */
export interface Voucher {
  readonly channelId: string
  readonly maxClaimableAmount: bigint
  /** 64 bytes, hex. */
  readonly signature: string
}

/** A call of the contract in an unsigned envelope, authorized by entries. */
export interface SentCall {
  readonly source: string
  /** Absent when the transaction is not exactly one contract call. */
  readonly call: ContractCall | undefined
}

export interface VoucherPayload {
  readonly _tag: "Voucher"
  /** `refund`: the buyer asks for the rest of the balance, with a voucher of the charged amount. */
  readonly type: "voucher" | "refund"
  readonly config: ChannelConfig
  readonly voucher: Voucher
}

export interface DepositPayload {
  readonly _tag: "Deposit"
  readonly config: ChannelConfig
  readonly voucher: Voucher
  readonly amount: bigint
  readonly sent: SentCall
}

export interface ClaimPayload {
  readonly _tag: "Claim"
  readonly claims: ReadonlyArray<ClaimEntry>
  /** The last close time at which the signature is valid, Unix seconds; absent if this facilitator has to sign. */
  readonly expiresAt: number | undefined
  readonly signature: string | undefined
}

interface SettlePayload {
  readonly _tag: "Settle"
  readonly receiver: string
  readonly token: string
}

interface RefundPayload {
  readonly _tag: "Refund"
  readonly config: ChannelConfig
  readonly voucher: Voucher
  readonly amount: bigint
  readonly nonce: bigint
  readonly claims: ReadonlyArray<ClaimEntry>
  /** As in a claim, for both signatures. */
  readonly expiresAt: number | undefined
  readonly signature: string | undefined
  readonly claimSignature: string | undefined
}

interface WithdrawPayload {
  readonly _tag: "Withdraw"
  readonly functionName: "withdraw_start" | "withdraw_end"
  readonly config: ChannelConfig
  readonly sent: SentCall
}

export type LedgerPayload = DepositPayload | ClaimPayload | SettlePayload | RefundPayload | WithdrawPayload
export type BatchPayload = VoucherPayload | LedgerPayload

/** Maximum claims in one transaction: it may write 200 entries, one for each claim and one for the receiver. */
export const claimsMax = 199

interface WireError {
  readonly word: BatchWord
  readonly message: string
}

type Fields = Readonly<Record<string, unknown>>
type Decoded<A> = Result.Result<A, WireError>

/** Thrown inside this file only. */
class Wrong {
  readonly error: WireError
  constructor(message: string, word: BatchWord = "payload_type") {
    this.error = { word, message }
  }
}

const fieldsAt = (value: unknown, path: string): Fields => {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields
  throw new Wrong(`payload.${path} is not an object`)
}

const amountAt = (value: unknown, path: string): bigint => {
  const amount = decodeAmount(value)
  if (amount !== undefined) return amount
  throw new Wrong(`payload.${path} is not a decimal string of an amount`)
}

const nonceMax = (1n << 64n) - 1n

const nonceAt = (value: unknown, path: string): bigint => {
  const nonce = decodeAmount(value)
  if (nonce !== undefined && nonce <= nonceMax) return nonce
  throw new Wrong(`payload.${path} is not a decimal string of a nonce`, "refund_payload")
}

const signatureAt = (value: unknown, path: string): string => {
  if (isHex(value, 64)) return value
  throw new Wrong(`payload.${path} is not 64 bytes in lower-case hex`)
}

const optionalSignatureAt = (value: unknown, path: string): string | undefined =>
  value === undefined || value === null ? undefined : signatureAt(value, path)

/** Only a payload that was signed elsewhere must carry its expiry. */
const expiresAtOf = ({ expiresAt }: Fields, signature: string | undefined): number | undefined => {
  if (expiresAt === undefined && signature === undefined) return undefined
  if (Number.isSafeInteger(expiresAt) && (expiresAt as number) >= 0) return expiresAt as number
  throw new Wrong("payload.expiresAt is not a whole number of Unix seconds, the last at which the signature counts")
}

const configAt = (value: unknown, path: string): ChannelConfig => {
  const read = decodeChannelConfig(value)
  if (Result.isSuccess(read)) return read.success
  throw new Wrong(`payload.${path}: ${read.failure.reason}`)
}

/**
 * Returns a known configuration by its text on the wire, so that it is not decoded again. The caller may cache them.
 */
type ConfigAt = (value: unknown, channelId: unknown) => ChannelConfig | undefined

const voucherAt = (value: unknown): Voucher => {
  const { channelId, maxClaimableAmount, signature } = fieldsAt(value, "voucher")
  if (!isHex(channelId, 32)) throw new Wrong("payload.voucher.channelId is not 32 bytes in hex", "channel_id_invalid")
  return {
    channelId,
    maxClaimableAmount: amountAt(maxClaimableAmount, "voucher.maxClaimableAmount"),
    signature: signatureAt(signature, "voucher.signature")
  }
}

/** Throws for another form. A caller outside this file has built the value itself. */
export const callAt = (value: unknown, path: string): SentCall => {
  const { transaction } = fieldsAt(value, path)
  if (typeof transaction !== "string") throw new Wrong(`payload.${path}.transaction is not a string`)
  const read = readEnvelope(transaction)
  if (Result.isFailure(read)) throw new Wrong(`payload.${path}.transaction is ${read.failure.reason}`)
  const tx = plainIn(read.success)
  if (tx === undefined) throw new Wrong(`payload.${path}.transaction is not a plain v1 envelope`)
  return { source: sourceOf(tx), call: callOf(tx) }
}

const claimAt = (value: unknown, index: number): ClaimEntry => {
  const path = `claims[${index}]`
  const { signature, totalClaimed, voucher } = fieldsAt(value, path)
  const { channel, maxClaimableAmount } = fieldsAt(voucher, `${path}.voucher`)
  return {
    config: configAt(channel, `${path}.voucher.channel`),
    maxClaimableAmount: amountAt(maxClaimableAmount, `${path}.voucher.maxClaimableAmount`),
    signature: signatureAt(signature, `${path}.signature`),
    totalClaimed: amountAt(totalClaimed, `${path}.totalClaimed`)
  }
}

const claimsAt = (value: unknown, least: number): ReadonlyArray<ClaimEntry> => {
  if (!Array.isArray(value) || value.length < least)
    throw new Wrong(`payload.claims is not a list of at least ${least} claims`)
  if (value.length > claimsMax)
    throw new Wrong(`payload.claims has ${value.length} claims, the most are ${claimsMax}`, "too_many_claims")
  return value.map(claimAt)
}

const isEnriched = ({ claims, refundNonce }: Fields): boolean => claims !== undefined && refundNonce !== undefined

const refundAt = (payload: Fields, config: ChannelConfig): RefundPayload => {
  const signature = optionalSignatureAt(payload["refundAuthorizerSignature"], "refundAuthorizerSignature")
  const claimSignature = optionalSignatureAt(payload["claimAuthorizerSignature"], "claimAuthorizerSignature")
  return {
    _tag: "Refund",
    config,
    voucher: voucherAt(payload["voucher"]),
    amount: amountAt(payload["amount"], "amount"),
    nonce: nonceAt(payload["refundNonce"], "refundNonce"),
    claims: claimsAt(payload["claims"], 0),
    expiresAt: expiresAtOf(payload, signature ?? claimSignature),
    signature,
    claimSignature
  }
}

const textAt = (value: unknown, path: string): string => {
  if (typeof value === "string" && value.length <= 64) return value
  throw new Wrong(`payload.${path} is not an address`)
}

const payloadAt = (payload: Fields, known: ConfigAt): BatchPayload => {
  const { type } = payload
  const config = () => {
    const { channelConfig, voucher } = payload
    const id = typeof voucher === "object" && voucher !== null ? (voucher as Fields)["channelId"] : undefined
    return known(channelConfig, id) ?? configAt(channelConfig, "channelConfig")
  }
  switch (type) {
    case "voucher":
      return { _tag: "Voucher", type, config: config(), voucher: voucherAt(payload["voucher"]) }
    case "refund":
      return isEnriched(payload)
        ? refundAt(payload, config())
        : { _tag: "Voucher", type, config: config(), voucher: voucherAt(payload["voucher"]) }
    case "deposit": {
      const deposit = fieldsAt(payload["deposit"], "deposit")
      return {
        _tag: "Deposit",
        config: config(),
        voucher: voucherAt(payload["voucher"]),
        amount: amountAt(deposit["amount"], "deposit.amount"),
        sent: callAt(deposit["authorization"], "deposit.authorization")
      }
    }
    case "claim": {
      const signature = optionalSignatureAt(payload["claimAuthorizerSignature"], "claimAuthorizerSignature")
      return {
        _tag: "Claim",
        claims: claimsAt(payload["claims"], 1),
        expiresAt: expiresAtOf(payload, signature),
        signature
      }
    }
    case "settle":
      return {
        _tag: "Settle",
        receiver: textAt(payload["receiver"], "receiver"),
        token: textAt(payload["token"], "token")
      }
    case "withdrawStart":
    case "withdrawEnd":
      return {
        _tag: "Withdraw",
        functionName: type === "withdrawStart" ? "withdraw_start" : "withdraw_end",
        config: config(),
        sent: callAt(payload["authorization"], "authorization")
      }
    default:
      throw new Wrong("payload.type is not one of deposit, voucher, refund, claim, settle, withdrawStart, withdrawEnd")
  }
}

/** Decodes a payload. `known` may return a configuration that was decoded before. */
export const decodePayload = (payload: Fields, known: ConfigAt = () => undefined): Decoded<BatchPayload> => {
  try {
    return Result.succeed(payloadAt(payload, known))
  } catch (error) {
    if (!(error instanceof Wrong)) throw error
    return Result.fail(error.error)
  }
}
