// ExtendFootprintTTL: extends the life of the contract entries of the read-only footprint, for rent. Skips entries that
// are absent, archived or already live longer. Changes only TTL entries.
import { EntryType } from "../../engine/xdr/types.ts"
import { rentFeeStroops, type RentChange } from "../../engine/state/Fees.ts"
import { hasTtl, keyString, ttlEntry, ttlHash, ttlKeyString } from "../../engine/state/LedgerKeys.ts"
import { rentSizeBytes } from "../../engine/state/rentSize.ts"
import { diagnosticError } from "../checkResources.ts"
import { type Flaw, inner, type OperationRules } from "../Context.ts"
import { Threshold } from "../Signatures.ts"
import { OperationType } from "../Wire.ts"
import { isPersistent, lifeOf, sizeProblem } from "./footprint.ts"
import { unpaid } from "./operationDiagnostics.ts"

const Code = { success: 0, malformed: -1, resourceLimitExceeded: -2, insufficientRefundableFee: -3 } as const
const result = (code: number) => inner(OperationType.extendFootprintTtl, code)

const malformed = (message: string, args: ReadonlyArray<bigint> = []): Flaw => ({
  code: Code.malformed,
  diagnostic: diagnosticError("Storage", "InvalidInput", message, args)
})

export const extendFootprintTtl: OperationRules<25> = {
  threshold: Threshold.low,
  check: ({ extendFootprintTtlOp: { extendTo } }, { frame, ledger }) => {
    const { readOnly, readWrite } = frame.soroban!.resources.footprint
    const most = ledger.settings.ttl.maxEntryLedgers - 1
    if (readWrite.length > 0) return malformed("read-write footprint must be empty for ExtendFootprintTTL operation")
    if (!readOnly.every(hasTtl))
      return malformed("only entries with TTL (contract data or code entries) can have it extended")
    if (extendTo <= most) return 0
    return malformed("TTL extension is too large: {} > {}", [BigInt(extendTo), BigInt(most)])
  },
  apply: ({ extendFootprintTtlOp: { extendTo } }, context) => {
    const { frame, ledger, txn, refundable, soroban } = context
    const newLiveUntil = ledger.ledgerSeq + extendTo
    const rents: Array<RentChange> = []
    for (const key of frame.soroban!.resources.footprint.readOnly) {
      const { life, entry } = lifeOf(context, key)
      if (life !== "live" || entry === undefined) continue
      const id = keyString(key)
      const ttlId = ttlKeyString(ledger.crypto, id)
      const ttl = txn.store.get(ttlId)
      const oldLiveUntil = ttl?.data.type === EntryType.ttl ? ttl.data.ttl.liveUntilLedgerSeq : 0
      if (oldLiveUntil >= newLiveUntil) continue
      const problem = sizeProblem(ledger, key, entry)
      if (problem !== undefined) {
        soroban.diagnostics = [problem]
        return result(Code.resourceLimitExceeded)
      }
      const size = rentSizeBytes(ledger.settings, entry)
      rents.push({
        persistent: isPersistent(key),
        isCode: key.type === EntryType.contractCode,
        oldSizeBytes: size,
        newSizeBytes: size,
        oldLiveUntil,
        newLiveUntil
      })
      txn.store.set(ttlId, ttlEntry(ttlHash(ledger.crypto, id), newLiveUntil, ledger.ledgerSeq))
    }
    const short = unpaid(refundable!, rentFeeStroops(ledger.settings, rents, ledger.ledgerSeq), 0n)
    if (short === undefined) return result(Code.success)
    soroban.diagnostics = [short]
    return result(Code.insufficientRefundableFee)
  }
}
