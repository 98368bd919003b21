// A transaction envelope parsed once: the inner transaction, its signatures, hashes, fees and sources, in the terms
// that validation, the queue and the ledger share. A frame is immutable and cheap to keep. It does not validate the
// envelope, with one exception: an envelope with invalid fee fields has no frame (`undefined`), which is refused as
// malformed.
import { AccountType, EnvelopeType } from "../engine/xdr/types.ts"
import type { EngineCrypto } from "../engine/host/Random.ts"
import {
  codec,
  latin1,
  type PublicKey,
  publicKey,
  type SorobanTransactionData,
  type Transaction,
  type TransactionEnvelope
} from "../engine/xdr/Xdr.ts"
import { codecs, type DecoratedSignature, type MuxedAccount, type Operation, OperationType } from "./Wire.ts"

/** Above this a declared resource fee is malformed: 2^50 stroops. */
const RESOURCE_FEE_STROOPS_MAX = 1n << 50n

export interface Frame {
  readonly envelope: TransactionEnvelope
  /** The envelope's XDR. */
  readonly bytes: Uint8Array
  readonly isFeeBump: boolean
  /** The transaction itself: the inner one of a fee bump. */
  readonly tx: Transaction
  /** Signatures over `innerHash`. */
  readonly signatures: ReadonlyArray<DecoratedSignature>
  /** Signatures over `hash` by the fee source; empty unless a fee bump. */
  readonly feeBumpSignatures: ReadonlyArray<DecoratedSignature>
  /** The network's identifier of the envelope: the fee bump's hash, or the transaction's. */
  readonly hash: Uint8Array
  /** The hash of the transaction itself; equal to `hash` without a fee bump. */
  readonly innerHash: Uint8Array
  /** A string unique to the envelope with its signatures; the queue's notion of "the same". */
  readonly fullHash: string
  /** The same of the inner envelope; equal to `fullHash` without a fee bump. */
  readonly innerFullHash: string
  readonly source: PublicKey
  readonly feeSource: PublicKey
  /** Operations as the fee counts them: a fee bump is one more. */
  readonly feeOperations: number
  readonly isSoroban: boolean
  readonly soroban: SorobanTransactionData | undefined
  /** Everything the sender offers. */
  readonly fullFeeStroops: bigint
  /** The offer without the declared resource fee. */
  readonly inclusionFeeStroops: bigint
  /** The inner transaction's own offer, which may be negative under a fee bump. */
  readonly innerInclusionFeeStroops: bigint
  readonly resourceFeeStroops: bigint
  /** Size of the inner envelope's XDR, which size limits and fees are about. */
  readonly innerBytesLength: number
}

export const isSorobanOperation = (operation: Operation): boolean =>
  operation.body.type >= OperationType.invokeHostFunction

/** The account behind a plain or muxed address. */
export const accountOf = (account: MuxedAccount): PublicKey =>
  publicKey(account.type === AccountType.ed25519 ? account.ed25519 : account.med25519.ed25519)

export const operationSource = (frame: Frame, operation: Operation): MuxedAccount =>
  operation.sourceAccount ?? frame.tx.sourceAccount

export const transactionHash = (crypto: EngineCrypto, networkId: Uint8Array, tx: Transaction): Uint8Array =>
  crypto.sha256(codec.TransactionSignaturePayload.encode({ networkId, taggedTransaction: { type: 2, tx } }))

/** The identifying hash of an envelope, which need not be valid. */
export const hashOf = (crypto: EngineCrypto, networkId: Uint8Array, envelope: TransactionEnvelope): Uint8Array => {
  if (envelope.type === EnvelopeType.v0) return crypto.sha256(codecs.TransactionEnvelope.encode(envelope))
  if (envelope.type !== EnvelopeType.feeBump) return transactionHash(crypto, networkId, envelope.v1.tx)
  const taggedTransaction = { type: 5 as const, feeBump: envelope.feeBump.tx }
  return crypto.sha256(codec.TransactionSignaturePayload.encode({ networkId, taggedTransaction }))
}

/** Takes an envelope apart, or nothing when its kind or its fees make no sense. `bytes` saves encoding it again. */
export const frameOf = (
  crypto: EngineCrypto,
  networkId: Uint8Array,
  envelope: TransactionEnvelope,
  bytes: Uint8Array = codec.TransactionEnvelope.encode(envelope)
): Frame | undefined => {
  if (envelope.type === EnvelopeType.v0) return undefined
  const isFeeBump = envelope.type === EnvelopeType.feeBump
  const inner = envelope.type === EnvelopeType.feeBump ? envelope.feeBump.tx.innerTx.v1 : envelope.v1
  const { tx } = inner
  const isSoroban = tx.operations[0] !== undefined && isSorobanOperation(tx.operations[0])
  const soroban = tx.ext.v === 1 ? tx.ext.sorobanData : undefined
  if (isSoroban !== (soroban !== undefined)) return undefined
  const resourceFeeStroops = soroban?.resourceFee ?? 0n
  if (resourceFeeStroops < 0n || resourceFeeStroops > RESOURCE_FEE_STROOPS_MAX) return undefined
  const fullFeeStroops = envelope.type === EnvelopeType.feeBump ? envelope.feeBump.tx.fee : BigInt(tx.fee)
  if (fullFeeStroops < 0n) return undefined
  const innerBytes = isFeeBump ? codec.TransactionEnvelope.encode({ type: 2, v1: inner }) : bytes
  const innerHash = transactionHash(crypto, networkId, tx)
  const hash = isFeeBump ? hashOf(crypto, networkId, envelope) : innerHash
  const source = accountOf(tx.sourceAccount)
  const fullHash = latin1(crypto.sha256(bytes))
  return {
    envelope,
    bytes,
    isFeeBump,
    tx,
    signatures: inner.signatures,
    feeBumpSignatures: envelope.type === EnvelopeType.feeBump ? envelope.feeBump.signatures : [],
    hash,
    innerHash,
    fullHash,
    innerFullHash: isFeeBump ? latin1(crypto.sha256(innerBytes)) : fullHash,
    source,
    feeSource: envelope.type === EnvelopeType.feeBump ? accountOf(envelope.feeBump.tx.feeSource) : source,
    feeOperations: Math.max(1, tx.operations.length + (isFeeBump ? 1 : 0)),
    isSoroban,
    soroban,
    fullFeeStroops,
    inclusionFeeStroops: fullFeeStroops - resourceFeeStroops,
    innerInclusionFeeStroops: BigInt(tx.fee) - resourceFeeStroops,
    resourceFeeStroops,
    innerBytesLength: innerBytes.length
  }
}
