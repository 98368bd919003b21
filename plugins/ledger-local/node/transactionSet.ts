// The hashes of transactions in a ledger's header: of the agreed set, and of the results, over the same bytes that
// `getLedgers` returns. The set has the network's two phases, classic transactions and contract transactions, the
// latter in one stage and one cluster. It is built from the received envelopes' bytes.
import { joinBytes } from "../../../kernel/stellar/joinBytes.ts"
import type { EngineCrypto } from "../engine/host/Random.ts"

/** The transactions of one phase, in apply order. */
export interface Phase {
  readonly envelopes: ReadonlyArray<Uint8Array>
  /** Stroops per operation that the whole phase pays. */
  readonly baseFeeStroops: bigint
}

const int = (value: number): Uint8Array => {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, value)
  return bytes
}

const hyper = (value: bigint): Uint8Array => {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigUint64(0, value)
  return bytes
}

const array = (items: ReadonlyArray<Uint8Array>): ReadonlyArray<Uint8Array> => [int(items.length), ...items]
const optional = (value: bigint): ReadonlyArray<Uint8Array> => [int(1), hyper(value)]

const CLASSIC = int(0)
const PARALLEL = int(1)
const DISCOUNTED_FEE = int(0)

const classicBytes = ({ envelopes, baseFeeStroops }: Phase): ReadonlyArray<Uint8Array> =>
  envelopes.length === 0
    ? [CLASSIC, int(0)]
    : [CLASSIC, int(1), DISCOUNTED_FEE, ...optional(baseFeeStroops), ...array(envelopes)]

const parallelBytes = ({ envelopes, baseFeeStroops }: Phase): ReadonlyArray<Uint8Array> =>
  envelopes.length === 0
    ? [PARALLEL, int(0), int(0)]
    : [PARALLEL, ...optional(baseFeeStroops), int(1), int(1), ...array(envelopes)]

/** The set as XDR; the header has its SHA-256. */
export const transactionSetBytes = (previousHash: Uint8Array, classic: Phase, soroban: Phase): Uint8Array =>
  joinBytes([int(1), previousHash, int(2), ...classicBytes(classic), ...parallelBytes(soroban)])

/** The results as XDR, pairs of a transaction's hash and its result; the header has their SHA-256. */
export const resultSetBytes = (pairs: ReadonlyArray<readonly [hash: Uint8Array, result: Uint8Array]>): Uint8Array =>
  joinBytes([int(pairs.length), ...pairs.flat()])

const nothing: Phase = { envelopes: [], baseFeeStroops: 0n }

/** The two hashes of a ledger without transactions. */
export const emptyHashes = (crypto: Pick<EngineCrypto, "sha256">, previousHash: Uint8Array) => ({
  transactionSetHash: crypto.sha256(transactionSetBytes(previousHash, nothing, nothing)),
  resultHash: crypto.sha256(resultSetBytes([]))
})
