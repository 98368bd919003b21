// The ledger's state while a stream is replayed. It follows the real ledger: every entry a meta shows as the state before a
// change is put in when it is not known yet, and every real change is applied, so that one wrong transaction of ours
// never spoils the next. Network settings follow the upgrades in the stream.
import { xdr } from "@stellar/stellar-sdk/base"
import { keyOfEntry, keyString } from "../../plugins/ledger-local/engine/LedgerKeys.ts"
import { type NetworkSettings, testnet, withConfigSettings } from "../../plugins/ledger-local/engine/NetworkSettings.ts"
import { Store } from "../../plugins/ledger-local/engine/Store.ts"
import type { ConfigSettingEntry, LedgerEntry } from "../../plugins/ledger-local/engine/Xdr.ts"

export type EntryChange = xdr.LedgerEntryChangeWire

const entryOf = (change: EntryChange): LedgerEntry | undefined => {
  switch (change.type) {
    case 0:
      return change.created
    case 1:
      return change.updated
    case 4:
      return change.restored
    default:
      return undefined
  }
}

/** What a test network of stellar-core starts from before any upgrade in the stream. */
const genesis: NetworkSettings = {
  ...testnet,
  fees: { ...testnet.fees, stateSizeBytes: 0n },
  ttl: { minTemporaryLedgers: 16, minPersistentLedgers: 4_096, maxEntryLedgers: 1_054_080 }
}

export class LedgerState {
  readonly store = Store.empty()
  settings: NetworkSettings = genesis
  /** Fees can be compared only once the stream has shown the fee settings. */
  knowsFees = false
  readonly #known = new Set<string>()

  /** Entries that the changes show as they were before, unless this state knows the key already. */
  seed(changes: ReadonlyArray<EntryChange>): void {
    for (const change of changes) {
      const entry = change.type === 3 ? change.state : change.type === 4 ? change.restored : undefined
      if (entry === undefined) continue
      const key = keyString(keyOfEntry(entry))
      if (this.#known.has(key)) continue
      this.#known.add(key)
      this.store.set(key, entry)
    }
  }

  apply(changes: ReadonlyArray<EntryChange>): void {
    const configuration: Array<ConfigSettingEntry> = []
    for (const change of changes) {
      if (change.type === 3) continue
      const entry = entryOf(change)
      const key = keyString(change.type === 2 ? change.removed : keyOfEntry(entry!))
      this.#known.add(key)
      if (entry === undefined) this.store.delete(key)
      else this.store.set(key, entry)
      if (entry?.data.type === 8) configuration.push(entry.data.configSetting)
    }
    if (configuration.length === 0) return
    this.settings = withConfigSettings(this.settings, configuration)
    if (configuration.some(({ configSettingID }) => configSettingID === 1)) this.knowsFees = true
  }

  /** Takes over what the header says. */
  follow(header: xdr.LedgerHeaderWire): void {
    this.settings = {
      ...this.settings,
      protocolVersion: header.ledgerVersion,
      baseFeeStroops: BigInt(header.baseFee),
      baseReserveStroops: BigInt(header.baseReserve)
    }
  }
}
