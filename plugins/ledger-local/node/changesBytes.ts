// Lists of ledger changes as XDR, for keeping them small in the history and giving them out as part of a ledger's meta.
// The form is that of an operation's meta without events, which is a list of changes between two empty fields.
import * as xdr from "@stellar/stellar-sdk/xdr"
import type { LedgerEntryChange } from "../transaction/Wire.ts"

const schema = xdr.OperationMetaV2.schema

export const changesBytes = (changes: ReadonlyArray<LedgerEntryChange>): Uint8Array =>
  schema.encode({ ext: { v: 0 }, changes: [...changes], events: [] })

export const changesOf = (bytes: Uint8Array): Array<LedgerEntryChange> => schema.decode(bytes).changes
