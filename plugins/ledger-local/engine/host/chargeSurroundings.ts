// The network's charges around a host function call: for decoding its input (the call, its authorization, the footprint
// and its entries), and for encoding its output (the value, the events, and every entry that may have changed). They
// are only certain when the call has ended, because a simulation finds the footprint during the call.
import { CredentialsType } from "../xdr/types.ts"
import { callsIn } from "../auth/Auth.ts"
import { entrySizeBytes } from "../state/rentSize.ts"
import { hasTtl, type KeyString } from "../state/LedgerKeys.ts"
import type { Store } from "../state/Store.ts"
import { piecesOfEntry, piecesOfEvent, piecesOfKey, piecesOfValue } from "../xdr/valueSizes.ts"
import {
  codec,
  type ContractEvent,
  type LedgerEntry,
  type LedgerKey,
  type ScVal,
  type SorobanAuthorizationEntry
} from "../xdr/Xdr.ts"
import type { HostContext } from "./HostContext.ts"
import { costOf, type InstructionMeter } from "./InstructionMeter.ts"
import { Price } from "./instructionPrices.ts"

type Keys = ReadonlyArray<readonly [KeyString, LedgerKey]>

interface Surroundings {
  readonly returnValue: ScVal
  readonly events: ReadonlyArray<ContractEvent>
  /** Of the value and the events together. */
  readonly eventsBytes: number
  readonly readOnly: Keys
  readonly readWrite: Keys
  readonly auth: ReadonlyArray<SorobanAuthorizationEntry>
}

/** The account that is the source, as XDR. */
const SOURCE_BYTES = 36
const TTL_BYTES = 36
/** Bytes that a signature will add to an authorization entry that a simulation leaves unsigned. */
const SIGNATURE_BYTES = 160
const SEED_BYTES = 64
const AUTH_LIST_BYTES = 40
const AUTH_BYTES = 400
const LIST_BYTES = 24
/** Bytes of the tracker's data for an entry, and for a call below another one. */
const TRACKER_NOTE_BYTES = 104
const CALL_NOTE_BYTES = 48
const RESOURCES_BYTES = 20

const chargeDecoding = (meter: InstructionMeter, bytes: number): void => meter.charge(meter.costs.valDeser, bytes)

const chargeEncoding = (meter: InstructionMeter, pieces: number, bytes: number): void => {
  const { constant, linear128 } = meter.costs.valSer
  meter.spend(pieces * constant + (linear128 * bytes) / 128)
}

const chargeEntryRead = (meter: InstructionMeter, key: LedgerKey, entry: LedgerEntry): void => {
  chargeDecoding(meter, entrySizeBytes(entry))
  if (hasTtl(key)) chargeDecoding(meter, TTL_BYTES)
  // The entry's previous value is encoded again, for its size.
  chargeEncoding(meter, piecesOfEntry(entry), entrySizeBytes(entry))
}

/** The maps of the entries: built before the call, iterated after it. */
const chargeMaps = ({ meter, input, storage }: HostContext, { readOnly, readWrite }: Surroundings): void => {
  const maps = storage.settle(meter, [...readOnly, ...readWrite])
  const there = maps.ids.map((id) => input.store.get(id) !== undefined)
  const isThere = (position: number): boolean => there[position]!
  const positionsOf = (keys: Keys): Array<number> => keys.map(([id]) => maps.positions.get(id)!)
  meter.spend(maps.build(positionsOf(readOnly), positionsOf(readWrite), isThere) + maps.compare(isThere))
  for (const [position, key] of maps.keys.entries())
    if (hasTtl(key) && !isThere(position)) meter.charge(meter.costs.computeSha256Hash, maps.ids[position]!.length)
  // The host function itself is a frame.
  meter.spend(maps.snapshot)
}

/** Each frame, including the host function's, snapshots the progress of every authorized call, for rollback. */
const chargeAuthSnapshots = ({ meter, framesOpened }: HostContext, auth: Surroundings["auth"]): void => {
  const { memCpy, memAlloc } = meter.costs
  const list = (headBytes: number, bytes: number): number =>
    costOf(memCpy, headBytes) + costOf(memAlloc, bytes) + costOf(memCpy, bytes)
  const calls = auth.reduce((sum, entry) => sum + callsIn(entry.rootInvocation), 0)
  const nested = (calls - auth.length) * (list(0, CALL_NOTE_BYTES) - list(0, 0))
  const perFrame = list(LIST_BYTES, TRACKER_NOTE_BYTES * auth.length) + calls * list(AUTH_LIST_BYTES, 0) + nested
  meter.spend((framesOpened + 1) * perFrame)
}

const chargeAuth = (host: HostContext, auth: ReadonlyArray<SorobanAuthorizationEntry>): void => {
  const isRecorded = host.input.access.mode === "record"
  host.meter.chargeList(AUTH_LIST_BYTES, auth.length * AUTH_BYTES)
  for (const entry of auth) {
    const unsigned = isRecorded && entry.credentials.type !== CredentialsType.sourceAccount ? SIGNATURE_BYTES : 0
    chargeDecoding(host.meter, codec.SorobanAuthorizationEntry.encode(entry).length + unsigned)
    // Entries that were given are counted when they are taken in.
    if (isRecorded) host.meter.spend(Price.authorizedCall * callsIn(entry.rootInvocation))
  }
  chargeAuthSnapshots(host, auth)
}

/** Footprint and resources as XDR: keys, two counts and three numbers. A key's string is its XDR. */
const resourcesBytes = (keys: Keys): number => keys.reduce((bytes, [id]) => bytes + id.length, RESOURCES_BYTES)

export const chargeSurroundings = (host: HostContext, changes: Store, around: Surroundings): void => {
  const { meter, input } = host
  const { returnValue, events, readOnly, readWrite } = around
  const keys = [...readOnly, ...readWrite]
  meter.spend(Price.call)
  chargeMaps(host, around)
  meter.charge(meter.costs.computeSha256Hash, SEED_BYTES)
  meter.charge(meter.costs.computeSha256Hash, SEED_BYTES)
  chargeDecoding(meter, SOURCE_BYTES)
  chargeDecoding(meter, codec.HostFunction.encode(input.hostFunction).length)
  chargeDecoding(meter, resourcesBytes(keys))
  chargeAuth(host, around.auth)
  const pieces = events.reduce((sum, event) => sum + piecesOfEvent(event), piecesOfValue(returnValue))
  chargeEncoding(meter, pieces, around.eventsBytes)
  meter.chargeList(LIST_BYTES, events.length * LIST_BYTES)
  for (const [i, [id, key]] of keys.entries()) {
    chargeEncoding(meter, piecesOfKey(key), id.length)
    const before = input.store.get(id)
    if (before !== undefined) chargeEntryRead(meter, key, before)
    const after = i < readOnly.length ? undefined : changes.get(id)
    if (after === undefined) continue
    chargeEncoding(meter, piecesOfEntry(after), entrySizeBytes(after))
  }
}
