// RestoreFootprint: brings the archived entries of the read-write footprint back for the minimum time, for rent as if
// they were new. What is live or was never there is passed over.
import { EntryType } from "../../engine/xdr/types.ts"
import { entrySizeBytes } from "../../engine/state/entrySize.ts"
import { rentFeeStroops, type RentChange } from "../../engine/state/Fees.ts"
import { rentSizeBytes } from "../../engine/state/rentSize.ts"
import { inner, type OperationRules } from "../Context.ts"
import { Threshold } from "../Signatures.ts"
import { OperationType } from "../Wire.ts"
import { isPersistent, isSizeAllowed, lifeOf, restore } from "./footprint.ts"

const Code = { success: 0, malformed: -1, resourceLimitExceeded: -2, insufficientRefundableFee: -3 } as const
const result = (code: number) => inner(OperationType.restoreFootprint, code)

export const restoreFootprint: OperationRules<26> = {
  threshold: Threshold.low,
  check: (_body, { frame }) => {
    const { readOnly, readWrite } = frame.soroban!.resources.footprint
    return readOnly.length > 0 || !readWrite.every(isPersistent) ? Code.malformed : 0
  },
  apply: (_body, context) => {
    const { frame, ledger, refundable } = context
    const { resources } = frame.soroban!
    const newLiveUntil = ledger.ledgerSeq + ledger.settings.ttl.minPersistentLedgers - 1
    const rents: Array<RentChange> = []
    let bytes = 0
    for (const key of resources.footprint.readWrite) {
      const { life, entry } = lifeOf(context, key)
      if (life !== "archived" || entry === undefined) continue
      bytes += entrySizeBytes(entry)
      if (bytes > resources.diskReadBytes || bytes > resources.writeBytes || !isSizeAllowed(ledger, key, entry)) {
        return result(Code.resourceLimitExceeded)
      }
      rents.push({
        persistent: true,
        isCode: key.type === EntryType.contractCode,
        oldSizeBytes: 0,
        newSizeBytes: rentSizeBytes(ledger.settings, entry),
        oldLiveUntil: 0,
        newLiveUntil
      })
      restore(context, key, entry, false)
    }
    const paid = refundable!.consume(rentFeeStroops(ledger.settings, rents, ledger.ledgerSeq), 0n)
    return result(paid ? Code.success : Code.insufficientRefundableFee)
  }
}
