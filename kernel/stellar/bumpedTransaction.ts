// The envelope of a settlement as it is sent: a transaction, its account's signature, and the sponsor's fee bump around
// both. The transaction is encoded once and its bytes are reused in all that is hashed, signed and sent, where the
// values of `Envelope.ts` would be encoded anew for each; both ways give the same bytes. Nothing here signs.
import { xdr } from "@stellar/stellar-sdk/base"
import { Base64 } from "effect/encoding"
import type { Crypto } from "../platform/Crypto.ts"
import { accountOf, encodeMuxed } from "./Address.ts"
import type { AccountSignature, Transaction } from "./Envelope.ts"
import { envelopeKind, extensionKind } from "./kinds.ts"
import { int64Bytes, joinedBytes, uint32Bytes } from "./readXdr.ts"

/** XDR of what is to be signed, and the 32 bytes that its signature signs. */
export interface Written {
  readonly bytes: Uint8Array
  readonly hash: Uint8Array
}

const signatureBytes = 64

const written = (crypto: Crypto["Service"], networkId: Uint8Array, kind: number, bytes: Uint8Array): Written => ({
  bytes,
  hash: crypto.sha256(joinedBytes(networkId, uint32Bytes(kind), bytes))
})

/** One signature, with the hint at its account. */
const signedBy = ({ publicKey, signature }: AccountSignature): Uint8Array => {
  if (signature.length !== signatureBytes) throw new Error("a signature of an account has 64 bytes")
  return joinedBytes(uint32Bytes(1), publicKey.subarray(28), uint32Bytes(signatureBytes), signature)
}

export const writeTransaction = (crypto: Crypto["Service"], networkId: Uint8Array, transaction: Transaction): Written =>
  written(crypto, networkId, envelopeKind.v1, xdr.Transaction.schema.encode(transaction))

/** The fee bump around a transaction and its one signature; `feeStroops` is all that may be charged. */
export const writeFeeBump = (
  crypto: Crypto["Service"],
  networkId: Uint8Array,
  inner: { readonly transaction: Written; readonly signature: AccountSignature },
  sponsor: string,
  feeStroops: bigint
): Written =>
  written(
    crypto,
    networkId,
    envelopeKind.feeBump,
    joinedBytes(
      encodeMuxed(accountOf(sponsor)),
      int64Bytes(feeStroops),
      uint32Bytes(envelopeKind.v1),
      inner.transaction.bytes,
      signedBy(inner.signature),
      uint32Bytes(extensionKind.none)
    )
  )

/** Base64 XDR of a signed fee bump, ready to send. */
export const signedFeeBump = (bump: Written, signature: AccountSignature): string =>
  Base64.encode(joinedBytes(uint32Bytes(envelopeKind.feeBump), bump.bytes, signedBy(signature)))
