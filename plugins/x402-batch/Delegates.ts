// Receivers' authorizers whose keys this facilitator holds: a claim or a refund of such a channel may come without its
// authorizer's signature, from the caller whose key it is, and is signed here before it is checked. Another plugin
// holds the keys; without one nothing is signed. Such a key moves money to the receiver, at most what the payer signed,
// and back to the payer, never elsewhere.
import { Context, Layer } from "effect"
import { type BatchContract, claimDigest, claimedTotals, refundDigest } from "./batchCodec.ts"
import type { LedgerPayload } from "./BatchWire.ts"

/** The signature, hex, where `authorizer` (G…) is the caller's key that is held here; else undefined. */
export type DelegateSign = (principal: string, authorizer: string, digest: Uint8Array) => string | undefined

export class Delegates extends Context.Service<
  Delegates,
  {
    readonly sign: DelegateSign
    /** Sets what signs, once its plugin is started. */
    readonly signBy: (sign: DelegateSign) => void
  }
>()("tollkeeper/x402-batch/Delegates") {
  static readonly layer = Layer.sync(Delegates, () => {
    let signing: DelegateSign = () => undefined
    return Delegates.of({ sign: (...asked) => signing(...asked), signBy: (sign) => void (signing = sign) })
  })
}

/** The payload with the signatures that are missing and that the caller's key at this facilitator gives. */
export const withDelegate = (
  payload: LedgerPayload,
  at: BatchContract,
  principal: string,
  sign: DelegateSign
): LedgerPayload => {
  if (payload._tag === "Claim") {
    const { claims } = payload
    const authorizer = claims[0]?.config.receiverAuthorizer ?? ""
    const signature = payload.signature ?? sign(principal, authorizer, claimDigest(at, claimedTotals(at, claims)))
    return { ...payload, signature }
  }
  if (payload._tag === "Refund") {
    const { amount, claims, config, nonce, voucher } = payload
    const signed = (digest: Uint8Array) => sign(principal, config.receiverAuthorizer, digest)
    const signature = payload.signature ?? signed(refundDigest(at, voucher.channelId, amount, nonce))
    const claimSignature =
      payload.claimSignature ?? (claims.length === 0 ? undefined : signed(claimDigest(at, claimedTotals(at, claims))))
    return { ...payload, signature, claimSignature }
  }
  return payload
}
