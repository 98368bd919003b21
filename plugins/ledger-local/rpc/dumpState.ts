// The whole state as text, one line of JSON each: first the ledger's number and hash, then every entry as
// `getLedgerEntries` has it, in the order of its key, so that two dumps can be compared line by line. Contract entries
// include the last ledger they live in.
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
