// The authorizer keys for receivers. They derive from one secret, so all replicas have the same keys and store none.
// Each seller has two. The key for its channels in this store also derives from the store's name in the database:
// another store has another key, and a channel identifies its store by that key. The key of a seller that keeps its own
// channels derives only from the secret, so it survives the loss of the database. Such a key can only sign claims to
// the receiver, up to the amount that payers signed, and refunds to the payer. It cannot move money anywhere else.
// Without the secret or the scheme's contract, nothing is signed.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient } from "effect/sql"
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
  decodeAmount,
  voucherDigest
} from "../x402-batch/contract.ts"
import { batchScheme } from "./claimPayment.ts"
import { Config } from "./Config.ts"

/** An entry of `claims`, as on the wire. */
interface WireClaim {
  readonly voucher: { readonly channel: ChannelConfig; readonly maxClaimableAmount: string }
  readonly signature: string
  readonly totalClaimed: string
}

interface SentVoucher {
  readonly channelId: string
  readonly maxClaimableAmount: string
  readonly signature: string
}

interface UnsignedRefund {
  readonly channelId: string
  readonly amount: bigint
  readonly nonce: bigint
  readonly claims: ReadonlyArray<WireClaim>
  /** The last close time at which the signatures are valid, Unix seconds. */
  readonly expiresAt: number
}

interface RefundSignatures {
  readonly refundAuthorizerSignature: string
  readonly claimAuthorizerSignature?: string
}

const isSignedVoucher = (
  crypto: Crypto["Service"],
  at: BatchContract | undefined,
  config: ChannelConfig,
  { channelId, maxClaimableAmount, signature }: SentVoucher
): boolean => {
  const max = decodeAmount(maxClaimableAmount)
  if (at === undefined || max === undefined || channelIdOf(at, config) !== channelId) return false
  const digest = voucherDigest(at, channelId, max)
  return verifyEd25519(crypto, authorizerKeyOf(config.payerAuthorizer), digest, bytesOfHex(signature))
}

/** A seller's two keys; undefined without a secret. */
const makePairs = Effect.gen(function* () {
  const { authorizerSecret } = yield* Config
  const crypto = yield* Crypto
  const sql = yield* SqlClient.SqlClient
  const read = sql<{ readonly id: string }>`select id::text as id from batch_store_identity`
  // Not by the migration: a database that was copied before its first start would share its name with others.
  if ((yield* read).length === 0) yield* sql`insert into batch_store_identity default values on conflict do nothing`
  const [store] = yield* read

  const pairOf = (name: string) =>
    Option.getOrUndefined(
      Option.map(authorizerSecret, (secret) => {
        const encoder = new TextEncoder()
        const seed = crypto.hmacSha256(encoder.encode(Redacted.value(secret)), encoder.encode(name))
        return {
          address: StrKey.encodeEd25519PublicKey(crypto.ed25519PublicKey(seed)),
          seed: Redacted.make(seed)
        }
      })
    )
  const storePair = (principal: string) => pairOf(`tollkeeper/batch-store/store/${store!.id}/${principal}`)
  const delegatePair = (principal: string) => pairOf(`tollkeeper/batch-store/authorizer/${principal}`)
  return { storePair, delegatePair }
})

export class Authorizer extends Context.Service<
  Authorizer,
  {
    /** The authorizer of the seller's channels in this store, G…; undefined without a secret. */
    readonly of: (principal: string) => string | undefined
    /** The authorizer of channels that the caller keeps itself, G…; undefined for a caller without one. */
    readonly delegateOf: (principal: string) => string | undefined
    /** True if the store can sign the seller's claims: it has the secret, and the scheme has its contract. */
    readonly signs: (principal: string) => boolean
    /** The signature of a claim of one channel; undefined if none of the caller's keys is the channel's authorizer. */
    readonly claim: (principal: string, claim: WireClaim, expiresAt: number) => string | undefined
    /** The signatures of a refund and of the claims in it; undefined when they cannot be given. */
    readonly refund: (principal: string, refund: UnsignedRefund) => RefundSignatures | undefined
    /** Whether a voucher is of this channel and signed by its payer's authorizer, as the ledger decides. */
    readonly isVoucher: (config: ChannelConfig, voucher: SentVoucher) => boolean
    /** The hex signature of a digest, if `authorizer` is one of the caller's keys; otherwise undefined. */
    readonly asDelegate: DelegateSign
  }
>()("tollkeeper/batch-store/Authorizer") {
  static readonly layer = Layer.effect(
    Authorizer,
    Effect.gen(function* () {
      const { allowKeyless } = yield* Config
      const crypto = yield* Crypto
      const network = yield* Network
      const schemes = yield* Schemes
      const networkId = networkIdOf(passphrases[network.id])

      const { delegatePair, storePair } = yield* makePairs

      /** The contract that the scheme announces. */
      const contract = (): BatchContract | undefined => {
        const scheme = Option.getOrUndefined(schemes.find(batchScheme))
        const extra = scheme === undefined ? undefined : Option.getOrUndefined(scheme.supportedExtra(network.id))
        const address = extra?.["batchContract"]
        return typeof address === "string" ? { networkId, address } : undefined
      }

      const sign = (pair: ReturnType<typeof storePair>, digestAt: (at: BatchContract) => Uint8Array) => {
        const at = contract()
        if (pair === undefined || at === undefined) return undefined
        return Hex.encode(crypto.ed25519Sign(Redacted.value(pair.seed), digestAt(at)))
      }

      /** The caller's pair with this address. */
      const pairOf = (principal: string, authorizer: string | undefined) =>
        [storePair, delegatePair].map((one) => one(principal)).find((one) => one?.address === authorizer)

      const signClaims = (principal: string, claims: ReadonlyArray<WireClaim>, expiresAt: number) =>
        sign(pairOf(principal, claims[0]?.voucher.channel.receiverAuthorizer), (at) =>
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

      const of = (principal: string) => storePair(principal)?.address
      const isCaller = (principal: string) => allowKeyless || principal.startsWith("key:")

      return Authorizer.of({
        of,
        delegateOf: (principal) => (isCaller(principal) ? delegatePair(principal)?.address : undefined),
        asDelegate: (principal, authorizer, digest) => {
          if (!isCaller(principal)) return undefined
          return sign(pairOf(principal, authorizer), () => digest)
        },
        isVoucher: (config, voucher) => isSignedVoucher(crypto, contract(), config, voucher),
        signs: (principal) => of(principal) !== undefined && contract() !== undefined,
        claim: (principal, claim, expiresAt) => signClaims(principal, [claim], expiresAt),
        refund: (principal, { amount, channelId, claims, expiresAt, nonce }) => {
          const refundAuthorizerSignature = sign(storePair(principal), (at) =>
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
