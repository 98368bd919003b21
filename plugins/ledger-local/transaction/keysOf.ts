// The entries that a transaction is certain to read, as far as they can be found without running it: its accounts, and
// the footprint of a contract operation. A fork fetches them in one batch.
import { EntryType } from "../engine/xdr/types.ts"
import { accountKeyString, keyString, type KeyString } from "../engine/state/LedgerKeys.ts"
import { accountOf, type Frame } from "./Frame.ts"

/** Keys of the acting accounts: the source of the transaction, and of each operation. */
export const sourceKeysOf = ({ source, tx }: Frame): ReadonlyArray<KeyString> => {
  const others = tx.operations.flatMap(({ sourceAccount }) =>
    sourceAccount === null ? [] : [accountOf(sourceAccount)]
  )
  return [...new Set([source, ...others].map(accountKeyString))]
}

/** Keys of the accounts that act or pay. */
export const accountKeysOf = (frame: Frame): ReadonlyArray<KeyString> => [
  accountKeyString(frame.feeSource),
  ...sourceKeysOf(frame)
]

/** The footprint of a contract operation. */
export const footprintKeysOf = ({ soroban }: Frame): ReadonlyArray<KeyString> => {
  const { readOnly, readWrite } = soroban?.resources.footprint ?? { readOnly: [], readWrite: [] }
  // A time to live comes with its entry; no transaction may name one.
  const named = [...readOnly, ...readWrite].filter(({ type }) => type !== EntryType.ttl)
  return named.map(keyString)
}

export const keysOf = (frame: Frame): ReadonlyArray<KeyString> => [...accountKeysOf(frame), ...footprintKeysOf(frame)]
