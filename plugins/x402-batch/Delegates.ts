// Authorizers of receivers with keys at this facilitator. A claim or a refund of such a channel may arrive without its
// authorizer's signature, from the caller that owns the key. We sign it here before the checks. Another plugin holds
// the keys; without it nothing is signed. Such a key moves money to the receiver, at most the amount that the payer
// signed, and back to the payer, never elsewhere. The same plugin keeps channels for sellers: only their record shows
// that a voucher was charged once.
import { Context, Effect, Layer } from "effect"
import type { LedgerUnavailable } from "../../kernel/ledger/LedgerRpc.ts"
import { type BatchContract, claimDigest, claimedTotals, refundDigest } from "./batchCodec.ts"
import type { LedgerPayload, Voucher } from "./BatchWire.ts"

/** The hex signature, if `authorizer` (G…) is a key of the caller that is held here; otherwise undefined. */
export type DelegateSign = (principal: string, authorizer: string, digest: Uint8Array) => string | undefined

/** The key that is held here for a caller's channels, G…; undefined for a caller without a key. */
type DelegateOf = (principal: string) => string | undefined

/** True if the caller's record of the channel, stored here, has charged this voucher. */
export type HasCharged = (principal: string, voucher: Voucher) => Effect.Effect<boolean, LedgerUnavailable>

export class Delegates extends Context.Service<
  Delegates,
  {
    /** The caller's key, as a kind's `extra` announces it with our signing of refunds; empty for one without a key. */
    readonly heldFor: (principal: string | undefined) => {
      readonly receiverAuthorizer?: string
      readonly delegatedRefund?: true
    }
    readonly sign: DelegateSign
    readonly hasCharged: HasCharged
    /** Sets the holder of the keys, when its plugin starts. */
    readonly signBy: (of: DelegateOf, sign: DelegateSign) => void
    /** Sets the record keeper, when its plugin starts. */
    readonly keepBy: (hasCharged: HasCharged) => void
  }
>()("tollkeeper/x402-batch/Delegates") {
  static readonly layer = Layer.sync(Delegates, () => {
    let holding: DelegateOf = () => undefined
    let signing: DelegateSign = () => undefined
    let keeping: HasCharged = () => Effect.succeed(false)
    return Delegates.of({
      heldFor: (principal) => {
        const receiverAuthorizer = principal === undefined ? undefined : holding(principal)
        return receiverAuthorizer === undefined ? {} : { receiverAuthorizer, delegatedRefund: true }
      },
      sign: (...asked) => signing(...asked),
      hasCharged: (...asked) => keeping(...asked),
      signBy: (of, sign) => void ([holding, signing] = [of, sign]),
      keepBy: (hasCharged) => void (keeping = hasCharged)
    })
  })
}

/** Validity of a signature made here, in seconds after the newest ledger's close, if the caller sets no expiry. */
export const signatureSeconds = 300

/** Adds the missing signatures that the caller's key at this facilitator can make. */
export const withDelegate = (
  payload: LedgerPayload,
  at: BatchContract,
  principal: string,
  sign: DelegateSign,
  closedAtSeconds: number
): LedgerPayload => {
  if (payload._tag !== "Claim" && payload._tag !== "Refund") return payload
  const { claims, expiresAt = closedAtSeconds + signatureSeconds } = payload
  const digestOfClaims = () => claimDigest(at, claimedTotals(at, claims), expiresAt)
  if (payload._tag === "Claim") {
    const authorizer = claims[0]?.config.receiverAuthorizer ?? ""
    return { ...payload, expiresAt, signature: payload.signature ?? sign(principal, authorizer, digestOfClaims()) }
  }
  const { amount, config, nonce, voucher } = payload
  const signed = (digest: Uint8Array) => sign(principal, config.receiverAuthorizer, digest)
  const signature = payload.signature ?? signed(refundDigest(at, voucher.channelId, amount, nonce, expiresAt))
  const claimSignature = payload.claimSignature ?? (claims.length === 0 ? undefined : signed(digestOfClaims()))
  return { ...payload, expiresAt, signature, claimSignature }
}
