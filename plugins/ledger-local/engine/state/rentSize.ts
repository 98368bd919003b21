// The size for an entry's rent: its XDR, and for contract code also the memory of the parsed module, estimated by the
// network's memory cost parameters from the counts in the code entry.
import { EntryType } from "../xdr/types.ts"
import type { NetworkSettings } from "./NetworkSettings.ts"
import { codec, type LedgerEntry } from "../xdr/Xdr.ts"

// The size of a ledger entry's XDR, the unit of rent, read and write limits. Entries are immutable, so each one is
// encoded once and its size cached for as long as the entry lives.

const sizes = new WeakMap<LedgerEntry, number>()

export const entrySizeBytes = (entry: LedgerEntry): number => {
  const cachedSize = sizes.get(entry)
  if (cachedSize !== undefined) return cachedSize
  const size = codec.LedgerEntry.encode(entry).length
  sizes.set(entry, size)
  return size
}

export const rentSizeBytes = (settings: NetworkSettings, entry: LedgerEntry): number => {
  const size = entrySizeBytes(entry)
  if (entry.data.type !== EntryType.contractCode || entry.data.contractCode.ext.v !== 1) return size
  const inputs = entry.data.contractCode.ext.v1.costInputs
  const costs = settings.moduleMemory
  // Linear terms are per unit in 128ths of a byte.
  const linear = (perUnit128: bigint, units: number): bigint => (perUnit128 * BigInt(units)) >> 7n
  return (
    size +
    Number(
      costs.baseBytes +
        linear(costs.instruction128, inputs.nInstructions) +
        linear(costs.function128, inputs.nFunctions) +
        linear(costs.global128, inputs.nGlobals) +
        linear(costs.tableEntry128, inputs.nTableEntries) +
        linear(costs.type128, inputs.nTypes) +
        linear(costs.dataSegment128, inputs.nDataSegments) +
        linear(costs.elemSegment128, inputs.nElemSegments) +
        linear(costs.import128, inputs.nImports) +
        linear(costs.export128, inputs.nExports) +
        linear(costs.dataSegmentByte128, inputs.nDataSegmentBytes)
    )
  )
}
