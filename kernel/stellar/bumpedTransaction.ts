// The envelope of a settlement in the form in which it is sent: a transaction, its account's signature, the preimage of
// its hash signer if it has one, and the sponsor's fee bump around these. The transaction is encoded once, and its
// bytes are reused for every hash, signature and message, where `Envelope.ts` would encode its values again each time.
// Both ways give the same bytes. Nothing here signs.
import { xdr } from "@stellar/stellar-sdk/base"
import { Base64 } from "effect/encoding"
import type { Crypto } from "../platform/Crypto.ts"
import { accountOf, encodeMuxed } from "./Address.ts"
import type { AccountSignature, Transaction } from "./Envelope.ts"
import { envelopeKind, extensionKind } from "./kinds.ts"
import { joinedBytes } from "./joinBytes.ts"
import { int64Bytes, uint32Bytes } from "./readXdr.ts"

/** XDR to be signed, and the 32 bytes that its signature signs. */
interface SigningInput {
  readonly bytes: Uint8Array
  readonly hash: Uint8Array
}

const signatureBytes = 64
const preimageBytes = 32

const written = (crypto: Crypto["Service"], networkId: Uint8Array, kind: number, bytes: Uint8Array): SigningInput => ({
  bytes,
  hash: crypto.sha256(joinedBytes(networkId, uint32Bytes(kind), bytes))
})

/** The preimage that a transaction's hash signer requires. */
export interface Preimage {
  readonly preimage: Uint8Array
  /** SHA-256 of the preimage: the signer. */
  readonly hash: Uint8Array
}

/** The signature of an account, and the preimage of a hash signer, each with its signer's hint. */
const signedBy = ({ publicKey, signature }: AccountSignature, given?: Preimage): Uint8Array => {
  if (signature.length !== signatureBytes) throw new Error("a signature of an account has 64 bytes")
  const own = [publicKey.subarray(28), uint32Bytes(signatureBytes), signature]
  if (given === undefined) return joinedBytes(uint32Bytes(1), ...own)
  if (given.preimage.length !== preimageBytes) throw new Error("a preimage has 32 bytes")
  return joinedBytes(uint32Bytes(2), ...own, given.hash.subarray(28), uint32Bytes(preimageBytes), given.preimage)
}

export const writeTransaction = (
  crypto: Crypto["Service"],
  networkId: Uint8Array,
  transaction: Transaction
): SigningInput => written(crypto, networkId, envelopeKind.v1, xdr.Transaction.schema.encode(transaction))

/** The fee bump around a transaction and its signatures; `feeStroops` is the maximum charge. */
export const writeFeeBump = (
  crypto: Crypto["Service"],
  networkId: Uint8Array,
  inner: { readonly transaction: SigningInput; readonly signature: AccountSignature; readonly preimage?: Preimage },
  sponsor: string,
  feeStroops: bigint
): SigningInput =>
  written(
    crypto,
    networkId,
    envelopeKind.feeBump,
    joinedBytes(
      encodeMuxed(accountOf(sponsor)),
      int64Bytes(feeStroops),
      uint32Bytes(envelopeKind.v1),
      inner.transaction.bytes,
      signedBy(inner.signature, inner.preimage),
      uint32Bytes(extensionKind.none)
    )
  )

/** Base64 XDR of a signed fee bump, ready to send. */
export const signedFeeBump = (bump: SigningInput, signature: AccountSignature): string =>
  Base64.encode(joinedBytes(uint32Bytes(envelopeKind.feeBump), bump.bytes, signedBy(signature)))
