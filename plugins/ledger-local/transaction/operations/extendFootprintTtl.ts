// ExtendFootprintTTL: lets the contract entries of the read-only footprint live longer, for rent. What is absent,
// archived or lives longer already is passed over. Nothing but TTL entries changes.
import { EntryType } from "../../engine/xdr/types.ts"
import { rentFeeStroops, type RentChange } from "../../engine/state/Fees.ts"
import { hasTtl, keyString, ttlEntry, ttlHash, ttlKeyString } from "../../engine/state/LedgerKeys.ts"
import { rentSizeBytes } from "../../engine/state/rentSize.ts"
import { inner, type OperationRules } from "../Context.ts"
import { Threshold } from "../Signatures.ts"
import { OperationType } from "../Wire.ts"
import { isPersistent, isSizeAllowed, lifeOf } from "./footprint.ts"

const Code = { success: 0, malformed: -1, resourceLimitExceeded: -2, insufficientRefundableFee: -3 } as const
const result = (code: number) => inner(OperationType.extendFootprintTtl, code)

export const extendFootprintTtl: OperationRules<25> = {
  threshold: Threshold.low,
  check: ({ extendFootprintTtlOp: { extendTo } }, { frame, ledger }) => {
    const { readOnly, readWrite } = frame.soroban!.resources.footprint
    const bad = readWrite.length > 0 || !readOnly.every(hasTtl) || extendTo > ledger.settings.ttl.maxEntryLedgers - 1
    return bad ? Code.malformed : 0
  },
  apply: ({ extendFootprintTtlOp: { extendTo } }, context) => {
    const { frame, ledger, txn, refundable } = context
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
      if (!isSizeAllowed(ledger, key, entry)) return result(Code.resourceLimitExceeded)
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
    const paid = refundable!.consume(rentFeeStroops(ledger.settings, rents, ledger.ledgerSeq), 0n)
    return result(paid ? Code.success : Code.insufficientRefundableFee)
  }
}
