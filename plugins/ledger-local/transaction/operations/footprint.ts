// Code that the three contract operations share: which keys have a life that can end, whether it has ended, which sizes
// are allowed, and how an entry is restored from the archive. An entry with an expired TTL entry (or an absent one,
// after an eviction) is archived when persistent and does not exist when temporary.
import { EntryType } from "../../engine/xdr/types.ts"
import { entrySizeBytes } from "../../engine/state/rentSize.ts"
import { hasTtl, keyString, type KeyString, ttlEntry, ttlHash, ttlKeyString } from "../../engine/state/LedgerKeys.ts"
import type { DiagnosticEvent, LedgerEntry, LedgerKey } from "../../engine/xdr/Xdr.ts"
import type { ApplyContext, LedgerContext } from "../Context.ts"
import type { RestoredEntry } from "../Txn.ts"
import { exceeded } from "./operationDiagnostics.ts"

export const isPersistent = (key: LedgerKey): boolean =>
  key.type === EntryType.contractCode || (key.type === EntryType.contractData && key.contractData.durability === 1)

type Life = "absent" | "live" | "expired" | "archived"

/** The entry under a key with its state of life; keys without a TTL are live when present. */
export const lifeOf = (
  context: ApplyContext,
  key: LedgerKey
): { readonly life: Life; readonly entry: LedgerEntry | undefined } => {
  const { txn, ledger } = context
  const id = keyString(key)
  const entry = txn.store.get(id)
  if (entry === undefined) return { life: "absent", entry }
  if (!hasTtl(key)) return { life: "live", entry }
  const ttl = txn.store.get(ttlKeyString(ledger.crypto, id))
  if (ttl?.data.type === EntryType.ttl && ttl.data.ttl.liveUntilLedgerSeq >= ledger.ledgerSeq)
    return { life: "live", entry }
  return { life: isPersistent(key) ? "archived" : "expired", entry }
}

/** The node's diagnostic for a contract entry that is larger than the network allows now. */
export const sizeProblem = (
  { settings: { limits } }: LedgerContext,
  key: LedgerKey,
  entry: LedgerEntry
): DiagnosticEvent | undefined => {
  const [what, most] =
    key.type === EntryType.contractData
      ? ["ContractData size exceeds network config maximum size", limits.dataEntryBytesMax]
      : ["Wasm size exceeds network config maximum contract size", limits.contractCodeBytesMax]
  if (!hasTtl(key)) return undefined
  const bytes = entrySizeBytes(entry)
  return bytes <= most ? undefined : exceeded(what, BigInt(bytes), BigInt(most))
}

/** The node's diagnostic for bytes beyond the declared ones. */
export const bytesProblem = (side: "read" | "write", bytes: number, declared: number): DiagnosticEvent | undefined =>
  bytes <= declared
    ? undefined
    : exceeded(`operation byte-${side} resources exceeds amount specified`, BigInt(bytes), BigInt(declared))

/**
 * Restores an archived entry for the minimum time and records its form in the meta. `rewritten` entries are stamped
 * with the current ledger, as a host function does to all it may write.
 */
export const restore = (context: ApplyContext, key: LedgerKey, entry: LedgerEntry, rewritten: boolean): void => {
  const { txn, ledger, restored } = context
  const id = keyString(key)
  const hash = ttlHash(ledger.crypto, id)
  const ttlId: KeyString = ttlKeyString(ledger.crypto, id)
  const evicted = txn.store.get(ttlId)
  const liveUntil = ledger.ledgerSeq + ledger.settings.ttl.minPersistentLedgers - 1
  const ttl = ttlEntry(hash, liveUntil, ledger.ledgerSeq)
  const stamped = { ...entry, lastModifiedLedgerSeq: ledger.ledgerSeq }
  const shown = rewritten || evicted === undefined ? stamped : entry
  if (rewritten || evicted === undefined) txn.store.set(id, stamped)
  txn.store.set(ttlId, ttl)
  const asBefore = evicted === undefined ? ttl : { ...evicted, lastModifiedLedgerSeq: ledger.ledgerSeq }
  const note = (name: KeyString, value: RestoredEntry): Map<KeyString, RestoredEntry> => restored.set(name, value)
  note(id, { unchanged: shown, changed: shown })
  note(ttlId, { unchanged: ttl, changed: asBefore })
}
