// The ledger's RPC for this program: few methods, typed answers, one expected error. Answers are verified as far as
// possible: hashes are recomputed from the envelopes, a transaction's status is read before its meta. Calls are bounded
// in time and bytes; reads may be retried at another endpoint, a submission is never retried automatically.
import { Context, type Effect, Option, Schema } from "effect"
import { contract } from "../contract/Contract.ts"
import type { Envelope } from "../stellar/Envelope.ts"
import type { Holding } from "../stellar/Holding.ts"
import type { LedgerAccount } from "../stellar/LedgerEntry.ts"
import type { ContractEvent } from "../stellar/TransferEvents.ts"
import type { Value } from "../stellar/Value.ts"
import type { ExecutedTransaction } from "./Executed.ts"

/**
 * The ledger is unavailable: no RPC answered in time, or no answer was credible. This error does not decide about any
 * payment or transaction; the caller treats the question as open.
 */
export class LedgerUnavailable extends Schema.TaggedError<LedgerUnavailable>()("LedgerUnavailable", {
  /** The failed operation, such as `simulateTransaction`. */
  operation: Schema.String,
  /** The reason, without payloads. */
  message: Schema.String,
  /** No endpoint answered. This means an outage, while an implausible answer does not. */
  isSilent: Schema.optionalKey(Schema.Boolean),
  /** The system's error code of a failed connection, or the HTTP status. */
  code: Schema.optionalKey(Schema.String),
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** An answer that cannot be true. */
export const contradiction = (operation: string, message: string): LedgerUnavailable =>
  new LedgerUnavailable({ operation, message })

export interface LatestLedger {
  readonly sequence: number
  /** Unix seconds. */
  readonly closedAtSeconds: number
  readonly protocolVersion: number
  /** The answering endpoint, by its position in the settings, from 0. */
  readonly endpoint: number
}

/** A node's answer to a submission. An answer does not end a settlement (rules 3). */
type SendAnswer =
  | { readonly _tag: "Pending" }
  | { readonly _tag: "Duplicate" }
  | { readonly _tag: "TryAgainLater" }
  /**
   * Refused by the node's queue; `code` is the transaction result's name, such as `txBadSeq`. `askedStroops`: the
   * required inclusion bid, if the node reports it.
   */
  | { readonly _tag: "Error"; readonly code: string; readonly askedStroops?: bigint }
  /** No credible answer: the transaction may or may not have arrived. */
  | { readonly _tag: "Lost"; readonly message: string }

export type TransactionAnswer =
  | {
      readonly _tag: "NotFound"
      /** The newest and oldest ledger of this node's history. */
      readonly latestLedger: number
      readonly oldestLedger: number
    }
  | { readonly _tag: "Included"; readonly executed: ExecutedTransaction; readonly latestLedger: number }

export interface ScanRequest {
  readonly fromLedger: number
  /** Default: the newest. */
  readonly toLedger?: number
  /** Selects the transactions to decode, by their hash on the ledger (hex; the outer one of a fee bump). */
  readonly matches: (hash: string) => boolean
}

export interface ScanAnswer {
  /** Every ledger from the requested one to this one was scanned; below `fromLedger` if no ledger was scanned. */
  readonly scannedTo: number
  readonly oldestLedger: number
  readonly found: ReadonlyArray<{ readonly executed: ExecutedTransaction; readonly envelope: Envelope }>
}

export type SimulationAnswer =
  | {
      readonly _tag: "Simulated"
      readonly latestLedger: number
      /** `minResourceFee`, stroops. */
      readonly resourceFeeStroops: bigint
      /** XDR of SorobanTransactionData, including the resource fee. */
      readonly sorobanDataXdr: Uint8Array
      /** Archived entries that the transaction restores itself (protocol 23 and later); the fee covers them. */
      readonly restoredEntries?: number
      /** XDR of DiagnosticEvents, in order. */
      readonly eventsXdr: ReadonlyArray<Uint8Array>
      /** XDR of the ScVal that the call returns, if the node reports it. */
      readonly resultXdr?: Uint8Array
      /**
       * XDR of SorobanAuthorizationEntries: the proposed ones of a recording simulation, the sent ones of an enforcing
       * simulation.
       */
      readonly authXdr: ReadonlyArray<Uint8Array>
    }
  /**
   * The host refuses. `code` is `Error(Type, Code)` of the first line; `detail` a bounded excerpt of the host's
   * message.
   */
  | { readonly _tag: "Refused"; readonly latestLedger: number; readonly code: string; readonly detail: string }
  /**
   * Archived entries need a separate restore transaction, because the resource data does not restore them. Its fee in
   * stroops, if the node reports it.
   */
  | { readonly _tag: "RestoreRequired"; readonly latestLedger: number; readonly restoreStroops?: bigint }

export interface EventsAnswer {
  /** Every event up to this ledger is included; of later events perhaps some. */
  readonly latestLedger: number
  /** In the ledger's order. */
  readonly events: ReadonlyArray<{ readonly ledger: number; readonly event: ContractEvent }>
}

export interface SnapshotQuery {
  /** Address, G… */
  readonly channel: string
  /** Absent if unknown. */
  readonly nonce: { readonly address: string; readonly nonce: bigint } | undefined
}

export interface SnapshotAnswer {
  /** Absent if the account is not on the ledger. */
  readonly sequence: bigint | undefined
  /** The ledger in which the nonce was used; a deleted entry reads as unspent. */
  readonly nonce: number | "unspent" | "unknown"
}

/** The answers of one endpoint only: no other endpoint is called when it fails. */
export interface EndpointReader {
  /** By its position in the settings. */
  readonly endpoint: number
  readonly snapshots: LedgerReads["snapshots"]
  readonly transaction: LedgerReads["transaction"]
  readonly scan: (request: ScanRequest) => Effect.Effect<ScanAnswer, LedgerUnavailable>
}

interface LedgerReads {
  /** Reads a transaction by inner or outer hash, hex. */
  readonly transaction: (hash: string) => Effect.Effect<TransactionAnswer, LedgerUnavailable>
  /**
   * Channels, each with the nonce of the authorization that it carries, all as of one ledger, in the requested order.
   * At most 100.
   */
  readonly snapshots: (queries: ReadonlyArray<SnapshotQuery>) => Effect.Effect<
    {
      readonly latestLedger: number
      readonly snapshots: ReadonlyArray<SnapshotAnswer>
      readonly endpoint?: number
    },
    LedgerUnavailable
  >
}

interface LedgerHeader {
  /** Hex. */
  readonly hash: string
  /** The ledgers before it contain no transactions. */
  readonly isFirst: boolean
}

export interface FeeStats {
  /** Percentiles of recent Soroban inclusion fees, stroops. */
  readonly p50: bigint
  readonly p90: bigint
  readonly p99: bigint
}

export class LedgerRpc extends Context.Service<
  LedgerRpc,
  {
    readonly latestLedger: Effect.Effect<LatestLedger, LedgerUnavailable>
    /** Every endpoint's own answer, requested concurrently; silent endpoints are left out. */
    readonly latestLedgers: Effect.Effect<ReadonlyArray<LatestLedger>>
    /** Sets the endpoints off the selected head: they are called last, until the next call of this function. */
    readonly setUnfit: (endpoints: ReadonlySet<number>) => Effect.Effect<void>
    readonly feeStats: Effect.Effect<FeeStats, LedgerUnavailable>
    /** `envelope` is base64 XDR. Auth entries in it are enforced; without any, they are recorded. */
    readonly simulate: (envelope: string) => Effect.Effect<SimulationAnswer, LedgerUnavailable>
    /**
     * Sends once, and again if an open connection turns out to be closed: repeated sending of a transaction counts
     * once. A lost answer is a result, not an error. `outerHash` is ours; an answer with another hash is Lost.
     */
    readonly send: (envelope: string, outerHash: string) => Effect.Effect<SendAnswer>
    readonly transaction: LedgerReads["transaction"]
    /** Scans ledgers for transactions, page after page, a bounded number of them. */
    readonly scan: (request: ScanRequest) => Effect.Effect<ScanAnswer, LedgerUnavailable>
    /** Accounts as of one ledger; missing ones are absent from the map. At most 200. */
    readonly accounts: (
      addresses: ReadonlyArray<string>
    ) => Effect.Effect<
      { readonly latestLedger: number; readonly accounts: ReadonlyMap<string, LedgerAccount> },
      LedgerUnavailable
    >
    readonly snapshots: LedgerReads["snapshots"]
    /** A ledger of a node's history; fails for any other. */
    readonly header: (sequence: number) => Effect.Effect<LedgerHeader, LedgerUnavailable>
    /** Every endpoint except this one, in call order; empty with one endpoint. */
    readonly others: (endpoint: number | undefined) => Effect.Effect<ReadonlyArray<EndpointReader>>
    /** Moves an endpoint that contradicted the others behind them in call order, for an hour. */
    readonly distrust: (endpoint: number) => Effect.Effect<void>
    /** The endpoints that are distrusted now. */
    readonly distrusted: Effect.Effect<ReadonlyArray<number>>
    /**
     * Values of contracts' data entries as of one ledger, by their base64 keys; missing entries are absent. At most
     * 200.
     */
    readonly contractData: (
      keys: ReadonlyArray<string>
    ) => Effect.Effect<
      { readonly latestLedger: number; readonly values: ReadonlyMap<string, Value> },
      LedgerUnavailable
    >
    /**
     * The events that a contract published, from a ledger on. Fails if a node's history begins after that ledger or
     * ends before it, and if the range exceeds one reading: 10,000 events or ledgers.
     */
    readonly contractEvents: (contract: string, fromLedger: number) => Effect.Effect<EventsAnswer, LedgerUnavailable>
    /**
     * The sha256, hex, of a contract's code; None if it does not exist, or has no code, like the network's asset
     * contracts.
     */
    readonly codeHash: (contract: string) => Effect.Effect<Option.Option<string>, LedgerUnavailable>
    /**
     * The balances of these addresses in the asset behind a contract. Addresses without an entry are absent; the
     * issuer's balance is unbounded. None for a contract that is not an asset of the network.
     */
    readonly holdings: (
      contract: string,
      addresses: ReadonlyArray<string>
    ) => Effect.Effect<Option.Option<ReadonlyMap<string, Holding>>, LedgerUnavailable>
    /** Whether the nonce of an address credential is used up and still live on the ledger. */
    readonly nonceSpent: (
      address: string,
      nonce: bigint
    ) => Effect.Effect<
      { readonly latestLedger: number; readonly spent: boolean; readonly inLedger: Option.Option<number> },
      LedgerUnavailable
    >
  }
>()("tollkeeper/ledger/LedgerRpc") {}

/** The RPC driver: reads and submissions, without the clock that follows the ledger. */
export const rpcContract = contract("rpc", LedgerRpc)
