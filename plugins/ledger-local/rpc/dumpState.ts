// The whole state as text, one line of JSON each: first which ledger it is, then every entry as `getLedgerEntries` has
// it, in the order of its key, so that two dumps can be compared line by line. The last ledgers that contract entries
// live in stand with them.
import { EntryType } from "../engine/xdr/types.ts"
import { keyOfEntry } from "../engine/state/LedgerKeys.ts"
import { toHex } from "../node/text.ts"
import { entryItem } from "./getLedgerEntries.ts"
import type { View } from "./View.ts"

export const dumpState = ({ latest, ledger, network, store }: View): string => {
  const items = [...store.entries()]
    .filter(({ data }) => data.type !== EntryType.ttl)
    .map((entry) => entryItem(ledger, store, keyOfEntry(entry), entry))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
  const head = {
    passphrase: network.passphrase,
    ledger: latest.sequence,
    closeTime: latest.closeTime.toString(),
    hash: toHex(latest.hash),
    entries: items.length
  }
  return [head, ...items].map((line) => `${JSON.stringify(line)}\n`).join("")
}
