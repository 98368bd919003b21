// BumpSequence: moves the source's sequence number forward, never back. A bump that changes nothing succeeds, and still
// counts as a use of the sequence number for ages and gaps.
import { withSequence } from "../Accounts.ts"
import { inner, type OperationRules } from "../Context.ts"
import { Threshold } from "../Signatures.ts"
import { OperationType } from "../Wire.ts"

const Code = { success: 0, badSequence: -1 } as const

export const bumpSequence: OperationRules<11> = {
  threshold: Threshold.low,
  check: ({ bumpSequenceOp }) => (bumpSequenceOp.bumpTo < 0n ? Code.badSequence : 0),
  apply: ({ bumpSequenceOp }, { txn, source, ledger }) => {
    const account = txn.loadAccount(source)!
    const seqNum = bumpSequenceOp.bumpTo > account.seqNum ? bumpSequenceOp.bumpTo : account.seqNum
    txn.putAccount(withSequence(account, seqNum, ledger.ledgerSeq, ledger.closeTime))
    return inner(OperationType.bumpSequence, Code.success)
  }
}
