// ManageData: a named value of up to 64 bytes under an account; no value deletes it.
import { EntryType } from "../../engine/xdr/types.ts"
import { isTextValid } from "../assetRules.ts"
import { inner, type OperationRules } from "../Context.ts"
import { Threshold } from "../Signatures.ts"
import { createSubentry, removeSubentry, reserveFailure } from "../reserves.ts"
import { OperationType } from "../Wire.ts"
import type { LedgerKey } from "../../engine/xdr/Xdr.ts"

const Code = { success: 0, nameNotFound: -2, lowReserve: -3, invalidName: -4 } as const
const result = (code: number) => inner(OperationType.manageData, code)

export const manageData: OperationRules<10> = {
  threshold: Threshold.medium,
  check: ({ manageDataOp: { dataName } }) =>
    dataName.bytes.length < 1 || !isTextValid(dataName.bytes) ? Code.invalidName : 0,
  apply: ({ manageDataOp: { dataName, dataValue } }, context) => {
    const { txn, source } = context
    const key: LedgerKey = { type: 3, data: { accountId: source, dataName } }
    const entry = txn.load(key)
    if (dataValue === null) {
      if (entry === undefined) return result(Code.nameNotFound)
      removeSubentry(context, txn.loadAccount(source)!, entry)
      txn.erase(key)
      return result(Code.success)
    }
    if (entry !== undefined && entry.data.type === EntryType.data) {
      txn.put({ ...entry, data: { type: 3, data: { ...entry.data.data, dataValue } } })
      return result(Code.success)
    }
    const outcome = createSubentry(context, txn.loadAccount(source)!, {
      lastModifiedLedgerSeq: txn.ledgerSeq,
      data: { type: 3, data: { accountId: source, dataName, dataValue, ext: { v: 0 } } },
      ext: { v: 0 }
    })
    return outcome === "ok" ? result(Code.success) : reserveFailure(outcome, result(Code.lowReserve))
  }
}
