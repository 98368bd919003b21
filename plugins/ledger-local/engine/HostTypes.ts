// What goes into a host function call and what comes out. The result is a value in every case: success with the overlay
// that holds the changes, or the host's error with its diagnostic events and no changes. Nothing is written to the
// given store; the caller commits the child it gets back. `Unsupported` is the only thing thrown (see HostError.ts).
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { RentChange } from "./Fees.ts"
import type { HostError } from "./HostError.ts"
import type { NetworkSettings } from "./NetworkSettings.ts"
import type { Store } from "./Store.ts"
import type {
  ContractCodeEntry,
  ContractEvent,
  DiagnosticEvent,
  HostFunction,
  LedgerFootprint,
  PublicKey,
  ScVal,
  SorobanAuthorizationEntry
} from "./Xdr.ts"

/** The synchronous cryptography the engine needs: the service behind the kernel's port. */
export type EngineCrypto = Crypto["Service"]

/**
 * How the host meets the footprint and the authorization.
 * - `enforce`: both given and enforced; how a transaction is applied.
 * - `enforce-recording-footprint`: authorization enforced, footprint found out; an RPC simulation with signed entries.
 * - `record`: both found out; an RPC simulation without entries. Each nonce comes from `randomNonce` (0 to 2^63 − 1).
 */
export type Access =
  | { readonly mode: "enforce"; readonly footprint: LedgerFootprint }
  | { readonly mode: "enforce-recording-footprint" }
  | {
      readonly mode: "record"
      readonly randomNonce: () => bigint
      /** Recorded entries use ADDRESS_V2 credentials instead of ADDRESS. */
      readonly useUpgradedAuth: boolean
      /** Authorization for calls below the root is refused unless this is set. */
      readonly allowNonRoot: boolean
    }

export interface HostInput {
  readonly store: Store
  readonly settings: NetworkSettings
  /** The ledger being applied; for a simulation, the latest closed one. */
  readonly ledgerSeq: number
  /** Its close time, seconds since 1970. */
  readonly closeTime: bigint
  /** SHA-256 of the network passphrase. */
  readonly networkId: Uint8Array
  /** Source of the operation. */
  readonly source: PublicKey
  readonly hostFunction: HostFunction
  readonly auth: ReadonlyArray<SorobanAuthorizationEntry>
  readonly access: Access
  readonly crypto: EngineCrypto
  /** Runs contract wasm; without it a wasm contract is `Unsupported`. */
  readonly contracts?: ContractRuntime
  /** Archived entries that the transaction has just restored into `store`; their rent is that of new entries. */
  readonly restored?: ReadonlySet<string>
  /** Seed of the contracts' random numbers, 32 bytes: the hash of the transaction and the operation's index. */
  readonly randomSeed?: Uint8Array
}

export interface HostSuccess {
  readonly ok: true
  readonly returnValue: ScVal
  /** Contract events in order, as in the meta and the success hash. */
  readonly events: ReadonlyArray<ContractEvent>
  /** Events with diagnostics between them, in order, as the RPC shows them. */
  readonly diagnostics: ReadonlyArray<DiagnosticEvent>
  /** An overlay on the input's store with every changed entry, TTL entries included. */
  readonly changes: Store
  /** What the rent is charged for, in footprint order. */
  readonly rentChanges: ReadonlyArray<RentChange>
  /** Every key read or written, sorted by XDR: given when enforcing, found when recording. */
  readonly footprint: LedgerFootprint
  /** Positions in `footprint.readWrite` of archived entries that were restored on the way; only when recording. */
  readonly restoredIndices: ReadonlyArray<number>
  /** The authorization entries to sign; only when recording. */
  readonly recordedAuth?: ReadonlyArray<SorobanAuthorizationEntry>
  /** Calibrated estimate of the instructions used, unpadded. */
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
}

export type HostResult = HostSuccess | HostFailure

/** What a contract runtime is asked to do: call `fn` of the wasm `code` in the frame on top of `host`. */
export interface ContractCall {
  readonly contractId: Uint8Array
  readonly wasmHash: Uint8Array
  readonly code: Uint8Array
  readonly fn: string
  readonly args: ReadonlyArray<ScVal>
  /** A module without the function returns void instead of failing (constructors). */
  readonly missingIsNoop: boolean
}

/**
 * The seam for contract wasm. `host` is the engine's `HostContext`, whose methods are the host functions' primitives.
 */
export interface ContractRuntime {
  readonly call: (host: import("./HostContext.ts").HostContext, call: ContractCall) => ScVal
  /**
   * Refuses code the network would refuse at upload, by throwing a HostError; otherwise its cost inputs, as the code
   * entry keeps them.
   */
  readonly validate: (code: Uint8Array, settings: NetworkSettings) => ContractCodeEntry["ext"]
}
