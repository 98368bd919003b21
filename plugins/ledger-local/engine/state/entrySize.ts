// The size of a ledger entry's XDR, the unit of rent, read and write limits. Entries are immutable, so each one is
// encoded once and its size cached for as long as the entry lives.
import { codec, type LedgerEntry } from "../xdr/Xdr.ts"

const sizes = new WeakMap<LedgerEntry, number>()

/** Bytes of the entry's XDR. */
export const entrySizeBytes = (entry: LedgerEntry): number => {
  const cachedSize = sizes.get(entry)
  if (cachedSize !== undefined) return cachedSize
  const size = codec.LedgerEntry.encode(entry).length
  sizes.set(entry, size)
  return size
}
