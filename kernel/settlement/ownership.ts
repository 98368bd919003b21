// The owner of a settlement whose record was lost. Its transaction carries a tag of its owner and terms in its minimum
// time, which no ledger's close time ever reaches: 30 bits of a hash, so the ledger alone proves the owner even if the
// database is lost, and reveals it only to a party that has the payment. A transaction of version 0.1 has none.
import type { Crypto } from "../platform/Crypto.ts"
import { conditionsOf, type Transaction } from "../stellar/Envelope.ts"

/** Unix seconds before 2004: every ledger closes later. */
const tagBits = 30

/** The tag of an owner and of a payment's fingerprint; above 0. */
export const ownerTag = (crypto: Pick<Crypto["Service"], "sha256">, owner: string, fingerprint: string): bigint => {
  const hash = crypto.sha256(new TextEncoder().encode(`tollkeeper owner\n${owner}\n${fingerprint}`))
  const bits = new DataView(hash.buffer, hash.byteOffset).getUint32(0) >>> (32 - tagBits)
  return BigInt(bits === 0 ? 1 : bits)
}

/** The tag that a transaction carries; undefined when it has none. */
export const tagIn = (transaction: Transaction): bigint | undefined => {
  const minTime = BigInt(conditionsOf(transaction)?.timeBounds?.minTime ?? 0n)
  return minTime === 0n ? undefined : minTime
}
