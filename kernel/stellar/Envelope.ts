// Transaction envelopes, in and out. In: strict and bounded decoding, so that an accepted envelope has exactly one
// encoding. Out: the transactions that this program builds: a settlement on a channel, the fee bump around it, the
// no-op that cancels it, and the sponsor's own. Hashes are computed here from the network's passphrase. Values are the
// SDK's plain wire objects; nothing here signs.
import { xdr } from "@stellar/stellar-sdk/base"
import { Data, Effect, Result } from "effect"
import { Base64, Hex } from "effect/encoding"
import type { Crypto } from "../platform/Crypto.ts"
import { accountOf, accountText, encodeMuxed, publicKeyOf, publicKeyText } from "./Address.ts"
import { bytesOfBase64 } from "./base64.ts"
import { joinedBytes } from "./joinBytes.ts"
import { readXdr, uint32Bytes } from "./readXdr.ts"
import {
  assetKind,
  conditionKind,
  envelopeKind,
  extensionKind,
  memoKind,
  operationKind,
  resultKind,
  signerKind
} from "./kinds.ts"

export type Envelope = xdr.TransactionEnvelopeWire
export type Transaction = xdr.TransactionWire
export type Operation = xdr.OperationWire

const envelopeCodec = xdr.TransactionEnvelope.schema
const payloadCodec = xdr.TransactionSignaturePayload.schema

/** Maximum decoded bytes: the network's largest transaction is smaller. */
export const envelopeBytesMax = 131_072
/** Maximum nesting of XDR schemas; the network refuses values that nest deeper than some 500. */
const depthMax = 1_000

/** The reason why a transaction string is invalid: never its content. */
class EnvelopeMalformed extends Data.TaggedError("EnvelopeMalformed")<{
  readonly reason: "not base64" | "too large" | "not a transaction envelope"
}> {}

const malformed = (reason: EnvelopeMalformed["reason"]) => Result.fail(new EnvelopeMalformed({ reason }))

/**
 * Reads canonical base64 of exactly one envelope: no white space, no other alphabet, no trailing bytes, one encoding
 * only.
 */
export const readEnvelope = (text: string): Result.Result<Envelope, EnvelopeMalformed> => {
  if (text.length > Math.ceil(envelopeBytesMax / 3) * 4) return malformed("too large")
  const bytes = bytesOfBase64(text)
  if (bytes === undefined || bytes.length === 0) return malformed("not base64")
  try {
    return Result.succeed(readXdr(envelopeCodec, bytes, depthMax))
  } catch {
    // The reader throws on anything except an envelope in its only encoding, also on absurd nesting.
    return malformed("not a transaction envelope")
  }
}

export const decodeEnvelope = (text: string): Effect.Effect<Envelope, EnvelopeMalformed> =>
  Effect.suspend(() => Effect.fromResult(readEnvelope(text)))

export const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}

export const encodeEnvelope = (envelope: Envelope): string => Base64.encode(envelopeCodec.encode(envelope))

/** Largest fee an inner transaction's field can hold. */
const innerFeeMax = 0xffff_ffffn
/** The network's base fee for one operation, charged once more for a fee bump, in stroops. */
const baseFeeStroops = 100n

interface Bounds {
  /** Last ledger that may include the transaction. */
  readonly ledgerMax: number
  /**
   * Unix seconds, computed from a ledger's close, never from a machine's clock; a second bound in addition to the
   * ledger bound. 0: no bound.
   */
  readonly timeMax: bigint
}

const preconditions = ({ bounds, hashSigner }: OnChannel): xdr.PreconditionsWire =>
  ({
    type: conditionKind.v2,
    v2: {
      timeBounds: { minTime: 0n, maxTime: bounds.timeMax },
      ledgerBounds: { minLedger: 0, maxLedger: bounds.ledgerMax },
      minSeqNum: null,
      minSeqAge: 0n,
      minSeqLedgerGap: 0,
      extraSigners: hashSigner === undefined ? [] : [{ type: signerKind.hash, hashX: hashSigner }]
    }
  }) as unknown as xdr.PreconditionsWire

interface OnChannel {
  /** Address of the channel, G… */
  readonly channel: string
  /** The sequence number that this transaction uses. */
  readonly sequence: bigint
  readonly bounds: Bounds
  /** SHA-256 of a preimage that must be among the signatures; absent: no hash signer. */
  readonly hashSigner?: Uint8Array
}

const unsigned = (
  options: OnChannel & {
    readonly fee: bigint
    readonly operations: Array<Operation>
    readonly ext: Transaction["ext"]
    readonly memoHash?: Uint8Array | undefined
  }
): Transaction =>
  ({
    sourceAccount: accountOf(options.channel),
    fee: Number(options.fee > innerFeeMax ? innerFeeMax : options.fee),
    seqNum: options.sequence,
    cond: preconditions(options),
    memo: options.memoHash === undefined ? { type: memoKind.none } : { type: memoKind.hash, hash: options.memoHash },
    operations: options.operations,
    ext: options.ext
  }) as unknown as Transaction

/** The settlement's transaction: one operation as prepared by the scheme, its resource data, nothing else. */
export const settlementTransaction = (
  options: OnChannel & { readonly operationXdr: Uint8Array; readonly sorobanDataXdr: Uint8Array }
): Transaction => {
  const operation = readXdr(xdr.Operation.schema, options.operationXdr)
  const sorobanData = readXdr(xdr.SorobanTransactionData.schema, options.sorobanDataXdr)
  return unsigned({
    ...options,
    fee: sorobanData.resourceFee + baseFeeStroops,
    operations: [operation],
    ext: { v: extensionKind.soroban, sorobanData }
  })
}

/** The same transaction on another channel, unsigned: its effect, costs and bounds stay the same. */
export const onAnotherChannel = (transaction: Transaction, channel: string, sequence: bigint): Transaction =>
  ({ ...transaction, sourceAccount: accountOf(channel), seqNum: sequence }) as unknown as Transaction

const noOperation = {
  sourceAccount: null,
  body: { type: operationKind.bumpSequence, bumpSequenceOp: { bumpTo: 0n } }
} as unknown as Operation

/** An ordinary no-op with the same channel and sequence: if one of the two lands, the other never can. */
export const cancelTransaction = (options: OnChannel): Transaction => {
  return unsigned({ ...options, fee: baseFeeStroops, operations: [noOperation], ext: { v: extensionKind.none } })
}

/**
 * One of the sponsor's own transactions: creates, funds or merges channel accounts, at most 100 operations, or has a
 * hash as its memo.
 */
export const sponsorTransaction = (
  options: OnChannel & { readonly feeStroopsPerOperation: bigint; readonly operations: ReadonlyArray<SponsorOperation> }
): Transaction =>
  unsigned({
    ...options,
    fee: options.feeStroopsPerOperation * BigInt(options.operations.length),
    memoHash: options.operations.find((one) => one._tag === "Anchor")?.hash,
    operations: options.operations.map(sponsorOperation),
    ext: { v: extensionKind.none }
  })

export type SponsorOperation =
  | { readonly _tag: "Create"; readonly account: string; readonly balanceStroops: bigint }
  | { readonly _tag: "Fund"; readonly account: string; readonly amountStroops: bigint }
  /** The account transfers its balance to the sponsor and ends. Needs the account's signature too. */
  | { readonly _tag: "Merge"; readonly account: string; readonly into: string }
  /** A former sponsor's balance goes to an account of the operator's. Needs the former sponsor's signature too. */
  | { readonly _tag: "Drain"; readonly account: string; readonly to: string; readonly amountStroops: bigint }
  /** Changes nothing; the transaction's memo is the hash. */
  | { readonly _tag: "Anchor"; readonly hash: Uint8Array }

const nativePayment = (destination: string, amount: bigint) => ({
  type: operationKind.payment,
  paymentOp: { destination: accountOf(destination), asset: { type: assetKind.native }, amount }
})

const sponsorOperation = (operation: SponsorOperation): Operation => {
  switch (operation._tag) {
    case "Anchor":
      return noOperation
    case "Create":
      return {
        sourceAccount: null,
        body: {
          type: operationKind.createAccount,
          createAccountOp: { destination: publicKeyOf(operation.account), startingBalance: operation.balanceStroops }
        }
      } as unknown as Operation
    case "Fund":
      return {
        sourceAccount: null,
        body: nativePayment(operation.account, operation.amountStroops)
      } as unknown as Operation
    case "Drain":
      return {
        sourceAccount: accountOf(operation.account),
        body: nativePayment(operation.to, operation.amountStroops)
      } as unknown as Operation
    case "Merge":
      return {
        sourceAccount: accountOf(operation.account),
        body: { type: operationKind.accountMerge, destination: accountOf(operation.into) }
      } as unknown as Operation
  }
}

export interface AccountSignature {
  readonly publicKey: Uint8Array
  readonly signature: Uint8Array
}

const decorated = ({ publicKey, signature }: AccountSignature): xdr.DecoratedSignatureWire => ({
  hint: publicKey.slice(28),
  signature
})

export const withSignatures = (tx: Transaction, signatures: ReadonlyArray<AccountSignature>): Envelope =>
  ({ type: envelopeKind.v1, v1: { tx, signatures: signatures.map(decorated) } }) as unknown as Envelope

/** sha256 of the passphrase: every hash of a network begins with it. */
export const networkIdOf = (crypto: Crypto["Service"], passphrase: string): Uint8Array =>
  crypto.sha256(new TextEncoder().encode(passphrase))

/** The hash that a signature of a transaction signs: 32 bytes. */
export const transactionHash = (crypto: Crypto["Service"], networkId: Uint8Array, tx: Transaction): Uint8Array =>
  crypto.sha256(payloadCodec.encode({ networkId, taggedTransaction: { type: 2, tx } }))

const feeBumpHash = (crypto: Crypto["Service"], networkId: Uint8Array, tx: xdr.FeeBumpTransactionWire): Uint8Array =>
  crypto.sha256(payloadCodec.encode({ networkId, taggedTransaction: { type: 5, feeBump: tx } }))

/** Hex of the inner and outer hash of an envelope; equal if it is not a fee bump. None for the legacy kind. */
export const hashesOf = (
  crypto: Crypto["Service"],
  networkId: Uint8Array,
  envelope: Envelope
): { readonly innerHash: string; readonly outerHash: string } | undefined => {
  if (envelope.type === envelopeKind.v1) {
    const hash = Hex.encode(transactionHash(crypto, networkId, envelope.v1.tx))
    return { innerHash: hash, outerHash: hash }
  }
  if (envelope.type !== envelopeKind.feeBump) return undefined
  const { tx } = envelope.feeBump
  return {
    innerHash: Hex.encode(transactionHash(crypto, networkId, tx.innerTx.v1.tx)),
    outerHash: Hex.encode(feeBumpHash(crypto, networkId, tx))
  }
}

/** The transaction of an envelope that is not a fee bump; undefined for the kind before fee bumps. */
export const plainIn = (envelope: Envelope): Transaction | undefined =>
  envelope.type === envelopeKind.v1 ? envelope.v1.tx : undefined

export const bumpIn = (envelope: Envelope): xdr.FeeBumpTransactionWire | undefined =>
  envelope.type === envelopeKind.feeBump ? envelope.feeBump.tx : undefined

export const bumpedIn = (envelope: Envelope): Transaction | undefined => bumpIn(envelope)?.innerTx.v1.tx

/** The transaction inside an envelope, bumped or not; undefined for the kind before fee bumps. */
export const transactionIn = (envelope: Envelope): Transaction | undefined => bumpedIn(envelope) ?? plainIn(envelope)

/**
 * Whether an envelope is of the kind before fee bumps: its transactions cannot call contracts and have other hashes.
 */
export const isLegacy = (envelope: Envelope): boolean => envelope.type === envelopeKind.v0

/** The account that a transaction acts as. */
export const sourceOf = (tx: Pick<Transaction, "sourceAccount">): string => accountText(tx.sourceAccount)

/** The resource fee of a transaction, stroops; undefined without resource data. */
export const resourceFeeOf = ({ ext }: Transaction): bigint | undefined =>
  ext.v === extensionKind.soroban ? ext.sorobanData.resourceFee : undefined

/** Entries of a footprint that are marked as archived: the transaction restores them before it runs (protocol 23). */
export const archivedEntriesOf = ({ ext }: xdr.SorobanTransactionDataWire): number =>
  ext.v === extensionKind.soroban ? ext.resourceExt.archivedSorobanEntries.length : 0

/** The conditions of a transaction in addition to its sequence number, if it has more than a time bound. */
export const conditionsOf = ({ cond }: Transaction): xdr.PreconditionsV2Wire | undefined =>
  cond.type === conditionKind.v2 ? cond.v2 : undefined

/** Last ledger that may include a transaction; undefined without such a bound. */
export const ledgerMaxOf = (tx: Transaction): number | undefined => conditionsOf(tx)?.ledgerBounds?.maxLedger

/** The hash of the preimage that a transaction requires among its signatures, if that is its only further signer. */
export const hashSignerOf = (tx: Transaction): Uint8Array | undefined => {
  const [signer, ...others] = conditionsOf(tx)?.extraSigners ?? []
  return signer?.type === signerKind.hash && others.length === 0 ? signer.hashX : undefined
}

/** The preimage that a bumped transaction was signed with, after its source's signature. */
export const preimageIn = (envelope: Envelope): Uint8Array | undefined =>
  bumpIn(envelope)?.innerTx.v1.signatures[1]?.signature

export const hasMemo = ({ memo }: Transaction): boolean => memo.type !== memoKind.none

/** The number that an operation moves its source's sequence to; undefined for any other operation. */
export const sequenceBumpOf = ({ body }: Operation): bigint | undefined =>
  body.type === operationKind.bumpSequence ? BigInt(body.bumpSequenceOp.bumpTo) : undefined

/** One of the sponsor's own operations, with its source; undefined for any other operation, and for other assets. */
export const readSponsorOperation = ({
  body,
  sourceAccount
}: Operation): { readonly operation: SponsorOperation; readonly source: string | undefined } | undefined => {
  const source = sourceAccount == null ? undefined : accountText(sourceAccount)
  switch (body.type) {
    case operationKind.createAccount: {
      const { destination, startingBalance } = body.createAccountOp
      return {
        source,
        operation: { _tag: "Create", account: publicKeyText(destination), balanceStroops: startingBalance }
      }
    }
    case operationKind.payment: {
      const { amount: amountStroops, asset, destination } = body.paymentOp
      if (asset.type !== assetKind.native) return undefined
      const to = accountText(destination)
      return source === undefined
        ? { source, operation: { _tag: "Fund", account: to, amountStroops } }
        : { source, operation: { _tag: "Drain", account: source, to, amountStroops } }
    }
    case operationKind.accountMerge:
      return { source, operation: { _tag: "Merge", account: source ?? "", into: accountText(body.destination) } }
    default:
      return undefined
  }
}

/** The hash in the memo of a transaction that does nothing else; undefined for any other. */
export const anchoredHash = ({ memo, operations }: Transaction): Uint8Array | undefined => {
  const [operation, ...others] = operations
  const isNothing =
    operation?.body.type === operationKind.bumpSequence && operation.body.bumpSequenceOp.bumpTo === 0n && !others.length
  return memo.type === memoKind.hash && isNothing && operation.sourceAccount == null
    ? (memo.hash as Uint8Array)
    : undefined
}

/** Fee and sequence number; without conditions or memo, with one operation. */
const beforeOperation = joinedBytes(
  uint32Bytes(Number(baseFeeStroops)),
  uint32Bytes(0),
  uint32Bytes(1),
  uint32Bytes(conditionKind.none),
  uint32Bytes(memoKind.none),
  uint32Bytes(1)
)
/** No resource data, no signatures. */
const afterOperation = joinedBytes(uint32Bytes(extensionKind.none), uint32Bytes(0))

/**
 * An envelope that only carries an operation to a simulation: it has a source, and nothing that depends on the source.
 */
export const simulationEnvelope = (source: xdr.MuxedAccountWire, operationXdr: Uint8Array): string =>
  Base64.encode(
    joinedBytes(uint32Bytes(envelopeKind.v1), encodeMuxed(source), beforeOperation, operationXdr, afterOperation)
  )

/** Whether a transaction succeeded: alone, or inside the fee bump that has this result. */
export const hasSucceeded = ({ result }: xdr.TransactionResultWire): boolean =>
  result.code === resultKind.success || result.code === resultKind.bumpSuccess
