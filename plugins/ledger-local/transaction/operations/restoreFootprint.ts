// RestoreFootprint: restores the archived entries of the read-write footprint for the minimum time, for rent as if they
// were new. Skips entries that are live or never existed.
import { EntryType } from "../../engine/xdr/types.ts"
import { entrySizeBytes, rentSizeBytes } from "../../engine/state/rentSize.ts"
import { rentFeeStroops, type RentChange } from "../../engine/state/Fees.ts"
import { diagnosticError } from "../checkResources.ts"
import { type Flaw, inner, type OperationRules } from "../Context.ts"
import { Threshold } from "../Signatures.ts"
import { OperationType } from "../Wire.ts"
import { bytesProblem, isPersistent, lifeOf, restore, sizeProblem } from "./footprint.ts"
import { unpaid } from "./operationDiagnostics.ts"

const Code = { success: 0, malformed: -1, resourceLimitExceeded: -2, insufficientRefundableFee: -3 } as const
const result = (code: number) => inner(OperationType.restoreFootprint, code)

const malformed = (message: string): Flaw => ({
  code: Code.malformed,
  diagnostic: diagnosticError("Storage", "InvalidInput", message)
})

export const restoreFootprint: OperationRules<26> = {
  threshold: Threshold.low,
  check: (_body, { frame }) => {
    const { readOnly, readWrite } = frame.soroban!.resources.footprint
    if (readOnly.length > 0) return malformed("read-only footprint must be empty for RestoreFootprint operation")
    return readWrite.every(isPersistent) ? 0 : malformed("only persistent Soroban entries can be restored")
  },
  apply: (_body, context) => {
    const { frame, ledger, refundable, soroban } = context
    const { resources } = frame.soroban!
    const newLiveUntil = ledger.ledgerSeq + ledger.settings.ttl.minPersistentLedgers - 1
    const rents: Array<RentChange> = []
    let bytes = 0
    for (const key of resources.footprint.readWrite) {
      const { life, entry } = lifeOf(context, key)
      if (life !== "archived" || entry === undefined) continue
      bytes += entrySizeBytes(entry)
      const problem =
        bytesProblem("read", bytes, resources.diskReadBytes) ??
        sizeProblem(ledger, key, entry) ??
        bytesProblem("write", bytes, resources.writeBytes)
      if (problem !== undefined) {
        soroban.diagnostics = [problem]
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
    const short = unpaid(refundable!, rentFeeStroops(ledger.settings, rents, ledger.ledgerSeq), 0n)
    if (short === undefined) return result(Code.success)
    soroban.diagnostics = [short]
    return result(Code.insufficientRefundableFee)
  }
}
