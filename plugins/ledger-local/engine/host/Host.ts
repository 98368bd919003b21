// Entry point of host function calls: runs one host function over a store and returns a value. It is deterministic and
// synchronous, and writes nothing: on success the caller commits an overlay with the changes, on failure there are no
// changes. Read-write entries always count as changed, because the network stamps them with the ledger.
import { AddressType, EntryType, HostFunctionType } from "../xdr/types.ts"
import { createContract, uploadWasm } from "./createContract.ts"
import { entrySizeBytes, rentSizeBytes } from "../state/rentSize.ts"
import type { RentChange } from "../state/Fees.ts"
import { chargeSurroundings } from "./chargeSurroundings.ts"
import { HostContext } from "./HostContext.ts"
import { HostError } from "./HostError.ts"
import type { HostInput } from "./HostTypes.ts"
import type { HostResult, HostSuccess } from "./HostResult.ts"
import { hasTtl, isDiskKey, keyString, type KeyString } from "../state/LedgerKeys.ts"
import { Storage } from "./Storage.ts"
import { ValueCosts } from "./ValueCosts.ts"
import type { Store } from "../state/Store.ts"
import { codec, type LedgerFootprint, type LedgerKey, type ScVal } from "../xdr/Xdr.ts"

type KeyEntry = readonly [KeyString, LedgerKey]

const run = (host: HostContext): ScVal => {
  const fn = host.input.hostFunction
  switch (fn.type) {
    case HostFunctionType.invokeContract: {
      const { contractAddress: address, functionName, args } = fn.invokeContract
      if (address.type !== AddressType.contract)
        throw HostError.of("Value", "UnexpectedType", "invoked address doesn't belong to a contract")
      const value = host.invoke(address.contractId, functionName, args)
      host.meter.spend(new ValueCosts(host.meter.costs).returned(value))
      return value
    }
    case HostFunctionType.createContract:
      return createContract(host, { ...fn.createContract, constructorArgs: [] })
    case HostFunctionType.uploadWasm:
      return uploadWasm(host, fn.wasm)
    case HostFunctionType.createContractV2:
      return createContract(host, fn.createContractV2)
  }
}

const byKeyString = ([a]: KeyEntry, [b]: KeyEntry): number => (a < b ? -1 : a > b ? 1 : 0)

interface Keys {
  readonly readOnly: ReadonlyArray<KeyEntry>
  readonly readWrite: ReadonlyArray<KeyEntry>
  readonly footprint: LedgerFootprint
}

const keysOf = (input: HostInput, storage: Storage): Keys => {
  if (input.access.mode === "enforce") {
    const { footprint } = input.access
    const keyed = (keys: ReadonlyArray<LedgerKey>): Array<KeyEntry> => keys.map((key) => [keyString(key), key])
    return { readOnly: keyed(footprint.readOnly), readWrite: keyed(footprint.readWrite), footprint }
  }
  const readOnly: Array<KeyEntry> = []
  const readWrite: Array<KeyEntry> = []
  for (const [id, key, write] of storage.recorded()) (write ? readWrite : readOnly).push([id, key])
  readOnly.sort(byKeyString)
  readWrite.sort(byKeyString)
  const footprint = { readOnly: readOnly.map(([, key]) => key), readWrite: readWrite.map(([, key]) => key) }
  return { readOnly, readWrite, footprint }
}

/** Stamps writable entries that were not written too. Expired temporary entries are removed. */
const stamp = (storage: Storage, readWrite: ReadonlyArray<KeyEntry>, ledgerSeq: number): void => {
  const { store } = storage
  for (const [id, key] of readWrite) {
    if (store.touched(id)) continue
    const entry = store.get(id)
    if (entry === undefined) continue
    if (!storage.hasExpired(id, key)) store.set(id, { ...entry, lastModifiedLedgerSeq: ledgerSeq })
    else for (const gone of [id, storage.ttlId(id)]) store.delete(gone)
  }
}

/** The rent changes of the footprint's contract entries between `before` and `after`. */
const rentChangesOf = (
  input: HostInput,
  storage: Storage,
  before: Store,
  after: Store,
  keys: Iterable<KeyEntry>
): Array<RentChange> => {
  const changes: Array<RentChange> = []
  for (const [id, key] of keys) {
    if (!hasTtl(key)) continue
    const ttlId = storage.ttlId(id)
    if (!after.touched(id) && !after.touched(ttlId)) continue
    const entry = after.get(id)
    if (entry === undefined) continue
    const isPersistent = key.type !== EntryType.contractData || key.contractData.durability === 1
    const wasRestored = storage.restored.has(id) || input.restored?.has(id) === true
    const oldEntry = wasRestored ? undefined : before.get(id)
    const oldTtl = before.get(ttlId)
    const oldLive = oldTtl?.data.type === EntryType.ttl ? oldTtl.data.ttl.liveUntilLedgerSeq : 0
    // An expired temporary entry counts as absent, so its replacement is new.
    const isNew = oldEntry === undefined || (!isPersistent && oldLive < input.ledgerSeq)
    const newTtl = after.get(ttlId)
    const newLiveUntil = newTtl?.data.type === EntryType.ttl ? newTtl.data.ttl.liveUntilLedgerSeq : 0
    const change: RentChange = {
      persistent: isPersistent,
      isCode: key.type === EntryType.contractCode,
      oldSizeBytes: isNew ? 0 : rentSizeBytes(input.settings, oldEntry),
      newSizeBytes: rentSizeBytes(input.settings, entry),
      oldLiveUntil: isNew ? 0 : oldLive,
      newLiveUntil
    }
    if (change.oldLiveUntil < newLiveUntil || change.newSizeBytes > change.oldSizeBytes) changes.push(change)
  }
  return changes
}

const succeed = (
  input: HostInput,
  storage: Storage,
  host: HostContext,
  changes: Store,
  returnValue: ScVal
): HostSuccess => {
  const recordedAuth = input.access.mode === "record" ? host.auth.recordedEntries() : undefined
  const { readOnly, readWrite, footprint } = keysOf(input, storage)
  const all = [...readOnly, ...readWrite]
  stamp(storage, readWrite, input.ledgerSeq)
  let diskReadBytes = 0
  for (const [id, key] of all) {
    const entry = isDiskKey(key) || storage.restored.has(id) ? input.store.get(id) : undefined
    if (entry !== undefined) diskReadBytes += entrySizeBytes(entry)
  }
  let writeBytes = 0
  for (const [id] of readWrite) {
    const entry = changes.get(id)
    if (entry !== undefined) writeBytes += entrySizeBytes(entry)
  }
  const events = host.log.emitted
  let eventsBytes = codec.ScVal.encode(returnValue).length
  for (const event of events) eventsBytes += codec.ContractEvent.encode(event).length
  const auth = recordedAuth ?? input.auth
  chargeSurroundings(host, changes, { returnValue, events, eventsBytes, readOnly, readWrite, auth })
  const restoredIndices = readWrite.flatMap(([id], i) => (storage.restored.has(id) ? [i] : []))
  return {
    ok: true,
    returnValue,
    events,
    diagnostics: host.log.all,
    changes,
    rentChanges: rentChangesOf(input, storage, input.store, changes, all),
    footprint,
    restoredIndices,
    ...(recordedAuth === undefined ? {} : { recordedAuth }),
    instructions: host.meter.instructions,
    diskReadBytes,
    writeBytes,
    eventsBytes
  }
}

/** Runs a host function. Throws only `Unsupported`, for features that this engine does not implement. */
export const invokeHostFunction = (input: HostInput): HostResult => {
  const changes = input.store.child()
  const footprint = input.access.mode === "enforce" ? input.access.footprint : undefined
  const storage = new Storage(changes, footprint, input.ledgerSeq, input.settings, input.crypto)
  let host: HostContext | undefined
  try {
    host = new HostContext(input, storage)
    return succeed(input, storage, host, changes, run(host))
  } catch (error) {
    if (!(error instanceof HostError)) throw error
    host?.logError(error)
    return {
      ok: false,
      error,
      diagnostics: host?.log.all ?? [],
      instructions: host?.meter.instructions ?? 0,
      memoryBytes: host?.meter.memoryBytes ?? 0
    }
  }
}
