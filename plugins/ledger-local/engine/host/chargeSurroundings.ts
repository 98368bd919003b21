// What the network charges around a host function call: for decoding what comes in (the call, its authorization, the
// footprint and its entries), and for encoding what goes out (the value, the events, and every entry that may have
// changed). It is known for sure when the call has ended, because a simulation finds the footprint on the way.
import { CredentialsType, EntryType } from "../xdr/types.ts"
import { callsIn } from "../auth/Auth.ts"
import { entrySizeBytes } from "../state/entrySize.ts"
import { hasTtl, type KeyString } from "../state/LedgerKeys.ts"
import type { Store } from "../state/Store.ts"
import { piecesOfEntry, piecesOfEvent, piecesOfKey, piecesOfValue, valuesIn } from "../xdr/valueSizes.ts"
import {
  codec,
  type ContractEvent,
  type LedgerEntry,
  type LedgerKey,
  type ScVal,
  type SorobanAuthorizationEntry
} from "../xdr/Xdr.ts"
import type { HostContext } from "./HostContext.ts"
import type { InstructionMeter } from "./InstructionMeter.ts"
import { Price } from "./instructionPrices.ts"

type Keys = ReadonlyArray<readonly [KeyString, LedgerKey]>

export interface Surroundings {
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
const TTL_BYTES = 48
/** What a signature will add to an authorization entry that a simulation leaves unsigned. */
const SIGNATURE_BYTES = 160
const SEED_BYTES = 64
const RESOURCES_BYTES = 20

const chargeDecoding = (meter: InstructionMeter, bytes: number): void => meter.charge(meter.costs.valDeser, bytes)

const chargeEncoding = (meter: InstructionMeter, pieces: number, bytes: number): void => {
  const { constant, linear128 } = meter.costs.valSer
  meter.spend(pieces * (constant + Price.pieceWritten) + (linear128 * bytes) / 128)
}

const chargeEntryRead = (meter: InstructionMeter, key: LedgerKey, entry: LedgerEntry): void => {
  chargeDecoding(meter, entrySizeBytes(entry))
  if (hasTtl(key)) chargeDecoding(meter, TTL_BYTES)
  if (entry.data.type === EntryType.contractCode) meter.spend(Price.codeRead)
  else if (entry.data.type === EntryType.trustLine) meter.spend(Price.trustLineRead)
  else if (entry.data.type === EntryType.contractData)
    meter.spend(Price.valueRead * valuesIn(entry.data.contractData.val))
}

const chargeAuth = (host: HostContext, auth: ReadonlyArray<SorobanAuthorizationEntry>): void => {
  const isRecorded = host.input.access.mode === "record"
  for (const entry of auth) {
    const unsigned = isRecorded && entry.credentials.type !== CredentialsType.sourceAccount ? SIGNATURE_BYTES : 0
    chargeDecoding(host.meter, codec.SorobanAuthorizationEntry.encode(entry).length + unsigned)
    // Entries that were given are counted when they are taken in.
    if (isRecorded) host.meter.spend(Price.authorizedCall * callsIn(entry.rootInvocation))
  }
}

/** Footprint and resources as XDR: keys, two counts and three numbers. A key's string is its XDR. */
const resourcesBytes = (keys: Keys): number => keys.reduce((bytes, [id]) => bytes + id.length, RESOURCES_BYTES)

export const chargeSurroundings = (host: HostContext, changes: Store, around: Surroundings): void => {
  const { meter, input } = host
  const { returnValue, events, readOnly, readWrite } = around
  const keys = [...readOnly, ...readWrite]
  const pairs = (keys.length * (keys.length + 1)) / 2
  meter.spend(Price.call + Price.readOnlyKey * readOnly.length + Price.pairOfKeys * pairs)
  meter.charge(meter.costs.computeSha256Hash, SEED_BYTES)
  meter.charge(meter.costs.computeSha256Hash, SEED_BYTES)
  chargeDecoding(meter, SOURCE_BYTES)
  chargeDecoding(meter, codec.HostFunction.encode(input.hostFunction).length)
  chargeDecoding(meter, resourcesBytes(keys))
  chargeAuth(host, around.auth)
  const pieces = events.reduce((sum, event) => sum + piecesOfEvent(event), piecesOfValue(returnValue))
  chargeEncoding(meter, pieces, around.eventsBytes)
  for (const [i, [id, key]] of keys.entries()) {
    chargeEncoding(meter, piecesOfKey(key), id.length)
    const before = input.store.get(id)
    if (before !== undefined) chargeEntryRead(meter, key, before)
    const after = i < readOnly.length ? undefined : changes.get(id)
    if (after === undefined) continue
    chargeEncoding(meter, piecesOfEntry(after), entrySizeBytes(after))
    meter.spend(Price.entryWritten)
  }
}
