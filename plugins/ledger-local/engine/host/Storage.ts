// The host's view of the ledger: an overlay per frame, guarded by the footprint. When the footprint is enforced, an
// access outside of it is `Error(Storage, ExceededLimit)`; when it is recorded, every access is added to it instead.
// Entries whose time to live has passed read as absent (temporary) or are restored during the read (persistent,
// recording only; an applied transaction restores archived entries before the host runs). Reads and writes follow the
// network's order.
import { EntryType, ScType } from "../xdr/types.ts"
import { HostError } from "./HostError.ts"
import type { InstructionMeter } from "./InstructionMeter.ts"
import { EntryMaps, type KeyEntry } from "./EntryMaps.ts"
import { Price } from "./instructionPrices.ts"
import { valuesIn } from "../xdr/valueSizes.ts"
import { Durability, hasTtl, keyString, type KeyString, ttlEntry, ttlHash } from "../state/LedgerKeys.ts"
import type { EngineCrypto } from "./Random.ts"
import type { NetworkSettings } from "../state/NetworkSettings.ts"
import type { Store } from "../state/Store.ts"
import { address, bytes, u32 } from "../xdr/ScVal.ts"
import {
  accountAddress,
  latin1,
  type LedgerEntry,
  type LedgerFootprint,
  type LedgerKey,
  type ScVal
} from "../xdr/Xdr.ts"

interface TouchedKey {
  readonly key: LedgerKey
  write: boolean
}

/** The name of an entry in the network's log, and the values logged with it. */
const named = (key: LedgerKey): readonly [name: string, value: ReadonlyArray<ScVal>, owner: ReadonlyArray<ScVal>] => {
  switch (key.type) {
    case EntryType.contractData: {
      const { contract, key: value } = key.contractData
      if (value.type === ScType.ledgerKeyContractInstance) return ["contract instance", [], [address(contract)]]
      if (value.type === ScType.ledgerKeyNonce) return ["nonce", [], [address(contract)]]
      return ["contract data key", [value], [address(contract)]]
    }
    case EntryType.contractCode:
      return ["contract code", [], [bytes(key.contractCode.hash)]]
    case EntryType.account:
      return ["account", [], [address(accountAddress(key.account.accountId))]]
    case EntryType.trustLine:
      return ["account trustline", [], [address(accountAddress(key.trustLine.accountId))]]
    default:
      return ["ledger key", [], []]
  }
}

/** An entry that must be there and is not. */
export const missing = (key: LedgerKey): HostError => {
  const [name, value] = named(key)
  return HostError.of("Storage", "MissingValue", `trying to get non-existing value for ${name}`, value)
}

const outside = (key: LedgerKey): HostError => {
  const [name, value, owner] = named(key)
  return HostError.of("Storage", "ExceededLimit", `trying to access ${name} outside of the footprint`, [
    ...owner,
    ...value
  ])
}

const durabilityOf = (key: LedgerKey): Durability =>
  key.type === EntryType.contractData ? (key.contractData.durability as Durability) : Durability.persistent

export class Storage {
  /** The innermost overlay; the frames push and pop it. */
  store: Store
  readonly #allowed: Map<KeyString, boolean> | undefined
  readonly #touched = new Map<KeyString, TouchedKey>()
  /** Persistent entries that had expired and were restored by reading them. Only when recording. */
  readonly restored = new Set<KeyString>()
  readonly #ledgerSeq: number
  readonly #settings: NetworkSettings
  readonly #crypto: EngineCrypto
  readonly #footprint: ReadonlyArray<KeyEntry> | undefined
  #meter: InstructionMeter | undefined
  #maps: EntryMaps | undefined
  /** While the footprint is found out: how often each key was read and written, and how many frames there were. */
  readonly #reads = new Map<KeyString, number>()
  readonly #writes = new Map<KeyString, number>()
  #frames = 0

  constructor(
    store: Store,
    footprint: LedgerFootprint | undefined,
    ledgerSeq: number,
    settings: NetworkSettings,
    crypto: EngineCrypto
  ) {
    this.store = store
    this.#ledgerSeq = ledgerSeq
    this.#settings = settings
    this.#crypto = crypto
    if (footprint !== undefined) {
      const keyed = (key: LedgerKey): KeyEntry => [keyString(key), key]
      const [readOnly, readWrite] = [footprint.readOnly.map(keyed), footprint.readWrite.map(keyed)]
      this.#footprint = [...readOnly, ...readWrite]
      this.#allowed = new Map()
      for (const [id] of readOnly) this.#allowed.set(id, false)
      for (const [id] of readWrite) this.#allowed.set(id, true)
    }
  }

  /** Reads and writes are charged from here on. */
  begin(meter: InstructionMeter): void {
    this.#meter = meter
    if (this.#footprint !== undefined) this.#maps = new EntryMaps(meter.costs, this.#footprint)
  }

  #spendRead(id: KeyString): void {
    if (this.#maps === undefined) this.#reads.set(id, (this.#reads.get(id) ?? 0) + 1)
    else this.#spendAt(this.#maps, id, false)
  }

  #spendWrite(id: KeyString): void {
    if (this.#maps === undefined) this.#writes.set(id, (this.#writes.get(id) ?? 0) + 1)
    else this.#spendAt(this.#maps, id, true)
  }

  #spendAt(maps: EntryMaps, id: KeyString, isWrite: boolean, times = 1): void {
    const position = maps.positions.get(id)
    if (position !== undefined) this.#meter?.spend(times * (isWrite ? maps.write(position) : maps.read(position)))
  }

  /** A frame keeps a copy of all entries, to go back to. */
  spendFrame(): void {
    if (this.#maps === undefined) this.#frames++
    else this.#meter?.spend(this.#maps.snapshot)
  }

  /** The maps of all entries. A simulation pays for its reads and writes here, when all of them are known. */
  settle(meter: InstructionMeter, footprint: ReadonlyArray<KeyEntry>): EntryMaps {
    if (this.#maps !== undefined) return this.#maps
    const maps = new EntryMaps(meter.costs, footprint)
    for (const [id, times] of this.#reads) this.#spendAt(maps, id, false, times)
    for (const [id, times] of this.#writes) this.#spendAt(maps, id, true, times)
    meter.spend(this.#frames * maps.snapshot)
    return maps
  }

  /** The cost of changing an entry of contract data, by its kind, without its place in the maps. */
  #spend(key: LedgerKey, data: number, instance: number): void {
    if (key.type === EntryType.contractData) {
      const own = key.contractData.key.type === ScType.ledgerKeyContractInstance ? instance : data
      this.#meter?.spend(own + Price.keyValue * valuesIn(key.contractData.key))
    }
  }

  /** Every key touched so far with its key string; only when recording. */
  recorded(): ReadonlyArray<readonly [KeyString, LedgerKey, boolean]> {
    return [...this.#touched].map(([id, { key, write }]) => [id, key, write] as const)
  }

  #access(id: KeyString, key: LedgerKey, write: boolean): void {
    if (this.#allowed === undefined) {
      const touchedKey = this.#touched.get(id)
      if (touchedKey === undefined) this.#touched.set(id, { key, write })
      else if (write) touchedKey.write = true
      return
    }
    const writable = this.#allowed.get(id)
    if (writable === undefined || (write && !writable)) throw outside(key)
  }

  /** The last ledger of an entry's life, or undefined when it has no TTL entry. */
  liveUntil(id: KeyString): number | undefined {
    const entry = this.store.get(this.ttlId(id))
    return entry?.data.type === EntryType.ttl ? entry.data.ttl.liveUntilLedgerSeq : undefined
  }

  ttlId(id: KeyString): KeyString {
    return `\0\0\0\x09${latin1(ttlHash(this.#crypto, id))}`
  }

  /** The entry, or undefined when it is absent or, being temporary, has expired. */
  get(key: LedgerKey): LedgerEntry | undefined {
    if (key.type === EntryType.contractData && key.contractData.key.type !== ScType.ledgerKeyContractInstance)
      this.#meter?.spend(Price.dataGet)
    const id = keyString(key)
    this.#access(id, key, false)
    this.#spendRead(id)
    return this.#live(id, key)
  }

  /** True for a temporary entry whose time to live has passed: the network ignores it from then on. */
  hasExpired(id: KeyString, key: LedgerKey): boolean {
    if (!hasTtl(key) || durabilityOf(key) !== Durability.temporary) return false
    const liveUntil = this.liveUntil(id)
    return liveUntil === undefined || liveUntil < this.#ledgerSeq
  }

  #live(id: KeyString, key: LedgerKey): LedgerEntry | undefined {
    const entry = this.store.get(id)
    if (entry === undefined || !hasTtl(key)) return entry
    const liveUntil = this.liveUntil(id)
    if (liveUntil !== undefined && liveUntil >= this.#ledgerSeq) return entry
    if (durabilityOf(key) === Durability.temporary) return undefined
    if (this.#allowed !== undefined) throw HostError.of("Storage", "InternalError", "accessing an archived entry")
    this.#access(id, key, true)
    this.restored.add(id)
    this.#setLiveUntil(id, this.minLiveUntil(Durability.persistent))
    return entry
  }

  /** The entry; absent is `Error(Storage, MissingValue)`, with other words where `message` is given. */
  require(key: LedgerKey, message?: string): LedgerEntry {
    const entry = this.get(key)
    if (entry === undefined)
      throw message === undefined ? missing(key) : HostError.of("Storage", "MissingValue", message)
    return entry
  }

  /** Writes an entry. A new one with a TTL lives until `liveUntil`, or the minimum for its durability. */
  put(key: LedgerKey, data: LedgerEntry["data"], liveUntil?: number): void {
    this.#spend(key, Price.dataPut, Price.instancePut)
    const id = keyString(key)
    const before = hasTtl(key) ? this.#peek(id, key) : this.store.get(id)
    this.#access(id, key, true)
    // The network checks that an entry with a time to live exists, and reads it if it does.
    if (hasTtl(key)) for (let reads = before === undefined ? 1 : 2; reads > 0; reads--) this.#spendRead(id)
    this.#spendWrite(id)
    this.store.set(id, { lastModifiedLedgerSeq: this.#ledgerSeq, data, ext: before?.ext ?? { v: 0 } })
    if (!hasTtl(key)) return
    if (liveUntil !== undefined) this.#setLiveUntil(id, liveUntil)
    else if (before === undefined) this.#setLiveUntil(id, this.minLiveUntil(durabilityOf(key)))
  }

  #peek(id: KeyString, key: LedgerKey): LedgerEntry | undefined {
    this.#access(id, key, false)
    return this.#live(id, key)
  }

  delete(key: LedgerKey): void {
    this.#spend(key, Price.dataRemoved, 0)
    const id = keyString(key)
    this.#access(id, key, true)
    this.#spendWrite(id)
    this.store.delete(id)
    if (hasTtl(key)) this.store.delete(this.ttlId(id))
  }

  #setLiveUntil(id: KeyString, liveUntil: number): void {
    const hash = ttlHash(this.#crypto, id)
    this.store.set(`\0\0\0\x09${latin1(hash)}`, ttlEntry(hash, liveUntil, this.#ledgerSeq))
  }

  /** The least live-until of a new entry. */
  minLiveUntil(durability: Durability): number {
    const { ttl } = this.#settings
    return (
      this.#ledgerSeq + (durability === Durability.persistent ? ttl.minPersistentLedgers : ttl.minTemporaryLedgers) - 1
    )
  }

  get maxLiveUntil(): number {
    return this.#ledgerSeq + this.#settings.ttl.maxEntryLedgers - 1
  }

  /**
   * Lets the entry live for `extendTo` more ledgers when it has at most `threshold` left. A read-only access. Past the
   * maximum, a persistent entry is extended to the maximum and a temporary one refused.
   */
  extend(key: LedgerKey, threshold: number, extendTo: number): void {
    this.#spend(key, 0, 0)
    if (threshold > extendTo)
      throw HostError.of("Storage", "InvalidInput", "threshold must be <= extend_to", [u32(threshold), u32(extendTo)])
    const id = keyString(key)
    this.#access(id, key, false)
    this.#spendRead(id)
    if (this.#live(id, key) === undefined) throw missing(key)
    const liveUntil = this.liveUntil(id)
    if (liveUntil === undefined) throw HostError.of("Storage", "InternalError", "trying to extend an entry without TTL")
    let target = this.#ledgerSeq + extendTo
    if (target > this.maxLiveUntil) {
      if (durabilityOf(key) === Durability.temporary) {
        const message = "trying to extend temporary entry past max TTL allowed by network: {} > {}"
        throw HostError.of("Storage", "InvalidAction", message, [
          u32(extendTo),
          u32(this.maxLiveUntil - this.#ledgerSeq)
        ])
      }
      target = this.maxLiveUntil
    }
    if (target > liveUntil && liveUntil - this.#ledgerSeq <= threshold) {
      this.#spendWrite(id)
      this.#setLiveUntil(id, target)
    }
  }

  /**
   * Extends the entry's life to `extendTo` more ledgers, by `least` to `most` ledgers: a smaller extension is skipped,
   * a larger one is capped. A read-only access (CAP-78).
   */
  extendWithin(key: LedgerKey, extendTo: number, least: number, most: number): void {
    this.#spend(key, 0, 0)
    if (least > extendTo || most < least)
      throw HostError.of("Storage", "InvalidInput", "the bounds of the extension do not fit")
    const id = keyString(key)
    this.#access(id, key, false)
    this.#spendRead(id)
    if (this.#live(id, key) === undefined) throw missing(key)
    const liveUntil = this.liveUntil(id)
    if (liveUntil === undefined) throw HostError.of("Storage", "InternalError", "trying to extend an entry without TTL")
    const lacking = this.#ledgerSeq + extendTo - liveUntil
    if (lacking <= 0 || lacking < least) return
    const target = liveUntil + Math.min(lacking, most)
    if (target > this.maxLiveUntil && durabilityOf(key) === Durability.temporary) {
      throw HostError.of("Storage", "InvalidAction", "trying to extend past max live_until ledger")
    }
    const given = Math.min(target, this.maxLiveUntil)
    if (given <= liveUntil) return
    this.#spendWrite(id)
    this.#setLiveUntil(id, given)
  }
}
