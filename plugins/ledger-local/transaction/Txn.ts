// A unit of change on the ledger's entries, as the network counts changes: an entry that was loaded for writing belongs
// to the unit, and appears in the meta with its ledger number moved, even when nothing in it changed. Entries that were
// only peeked at do not. Nothing reaches the outer store before `commit`.
import { EntryType } from "../engine/xdr/types.ts"
import { accountKey, keyOfEntry, keyString, type KeyString, trustLineKey } from "../engine/state/LedgerKeys.ts"
import type { Store } from "../engine/state/Store.ts"
import {
  type AccountEntry,
  codec,
  equalBytes,
  type LedgerEntry,
  type LedgerKey,
  type PublicKey,
  type TrustLineAsset,
  type TrustLineEntry
} from "../engine/xdr/Xdr.ts"
import type { LedgerEntryChange } from "./Wire.ts"

export class Txn {
  readonly store: Store
  readonly ledgerSeq: number

  constructor(outer: Store, ledgerSeq: number) {
    this.store = outer.child()
    this.ledgerSeq = ledgerSeq
  }

  peek(key: LedgerKey): LedgerEntry | undefined {
    return this.store.get(keyString(key))
  }

  /** Reads an entry and makes it part of this unit of change. */
  load(key: LedgerKey): LedgerEntry | undefined {
    const name = keyString(key)
    const entry = this.store.get(name)
    if (entry === undefined || this.store.touched(name)) return entry
    const loaded = { ...entry, lastModifiedLedgerSeq: this.ledgerSeq }
    this.store.set(name, loaded)
    return loaded
  }

  put(entry: LedgerEntry): void {
    this.store.put(
      entry.lastModifiedLedgerSeq === this.ledgerSeq ? entry : { ...entry, lastModifiedLedgerSeq: this.ledgerSeq }
    )
  }

  erase(key: LedgerKey): void {
    this.store.delete(keyString(key))
  }

  peekAccount(id: PublicKey): AccountEntry | undefined {
    const entry = this.peek(accountKey(id))
    return entry?.data.type === EntryType.account ? entry.data.account : undefined
  }

  loadAccount(id: PublicKey): AccountEntry | undefined {
    const entry = this.load(accountKey(id))
    return entry?.data.type === EntryType.account ? entry.data.account : undefined
  }

  /** Writes a changed account, keeping the other fields of its entry. */
  putAccount(account: AccountEntry): void {
    const before = this.peek(accountKey(account.accountId))
    this.put({ lastModifiedLedgerSeq: this.ledgerSeq, data: { type: 0, account }, ext: before?.ext ?? { v: 0 } })
  }

  peekTrustLine(id: PublicKey, asset: TrustLineAsset): TrustLineEntry | undefined {
    const entry = this.peek(trustLineKey(id, asset))
    return entry?.data.type === EntryType.trustLine ? entry.data.trustLine : undefined
  }

  loadTrustLine(id: PublicKey, asset: TrustLineAsset): TrustLineEntry | undefined {
    const entry = this.load(trustLineKey(id, asset))
    return entry?.data.type === EntryType.trustLine ? entry.data.trustLine : undefined
  }

  putTrustLine(trustLine: TrustLineEntry): void {
    const before = this.peek(trustLineKey(trustLine.accountId, trustLine.asset))
    this.put({ lastModifiedLedgerSeq: this.ledgerSeq, data: { type: 1, trustLine }, ext: before?.ext ?? { v: 0 } })
  }

  /** The changes as the meta shows them, in the order of first touching. */
  changes(restored?: ReadonlyMap<KeyString, RestoredEntry>): Array<LedgerEntryChange> {
    return ledgerChanges(this.store, restored)
  }

  commit(): void {
    this.store.commit()
  }
}

/**
 * How the meta shows an entry that came back from the archive: when nothing else changed it, and when something did.
 */
export interface RestoredEntry {
  readonly unchanged: LedgerEntry
  readonly changed: LedgerEntry
}

const sameEntry = (a: LedgerEntry, b: LedgerEntry): boolean =>
  equalBytes(codec.LedgerEntry.encode(a), codec.LedgerEntry.encode(b))

/** A store's own changes against its parent. Entries that came and went inside are not seen. */
const ledgerChanges = (
  store: Store,
  restored: ReadonlyMap<KeyString, RestoredEntry> = new Map()
): Array<LedgerEntryChange> => {
  const changes: Array<LedgerEntryChange> = []
  for (const { key, before, after } of store.changes()) {
    const back = restored.get(key)
    if (back !== undefined) {
      const unchanged = after !== undefined && sameEntry(after, back.unchanged)
      changes.push({ type: 4, restored: unchanged ? back.unchanged : back.changed })
      if (after === undefined) changes.push({ type: 2, removed: keyOfEntry(back.changed) })
      else if (!unchanged) changes.push({ type: 1, updated: after })
      continue
    }
    if (before !== undefined) changes.push({ type: 3, state: before })
    if (after !== undefined)
      changes.push(before === undefined ? { type: 0, created: after } : { type: 1, updated: after })
    else if (before !== undefined) changes.push({ type: 2, removed: keyOfEntry(before) })
  }
  for (const [key, back] of restored) if (!store.touched(key)) changes.push({ type: 4, restored: back.unchanged })
  return changes
}
