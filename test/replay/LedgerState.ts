// The ledger's state while a stream is replayed. It follows the real ledger: an entry that a meta shows as the state
// before a change is added if it is missing, and every real change is applied, so that one wrong transaction of ours
// never affects the next. Network settings follow the upgrades in the stream.
import { xdr } from "@stellar/stellar-sdk/base"
import type { EngineCrypto } from "../../plugins/ledger-local/engine/host/Random.ts"
import {
  hasTtl,
  keyOfEntry,
  keyString,
  ttlEntry,
  ttlHash,
  ttlKeyString
} from "../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import {
  type NetworkSettings,
  testnet,
  withConfigSettings
} from "../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { rentSizeBytes } from "../../plugins/ledger-local/engine/state/rentSize.ts"
import { Store } from "../../plugins/ledger-local/engine/state/Store.ts"
import type { Ledger } from "./streams.ts"
import type {
  ConfigSettingEntry,
  LedgerEntry,
  LedgerFootprint,
  LedgerKey
} from "../../plugins/ledger-local/engine/xdr/Xdr.ts"

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

/**
 * The initial settings of a stellar-core network, before any upgrade. A stream with an upgrade shows the settings
 * before it; a stream without one begins with these.
 */
const genesis: NetworkSettings = {
  ...testnet,
  fees: {
    ...testnet.fees,
    instructionsPer10kStroops: 100n,
    diskReadEntryStroops: 5_000n,
    writeEntryStroops: 20_000n,
    diskRead1KbStroops: 1_000n,
    write1KbStroops: 3_500n,
    historical1KbStroops: 100n,
    events1KbStroops: 200n,
    bandwidth1KbStroops: 2_000n,
    stateSizeBytes: 0n
  },
  ttl: { minTemporaryLedgers: 16, minPersistentLedgers: 4_096, maxEntryLedgers: 1_054_080 }
}

/** Lifetime of an entry that no meta has shown. */
const REFERENCE_LEDGERS = 1_000_000

export class LedgerState {
  readonly store = Store.empty()
  settings: NetworkSettings = genesis
  /** Moved on by the offers that the real ledger made. */
  readonly offerIds = { last: 0n }
  /** True if the node emitted the events of classic operations and of fees. */
  classicEvents = false
  readonly #known = new Set<string>()
  readonly #crypto: EngineCrypto
  /** Initial values of a stellar-core test network: number of samples, and ledgers between them. */
  #window: ReadonlyArray<bigint> = Array<bigint>(30).fill(0n)
  #samplePeriod = 64

  constructor(crypto: EngineCrypto) {
    this.#crypto = crypto
  }

  /** The settings at the beginning of a stream: each as its first change shows it before. */
  begin(ledgers: ReadonlyArray<Ledger>): void {
    const first = new Map<number, ConfigSettingEntry>()
    for (const { upgrades } of ledgers) {
      for (const change of upgrades.flatMap(({ changes }) => changes)) {
        if (change.type !== 3 || change.state.data.type !== 8) continue
        const setting = change.state.data.configSetting
        if (!first.has(setting.configSettingID)) first.set(setting.configSettingID, setting)
      }
    }
    this.settings = withConfigSettings(this.settings, first.values())
    for (const setting of first.values()) this.#readSampling(setting)
  }

  /** Adds entries in the state before the changes, unless this state already has the key. */
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

  /**
   * Entries that refer to the code of other contracts, which the nodes' own tests put into the ledger without any meta:
   * an entry that a transaction reads, and that no ledger has shown, refers to the one code that the transaction also
   * reads.
   */
  seedReferences({ readOnly }: LedgerFootprint, ledgerSeq: number): void {
    const codes = readOnly.flatMap((key) => (key.type === 7 ? [key.contractCode.hash] : []))
    for (const key of readOnly) {
      if (key.type !== 6 || key.contractData.key.type !== 22 || codes.length !== 1) continue
      const id = keyString(key)
      if (this.#known.has(id)) continue
      this.#known.add(id)
      const contractData = { ...key.contractData, ext: { v: 0 as const }, val: { type: 13 as const, bytes: codes[0]! } }
      this.store.set(id, { lastModifiedLedgerSeq: ledgerSeq, data: { type: 6, contractData }, ext: { v: 0 } })
      const hash = ttlHash(this.#crypto, id)
      this.store.set(ttlKeyString(this.#crypto, id), ttlEntry(hash, ledgerSeq + REFERENCE_LEDGERS, ledgerSeq))
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
      if (entry?.data.type === 2 && entry.data.offer.offerId > this.offerIds.last)
        this.offerIds.last = entry.data.offer.offerId
      if (entry?.data.type === 8) configuration.push(entry.data.configSetting)
    }
    if (configuration.length > 0) this.settings = withConfigSettings(this.settings, configuration)
    for (const setting of configuration) this.#readSampling(setting)
  }

  /** True if the network takes a sample of the size of contract state. */
  isSampled(ledgerSeq: number): boolean {
    return this.settings.protocolVersion >= 23 && ledgerSeq % this.#samplePeriod === 0
  }

  /** Bytes of all contract entries that are not evicted, in the network's own sum. */
  get contractStateBytes(): number {
    let bytes = 0
    for (const { after } of this.store.changes())
      if (after?.data.type === 6 || after?.data.type === 7) bytes += rentSizeBytes(this.settings, after)
    return bytes
  }

  /** The average size of contract state after a ledger; `sizeBefore` is the size before it. */
  averageSize(ledgerSeq: number, sizeBefore: bigint): bigint {
    if (this.isSampled(ledgerSeq)) {
      this.#window = [...this.#window.slice(1), sizeBefore]
      const stateSizeBytes = this.#window.reduce((sum, size) => sum + size) / BigInt(this.#window.length)
      this.settings = { ...this.settings, fees: { ...this.settings.fees, stateSizeBytes } }
    }
    return this.settings.fees.stateSizeBytes
  }

  #readSampling(setting: ConfigSettingEntry): void {
    if (setting.configSettingID === 10)
      this.#samplePeriod = setting.stateArchivalSettings.liveSorobanStateSizeWindowSamplePeriod
    if (setting.configSettingID === 12 && setting.liveSorobanStateSizeWindow.length > 0)
      this.#window = setting.liveSorobanStateSizeWindow
  }

  /**
   * Errors in a ledger's evictions: it evicts entries of contracts together with their times to live, and no live
   * entry.
   */
  compareEvicted(keys: ReadonlyArray<LedgerKey>, ledgerSeq: number): Array<string> {
    const evicted = new Set(keys.map(keyString))
    return keys.flatMap((key): Array<string> => {
      if (key.type === 9) return this.store.get(keyString(key)) === undefined ? ["evicts a time to live twice"] : []
      if (!hasTtl(key)) return [`evicts an entry of type ${key.type}`]
      const id = keyString(key)
      const ttlId = ttlKeyString(this.#crypto, id)
      const ttl = this.store.get(ttlId)
      const liveUntil = ttl?.data.type === 9 ? ttl.data.ttl.liveUntilLedgerSeq : undefined
      if (this.store.get(id) === undefined || liveUntil === undefined) return ["evicts an entry that does not exist"]
      return [
        ...(liveUntil < ledgerSeq ? [] : [`evicts an entry that lives until ledger ${liveUntil}`]),
        ...(evicted.has(ttlId) ? [] : ["evicts an entry without its time to live"])
      ]
    })
  }

  /**
   * Evicts entries: temporary ones are deleted, persistent ones stay without their TTL, which is how the ledger
   * represents the archive.
   */
  evict(keys: ReadonlyArray<LedgerKey>): void {
    for (const key of keys) {
      if (key.type === 9 || (key.type === 6 && key.contractData.durability === 0)) this.store.delete(keyString(key))
    }
  }

  /** Takes over the header's values. */
  follow(header: xdr.LedgerHeaderWire): void {
    this.settings = {
      ...this.settings,
      protocolVersion: header.ledgerVersion,
      baseFeeStroops: BigInt(header.baseFee),
      baseReserveStroops: BigInt(header.baseReserve),
      ledgerFlags: header.ext.v === 1 ? header.ext.v1.flags : 0
    }
    this.offerIds.last = header.idPool
  }
}
