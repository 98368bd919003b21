// The rules of a payload that the ledger settles, without the ledger: the channels' terms, the vouchers' signatures and
// the signature of the receiver's authorizer. The error names the first invalid claim by its position. Pure.
import { verifyEd25519 } from "../../kernel/ledger/Ed25519.ts"
import type { Payment } from "../../kernel/payment/Payment.ts"
import type { Crypto } from "../../kernel/platform/Crypto.ts"
import {
  authorizerKeyOf,
  type BatchContract,
  bytesOfHex,
  type ChannelConfig,
  channelIdOf,
  claimDigest,
  claimedTotals,
  type ClaimEntry,
  refundDigest
} from "./batchCodec.ts"
import type { ClaimPayload, LedgerPayload } from "./BatchWire.ts"
import { channelError, ownTermsError, voucherError } from "./checks.ts"
import type { CheckError } from "./refusals.ts"
import type { Vouchers } from "./Vouchers.ts"

/** Whether the receiver's authorizer signed these 32 bytes. */
const isAuthorized = (crypto: Crypto["Service"], account: string, digest: Uint8Array, signature: string): boolean =>
  verifyEd25519(crypto, authorizerKeyOf(account), digest, bytesOfHex(signature))

export interface Offline {
  readonly payment: Payment
  readonly context: { readonly at: BatchContract; readonly vouchers: Vouchers }
  readonly isOurs: (address: string) => boolean
  readonly crypto: Crypto["Service"]
}

const notConfigured: CheckError = [
  "authorizer_not_configured",
  "the receiver's authorizer has not signed, and this facilitator signs for none"
]

/** The first problem of one claim in a list, as a sentence that names the claim. */
const claimError = (claim: ClaimEntry, index: number, { context, isOurs, payment }: Offline): CheckError => {
  const { at, vouchers } = context
  const { config, maxClaimableAmount, signature, totalClaimed } = claim
  const { asset, payTo } = payment.requirements
  const named = (error: CheckError): CheckError => error && [error[0], `claims[${index}]: ${error[1]}`]
  if (config.receiver !== payTo) return named(["receiver_mismatch", "the channel's receiver is not payTo"])
  if (config.token !== asset) return named(["token_mismatch", "the channel's token is not the asset"])
  if (totalClaimed > maxClaimableAmount)
    return named(["charge_exceeds_signed_cumulative", "totalClaimed is above the voucher's maximum"])
  const channelId = channelIdOf(at, config)
  return named(
    ownTermsError(config, channelId, vouchers, isOurs) ??
      voucherError(config, { channelId, maxClaimableAmount, signature }, vouchers)
  )
}

/** The first problem of claims that share their authorizer's signature. */
const claimsError = (
  { claims, expiresAt }: Pick<ClaimPayload, "claims" | "expiresAt">,
  signature: string | undefined,
  offline: Offline
): CheckError => {
  const authorizer = claims[0]?.config.receiverAuthorizer
  if (authorizer === undefined) return undefined
  if (claims.some(({ config }) => config.receiverAuthorizer !== authorizer))
    return ["authorizer_address_mismatch", "the claims are of channels with different receiverAuthorizers"]
  for (const [index, claim] of claims.entries()) {
    const error = claimError(claim, index, offline)
    if (error !== undefined) return error
  }
  if (signature === undefined || expiresAt === undefined) return notConfigured
  const { at } = offline.context
  return isAuthorized(offline.crypto, authorizer, claimDigest(at, claimedTotals(at, claims), expiresAt), signature)
    ? undefined
    : ["authorizer_address_mismatch", "claimAuthorizerSignature is not the receiverAuthorizer's over these claims"]
}

const channelOf = (
  { channelId }: { readonly channelId: string },
  config: ChannelConfig,
  { context, isOurs, payment }: Offline
): CheckError => channelError(payment, config, channelId, context.vouchers, isOurs)

/** The first problem of a payload by itself, without the authorization of a sent call. */
export const payloadError = (payload: LedgerPayload, offline: Offline): CheckError => {
  const { context, crypto, isOurs, payment } = offline
  const { asset, payTo } = payment.requirements
  switch (payload._tag) {
    case "Deposit":
      if (payload.amount === 0n) return ["deposit_amount", "the deposit is not above zero"]
      return (
        channelOf(payload.voucher, payload.config, offline) ??
        voucherError(payload.config, payload.voucher, context.vouchers)
      )
    case "Claim":
      return claimsError(payload, payload.signature, offline)
    case "Settle":
      if (payload.receiver !== payTo) return ["receiver_mismatch", "the receiver is not payTo"]
      if (isOurs(payTo)) return ["facilitator_is_party", "an account of the facilitator is the receiver"]
      return payload.token === asset ? undefined : ["token_mismatch", "the token is not the asset"]
    case "Refund": {
      const { amount, claims, config, expiresAt, nonce, signature, voucher } = payload
      if (amount === 0n) return ["refund_amount_invalid", "the amount to refund is not above zero"]
      const others = claims.some((claim) => channelIdOf(context.at, claim.config) !== voucher.channelId)
      if (others) return ["refund_payload", "a claim of the refund is of another channel"]
      const error =
        channelOf(voucher, config, offline) ??
        voucherError(config, voucher, context.vouchers) ??
        claimsError(payload, payload.claimSignature, offline)
      if (error !== undefined) return error
      if (signature === undefined || expiresAt === undefined) return notConfigured
      const digest = refundDigest(context.at, voucher.channelId, amount, nonce, expiresAt)
      return isAuthorized(crypto, config.receiverAuthorizer, digest, signature)
        ? undefined
        : ["authorizer_address_mismatch", "refundAuthorizerSignature is not the receiverAuthorizer's over this refund"]
    }
    case "Withdraw":
      return payload.config.token === asset ? undefined : ["token_mismatch", "the channel's token is not the asset"]
  }
}
