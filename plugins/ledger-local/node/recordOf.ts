// An applied transaction as the history keeps it: encoded, so that the record is small and is decoded only on request.
import * as xdr from "@stellar/stellar-sdk/xdr"
import type { Applied } from "../transaction/applyTransaction.ts"
import type { LedgerContext } from "../transaction/Context.ts"
import type { Frame } from "../transaction/Frame.ts"
import { codecs, type LedgerEntryChange } from "../transaction/Wire.ts"
import type { TransactionRecord } from "./History.ts"
import { toHex } from "./text.ts"

// Lists of ledger changes as XDR, for keeping them small in the history and giving them out as part of a ledger's meta.
// The form is that of an operation's meta without events, which is a list of changes between two empty fields.

const schema = xdr.OperationMetaV2.schema

const changesBytes = (changes: ReadonlyArray<LedgerEntryChange>): Uint8Array =>
  schema.encode({ ext: { v: 0 }, changes: [...changes], events: [] })

export const changesOf = (bytes: Uint8Array): Array<LedgerEntryChange> => schema.decode(bytes).changes

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
