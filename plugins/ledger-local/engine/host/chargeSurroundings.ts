// What the network charges around a host function call: for decoding what comes in (the call, its authorization, the
// footprint and its entries), and for encoding what goes out (the value, the events, and every entry that may have
// changed). It is known for sure when the call has ended, because a simulation finds the footprint on the way.
import { CredentialsType, EntryType } from "../xdr/types.ts"
import { callsIn } from "../auth/Auth.ts"
import { hasTtl, keyString } from "../state/LedgerKeys.ts"
import type { Store } from "../state/Store.ts"
import { piecesOfEntry, piecesOfEvent, piecesOfKey, piecesOfValue, valuesIn } from "../xdr/valueSizes.ts"
import {
  codec,
  type ContractEvent,
  type LedgerEntry,
  type LedgerFootprint,
  type LedgerKey,
  type ScVal,
  type SorobanAuthorizationEntry
} from "../xdr/Xdr.ts"
import type { HostContext } from "./HostContext.ts"
import type { InstructionMeter } from "./InstructionMeter.ts"
import { Price } from "./instructionPrices.ts"

export interface Surroundings {
  readonly returnValue: ScVal
  readonly events: ReadonlyArray<ContractEvent>
  readonly footprint: LedgerFootprint
  readonly auth: ReadonlyArray<SorobanAuthorizationEntry>
}

/** The account that is the source, as XDR. */
const SOURCE_BYTES = 36
const TTL_BYTES = 48
/** What a signature will add to an authorization entry that a simulation leaves unsigned. */
const SIGNATURE_BYTES = 160
const SEED_BYTES = 64

const chargeDecoding = (meter: InstructionMeter, bytes: number): void => meter.charge(meter.costs.valDeser, bytes)

const chargeEncoding = (meter: InstructionMeter, pieces: number, bytes: number): void => {
  const { constant, linear128 } = meter.costs.valSer
  meter.spend(pieces * (constant + Price.pieceWritten) + (linear128 * bytes) / 128)
}

const chargeEntryRead = (meter: InstructionMeter, key: LedgerKey, entry: LedgerEntry): void => {
  chargeDecoding(meter, codec.LedgerEntry.encode(entry).length)
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

export const chargeSurroundings = (host: HostContext, changes: Store, around: Surroundings): void => {
  const { meter, input } = host
  const { readOnly, readWrite } = around.footprint
  const keys = readOnly.length + readWrite.length
  meter.spend(Price.call + Price.readOnlyKey * readOnly.length + (Price.pairOfKeys * keys * (keys + 1)) / 2)
  meter.charge(meter.costs.computeSha256Hash, SEED_BYTES)
  meter.charge(meter.costs.computeSha256Hash, SEED_BYTES)
  chargeDecoding(meter, SOURCE_BYTES)
  chargeDecoding(meter, codec.HostFunction.encode(input.hostFunction).length)
  const resources = { footprint: around.footprint, instructions: 0, diskReadBytes: 0, writeBytes: 0 }
  chargeDecoding(meter, codec.SorobanResources.encode(resources).length)
  chargeAuth(host, around.auth)
  chargeEncoding(meter, piecesOfValue(around.returnValue), codec.ScVal.encode(around.returnValue).length)
  for (const event of around.events)
    chargeEncoding(meter, piecesOfEvent(event), codec.ContractEvent.encode(event).length)
  for (const [i, key] of [...readOnly, ...readWrite].entries()) {
    const id = keyString(key)
    chargeEncoding(meter, piecesOfKey(key), codec.LedgerKey.encode(key).length)
    const before = input.store.get(id)
    if (before !== undefined) chargeEntryRead(meter, key, before)
    const after = i < readOnly.length ? undefined : changes.get(id)
    if (after === undefined) continue
    chargeEncoding(meter, piecesOfEntry(after), codec.LedgerEntry.encode(after).length)
    meter.spend(Price.entryWritten)
  }
}
