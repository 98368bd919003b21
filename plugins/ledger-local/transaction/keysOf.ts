// The entries that a transaction is certain to look at, as far as they can be told without running it: its accounts,
// and the footprint of a contract operation. A fork fetches them at once and not one after the other.
import { EntryType } from "../engine/xdr/types.ts"
import { accountKeyString, keyString, type KeyString } from "../engine/state/LedgerKeys.ts"
import { accountOf, type Frame } from "./Frame.ts"

/** Of those that pay, sign and act. */
export const accountKeysOf = ({ feeSource, source, tx }: Frame): ReadonlyArray<KeyString> => {
  const others = tx.operations.flatMap(({ sourceAccount }) =>
    sourceAccount === null ? [] : [accountOf(sourceAccount)]
  )
  return [...new Set([source, feeSource, ...others].map(accountKeyString))]
}

export const keysOf = (frame: Frame): ReadonlyArray<KeyString> => {
  const { readOnly, readWrite } = frame.soroban?.resources.footprint ?? { readOnly: [], readWrite: [] }
  // A time to live comes with its entry; no transaction may name one.
  const named = [...readOnly, ...readWrite].filter(({ type }) => type !== EntryType.ttl)
  return [...accountKeysOf(frame), ...named.map(keyString)]
}
