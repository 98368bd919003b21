// The store's authorizer keys for receivers. Each seller has one key, derived from one secret, so all replicas derive
// the same key and store none. Such a key can only sign claims to the receiver, up to the amount that payers signed,
// and refunds to the payer. It cannot move money anywhere else. Without the secret or the scheme's contract, the store
// signs nothing.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { Hex } from "effect/encoding"
import { Network, passphrases } from "../../kernel/config/Network.ts"
import { verifyEd25519 } from "../../kernel/ledger/Ed25519.ts"
import { Schemes } from "../../kernel/payment/Scheme.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import {
  authorizerKeyOf,
  type BatchContract,
  bytesOfHex,
  type ChannelConfig,
  channelIdOf,
  claimDigest,
  claimedTotals,
  type DelegateSign,
  networkIdOf,
  refundDigest,
  voucherDigest
} from "../x402-batch/contract.ts"
import { batchScheme } from "./claimPayment.ts"
import { Config } from "./Config.ts"

/** An entry of `claims`, as on the wire. */
export interface WireClaim {
  readonly voucher: { readonly channel: ChannelConfig; readonly maxClaimableAmount: string }
  readonly signature: string
  readonly totalClaimed: string
}

export interface SentVoucher {
  readonly channelId: string
  readonly maxClaimableAmount: string
  readonly signature: string
}

export interface UnsignedRefund {
  readonly channelId: string
  readonly amount: bigint
  readonly nonce: bigint
  readonly claims: ReadonlyArray<WireClaim>
  /** The last close time at which the signatures are valid, Unix seconds. */
  readonly expiresAt: number
}

export interface RefundSignatures {
  readonly refundAuthorizerSignature: string
  readonly claimAuthorizerSignature?: string
}

const isSignedVoucher = (
  crypto: Crypto["Service"],
  at: BatchContract | undefined,
  config: ChannelConfig,
  { channelId, maxClaimableAmount, signature }: SentVoucher
): boolean => {
  if (at === undefined || channelIdOf(at, config) !== channelId) return false
  const digest = voucherDigest(at, channelId, BigInt(maxClaimableAmount))
  return verifyEd25519(crypto, authorizerKeyOf(config.payerAuthorizer), digest, bytesOfHex(signature))
}

export class Authorizer extends Context.Service<
  Authorizer,
  {
    /** The seller's authorizer, G…; undefined without a secret. */
    readonly of: (principal: string) => string | undefined
    /** True if the store can sign the seller's claims: it has the secret, and the scheme has its contract. */
    readonly signs: (principal: string) => boolean
    /** The signatures of a refund and of the claims in it; undefined when they cannot be given. */
    readonly refund: (principal: string, refund: UnsignedRefund) => RefundSignatures | undefined
    /** Whether a voucher is of this channel and signed by its payer's authorizer, as the ledger decides. */
    readonly isVoucher: (config: ChannelConfig, voucher: SentVoucher) => boolean
    /** The signature of a digest, hex, where `authorizer` is the seller's own; undefined for any other. */
    readonly asDelegate: DelegateSign
  }
>()("tollkeeper/batch-store/Authorizer") {
  static readonly layer = Layer.effect(
    Authorizer,
    Effect.gen(function* () {
      const { allowKeyless, authorizerSecret } = yield* Config
      const crypto = yield* Crypto
      const network = yield* Network
      const schemes = yield* Schemes
      const networkId = networkIdOf(passphrases[network.id])

      const seedOf = (principal: string) =>
        Option.getOrUndefined(
          Option.map(authorizerSecret, (secret) => {
            const encoder = new TextEncoder()
            const name = `tollkeeper/batch-store/authorizer/${principal}`
            return Redacted.make(crypto.hmacSha256(encoder.encode(Redacted.value(secret)), encoder.encode(name)))
          })
        )

      /** The contract that the scheme announces. */
      const contract = (): BatchContract | undefined => {
        const scheme = Option.getOrUndefined(schemes.find(batchScheme))
        const extra = scheme === undefined ? undefined : Option.getOrUndefined(scheme.supportedExtra(network.id))
        const address = extra?.["batchContract"]
        return typeof address === "string" ? { networkId, address } : undefined
      }

      const sign = (principal: string, digestAt: (at: BatchContract) => Uint8Array): string | undefined => {
        const [seed, at] = [seedOf(principal), contract()]
        if (seed === undefined || at === undefined) return undefined
        return Hex.encode(crypto.ed25519Sign(Redacted.value(seed), digestAt(at)))
      }

      const signClaims = (principal: string, claims: ReadonlyArray<WireClaim>, expiresAt: number) =>
        sign(principal, (at) =>
          claimDigest(
            at,
            claimedTotals(
              at,
              claims.map(({ signature, totalClaimed, voucher }) => ({
                config: voucher.channel,
                maxClaimableAmount: BigInt(voucher.maxClaimableAmount),
                signature,
                totalClaimed: BigInt(totalClaimed)
              }))
            ),
            expiresAt
          )
        )

      const of = (principal: string): string | undefined => {
        const seed = seedOf(principal)
        return seed && StrKey.encodeEd25519PublicKey(crypto.ed25519PublicKey(Redacted.value(seed)))
      }

      return Authorizer.of({
        of,
        asDelegate: (principal, authorizer, digest) =>
          (allowKeyless || principal.startsWith("key:")) && of(principal) === authorizer
            ? sign(principal, () => digest)
            : undefined,
        isVoucher: (config, voucher) => isSignedVoucher(crypto, contract(), config, voucher),
        signs: (principal) => of(principal) !== undefined && contract() !== undefined,
        refund: (principal, { amount, channelId, claims, expiresAt, nonce }) => {
          const refundAuthorizerSignature = sign(principal, (at) =>
            refundDigest(at, channelId, amount, nonce, expiresAt)
          )
          if (refundAuthorizerSignature === undefined) return undefined
          const claimed = claims.length === 0 ? undefined : signClaims(principal, claims, expiresAt)
          return { refundAuthorizerSignature, ...(claimed === undefined ? {} : { claimAuthorizerSignature: claimed }) }
        }
      })
    })
  )
}
