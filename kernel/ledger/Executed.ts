// The content of an included transaction, read from the ledger's answer. Amounts are atomic units, fees stroops.
// `transfers` is None if the meta could not be decoded: then only the status is available.
import type { xdr } from "@stellar/stellar-sdk/base"
import type { Option } from "effect"
import type { TransferEvent } from "../stellar/TransferEvents.ts"

export interface ExecutedTransaction {
  /** The endpoint that showed it, by its position in the settings. */
  readonly endpoint?: number
  readonly ledger: number
  /** Unix seconds of the ledger's close. */
  readonly closedAtSeconds: number
  /** Hex of the inner transaction's hash, recomputed from the envelope. */
  readonly innerHash: string
  /** Hex of the fee bump's hash; equal to `innerHash` when the transaction was not bumped. */
  readonly outerHash: string
  readonly feeChargedStroops: bigint
  readonly succeeded: boolean
  readonly transfers: Option.Option<ReadonlyArray<TransferEvent>>
  /** Every contract event in order, for a scheme with its own events; absent if the meta could not be decoded. */
  readonly contractEvents?: ReadonlyArray<xdr.ContractEventWire>
  /** Changes that the transaction's operations made to ledger entries, in order; absent like the events. */
  readonly entryChanges?: ReadonlyArray<xdr.LedgerEntryChangeWire>
}
