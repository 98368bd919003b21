// An applied transaction as the history keeps it: encoded, so that the record is small and is decoded only on request.
import type { Applied } from "../transaction/applyTransaction.ts"
import type { LedgerContext } from "../transaction/Context.ts"
import type { Frame } from "../transaction/Frame.ts"
import { codecs } from "../transaction/Wire.ts"
import { changesBytes } from "./changesBytes.ts"
import type { TransactionRecord } from "./History.ts"
import { toHex } from "./text.ts"

/** `order` from 1; `inclusionFeeStroops` per operation. */
export const recordOf = (
  frame: Frame,
  applied: Applied,
  order: number,
  ledger: LedgerContext,
  inclusionFeeStroops: bigint
): TransactionRecord => ({
  hash: toHex(frame.hash),
  innerHash: toHex(frame.innerHash),
  envelope: frame.bytes,
  result: codecs.TransactionResult.encode(applied.result),
  meta: codecs.TransactionMeta.encode(applied.meta),
  feeChanges: changesBytes(applied.feeChanges),
  refundChanges: changesBytes(applied.refundChanges),
  succeeded: applied.succeeded,
  isFeeBump: frame.isFeeBump,
  isSoroban: frame.isSoroban,
  order,
  ledger: ledger.ledgerSeq,
  closeTime: ledger.closeTime,
  inclusionFeeStroops
})
