// The result of a host function call, always a value: success with the overlay that holds the changes, or the host's
// error with its diagnostic events and without changes. The given store is not written; the caller commits the returned
// child.
import type { RentChange } from "../state/Fees.ts"
import type { Store } from "../state/Store.ts"
import type { ContractEvent, DiagnosticEvent, LedgerFootprint, ScVal, SorobanAuthorizationEntry } from "../xdr/Xdr.ts"
import type { HostError } from "./HostError.ts"

export interface HostSuccess {
  readonly ok: true
  readonly returnValue: ScVal
  /** Contract events in order, as in the meta and the success hash. */
  readonly events: ReadonlyArray<ContractEvent>
  /** Events with diagnostics between them, in order, as the RPC shows them. */
  readonly diagnostics: ReadonlyArray<DiagnosticEvent>
  /** An overlay on the input's store with every changed entry, TTL entries included. */
  readonly changes: Store
  /** Entries that pay rent, in footprint order. */
  readonly rentChanges: ReadonlyArray<RentChange>
  /** Every key read or written, sorted by XDR: given when enforcing, found when recording. */
  readonly footprint: LedgerFootprint
  /** Positions in `footprint.readWrite` of archived entries that were restored on the way; only when recording. */
  readonly restoredIndices: ReadonlyArray<number>
  /** The authorization entries to sign; only when recording. */
  readonly recordedAuth?: ReadonlyArray<SorobanAuthorizationEntry>
  /** The instructions that the network would meter, unpadded. */
  readonly instructions: number
  /** Bytes of classic entries read, by the footprint. */
  readonly diskReadBytes: number
  /** Bytes of entries written, by the footprint. */
  readonly writeBytes: number
  /** Bytes of events and return value, the basis of the refundable events fee. */
  readonly eventsBytes: number
}

export interface HostFailure {
  readonly ok: false
  readonly error: HostError
  readonly diagnostics: ReadonlyArray<DiagnosticEvent>
  readonly instructions: number
  /** Bytes that contracts used for values and linear memory. */
  readonly memoryBytes: number
}

export type HostResult = HostSuccess | HostFailure
