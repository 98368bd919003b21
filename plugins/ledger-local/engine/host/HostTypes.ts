// Input of a host function call, and the running host's interfaces for authorization, the asset contract and contract
// wasm. They depend on the host only through `ContractHost`, which avoids circular imports.
import type { EngineCrypto, Random } from "./Random.ts"
import type { NetworkSettings } from "../state/NetworkSettings.ts"
import type { Store } from "../state/Store.ts"
import type {
  ContractCodeEntry,
  ContractInstance,
  HostFunction,
  LedgerEntry,
  LedgerFootprint,
  LedgerKey,
  PublicKey,
  ScAddress,
  ScMapEntry,
  ScVal,
  SorobanAuthorizationEntry,
  SorobanAuthorizedFunction,
  SorobanAuthorizedInvocation,
  SorobanDelegateSignature
} from "../xdr/Xdr.ts"
import type { EventLog } from "./EventLog.ts"
import type { HostError } from "./HostError.ts"
import type { InstructionMeter } from "./InstructionMeter.ts"
import type { Storage } from "./Storage.ts"

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
  readonly source: PublicKey
  readonly hostFunction: HostFunction
  readonly auth: ReadonlyArray<SorobanAuthorizationEntry>
  readonly access: Access
  readonly crypto: EngineCrypto
  /** Runs contract wasm; without it a wasm contract is `Unsupported`. */
  readonly contracts?: ContractRuntime
  /** Archived entries that the transaction has just restored into `store`; their rent is that of new entries. */
  readonly restored?: ReadonlySet<string>
  /** The call's instruction limit; absent: the engine's maximum. */
  readonly instructionsMax?: number
  /** Seed of the contracts' random numbers, 32 bytes: of the transaction set's hash and the transaction's place. */
  readonly randomSeed?: Uint8Array
}

/** One delegate of the running authentication, usable once. */
interface Delegate {
  readonly signature: SorobanDelegateSignature
  used: boolean
}

/** The authentication running in a frame: the arguments of its `__check_auth`, for delegation. */
export interface AuthCheck {
  readonly payload: Uint8Array
  readonly invocation: SorobanAuthorizedInvocation
  readonly delegates: Array<Delegate>
}

export interface Frame {
  readonly contractId: Uint8Array
  readonly fn: string
  readonly args: ReadonlyArray<ScVal>
  readonly instance: ContractInstance
  readonly instanceKey: LedgerKey
  /** Instance storage as this frame sees it, sorted by key. */
  instanceStorage: ReadonlyArray<ScMapEntry>
  instanceChanged: boolean
  /** Present in a `__check_auth` called by the host. */
  readonly authCheck: AuthCheck | undefined
  /** The frame's random numbers, once it has asked for one. */
  random?: Random
}

export interface CallOptions {
  /** The host itself may call reserved functions (`__check_auth`, `__constructor`). */
  readonly reserved?: boolean
  /** `__check_auth` may re-enter the contract that is directly calling. */
  readonly allowSelfReentry?: boolean
  readonly authCheck?: AuthCheck
  /** A missing function is not an error (a contract without constructor). */
  readonly missingIsNoop?: boolean
}

/** What account authentication needs of the host. */
export interface AccountAuthHost {
  readonly verify: (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array) => boolean
  readonly require: (key: LedgerKey) => LedgerEntry
  readonly countSignature: () => void
}

export interface Authorization {
  /** Requires `address` to have authorized the current frame's call with `args`. */
  readonly require: (address: ScAddress, args: ReadonlyArray<ScVal>) => void
  /** Authorizations by the current contract for the contracts that its next call reaches. */
  readonly addInvokerAuth: (contract: ScAddress, invocations: ReadonlyArray<SorobanAuthorizedInvocation>) => void
  /** Authenticates a delegate of the running `__check_auth` with the same payload and context (CAP-71). */
  readonly delegate: (running: AuthCheck | undefined, address: ScAddress) => void
  /** For authorization, a contract creation is a separate frame. */
  readonly pushCreate: (fn: SorobanAuthorizedFunction) => void
  readonly pop: () => void
}

/** The running host: its storage, authorization, events and the frame on top. */
export interface ContractHost {
  readonly input: HostInput
  readonly storage: Storage
  readonly auth: Authorization
  readonly accountAuth: AccountAuthHost
  readonly log: EventLog
  readonly meter: InstructionMeter
  /** The contract call in progress. Throws outside of one. */
  readonly frame: Frame
  readonly currentContract: Uint8Array | null
  /** The contract that called the current one; null for a call from outside. */
  readonly callingContract: Uint8Array | null
  /** The transaction's random generator, which seeds each frame's generator. */
  random: Random | undefined
  readonly verifyEd25519: (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array) => boolean
  readonly countAddressAuth: () => void
  /** True for code that was uploaded in this very ledger. */
  readonly isNewCode: (code: LedgerEntry) => boolean
  readonly isRecoverable: (error: HostError) => boolean
  readonly logError: (error: HostError) => void
  readonly emit: (topics: ReadonlyArray<ScVal>, data: ScVal) => void
  /** Calls a contract by id. Rolls back the callee's changes before it throws the callee's error. */
  readonly call: (contractId: Uint8Array, fn: string, args: ReadonlyArray<ScVal>, options?: CallOptions) => ScVal
  readonly callCheckAuth: (contractId: Uint8Array, args: ReadonlyArray<ScVal>, authCheck: AuthCheck) => void
  readonly instanceGet: (key: ScVal) => ScVal | undefined
  readonly instancePut: (key: ScVal, val: ScVal | undefined) => void
}

export interface ContractModule {
  readonly wasmHash: Uint8Array
  readonly code: Uint8Array
  /** Uploaded or restored in this very ledger, so that the network has not parsed it yet. */
  readonly isNew: boolean
}

/** Input of a contract runtime: call `fn` of the wasm `code` in the frame on top of `host`. */
export interface ContractCall extends ContractModule {
  readonly contractId: Uint8Array
  readonly fn: string
  readonly args: ReadonlyArray<ScVal>
  /** A module without the function returns void instead of failing (constructors). */
  readonly missingIsNoop: boolean
}

/** The seam for contract wasm. */
export interface ContractRuntime {
  readonly call: (host: ContractHost, call: ContractCall) => ScVal
  /** The protocol that code was built for. */
  readonly protocolOf: (host: ContractHost, module: ContractModule) => number
  /**
   * Refuses code the network would refuse at upload, by throwing a HostError; otherwise its cost inputs, as the code
   * entry keeps them. The instance that is tried out is charged its memory.
   */
  readonly validate: (host: ContractHost, code: Uint8Array) => ContractCodeEntry["ext"]
}
