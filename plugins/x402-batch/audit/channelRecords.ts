// The database's side of the channels' audit: every settled call of the contract, read from the envelope that was sent,
// and the records of sellers that use the store. Like the rest of the audit, it uses separate SQL.
import { xdr } from "@stellar/stellar-sdk/base"
import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { callOf } from "../../../kernel/stellar/ContractCall.ts"
import { transactionIn } from "../../../kernel/stellar/Envelope.ts"
import { readXdr } from "../../../kernel/stellar/readXdr.ts"
import { addressOf, type Value } from "../../../kernel/stellar/Value.ts"
import { batchFunctions, claimsOfValue } from "../batchCalls.ts"
import { channelIdOf, type ChannelConfig, type ClaimEntry, configOfValue, decodeChannelConfig } from "../batchCodec.ts"

export interface NamedChannel {
  readonly contract: string
  readonly channelId: string
  readonly config: ChannelConfig
}

/** A settled call of the contract. Amounts are atomic units. */
export interface ChannelCall {
  readonly settlement: string
  /** Hash of the inner transaction, 64 hex. */
  readonly transaction: string
  readonly ledger: number
  readonly contract: string
  readonly functionName: string
  readonly moved: bigint
  /** The channel of a deposit, refund or withdrawal. */
  readonly channel: NamedChannel | undefined
  /** Receiver and token of a settle. */
  readonly swept: { readonly receiver: string; readonly token: string } | undefined
  readonly claims: ReadonlyArray<NamedChannel & { readonly totalClaimed: bigint }>
}

/** A seller's record of a channel in the store. */
export interface StoredChannel extends NamedChannel {
  readonly principal: string
  /** Whether the store's key allows its claims. */
  readonly delegated: boolean
  readonly charged: bigint
  readonly totalClaimed: bigint
  /** A signed refund that may be paid out, with its nonce. */
  readonly refund: { readonly amount: bigint; readonly nonce: bigint } | undefined
}

interface CallRow {
  readonly settlement: string
  readonly transaction: string
  readonly ledger: bigint
  readonly moved: string | null
  readonly envelope: Uint8Array
}

/** Positions of the config and the claims in a function's arguments. */
const places: Readonly<Record<string, { readonly config?: number; readonly claims?: number }>> = {
  [batchFunctions.deposit]: { config: 1 },
  [batchFunctions.claim]: { claims: 0 },
  [batchFunctions.refund]: { config: 0, claims: 5 },
  [batchFunctions.withdrawStart]: { config: 0 },
  [batchFunctions.withdrawEnd]: { config: 0 }
}

/** The call of a row; undefined for an envelope that does not call a channel's contract. */
const readCall = (networkId: Uint8Array, row: CallRow): ChannelCall | undefined => {
  const transaction = transactionIn(readXdr(xdr.TransactionEnvelope.schema, row.envelope))
  const call = transaction === undefined ? undefined : callOf(transaction)
  if (call === undefined) return undefined
  const { args, contract, functionName } = call
  const name = (config: ChannelConfig): NamedChannel => ({
    contract,
    channelId: channelIdOf({ networkId, address: contract }, config),
    config
  })
  const at = (index: number | undefined): Value | undefined => (index === undefined ? undefined : args[index])
  const config = configOfValue(at(places[functionName]?.config))
  const claimed: ReadonlyArray<ClaimEntry> = claimsOfValue(at(places[functionName]?.claims)) ?? []
  const [receiver, token] = [addressOf(args[0]), addressOf(args[1])]
  return {
    settlement: row.settlement,
    transaction: row.transaction,
    ledger: Number(row.ledger),
    contract,
    functionName,
    moved: BigInt(row.moved ?? 0),
    channel: config === undefined ? undefined : name(config),
    swept:
      functionName === batchFunctions.settle && receiver !== undefined && token !== undefined
        ? { receiver, token }
        : undefined,
    claims: claimed.map((entry) => ({ ...name(entry.config), totalClaimed: entry.totalClaimed }))
  }
}

/** The settled calls of a network, in the ledger's order. */
export const readCalls = Effect.fn("audit.readChannelCalls")(function* (network: string, networkId: Uint8Array) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<CallRow>`select distinct on (s.ledger, s.id) s.id::text as settlement, s.ledger,
      a.inner_hash as transaction, s.moved::text as moved, a.envelope
    from kernel_settlements s
      join kernel_attempts a on a.settlement = s.id and a.inner_hash = coalesce(s.ended_by, s.inner_hash)
    where s.network = ${network} and s.scheme = 'batch-settlement' and s.state = 'settled' and s.ledger is not null
    order by s.ledger, s.id`
  return rows.flatMap((row) => readCall(networkId, row) ?? [])
})

interface StoredRow {
  readonly principal: string
  readonly channelId: string
  readonly config: unknown
  readonly delegated: boolean
  readonly charged: string
  readonly totalClaimed: string
  readonly refundAmount: string | null
  readonly refundNonce: string | null
}

/**
 * The records of the store, if it was ever enabled. A seller may store records of other contracts' channels; the ledger
 * has no state to compare them with.
 */
export const readStored = Effect.fn("audit.readStoredChannels")(function* (
  network: string,
  networkId: Uint8Array,
  contracts: ReadonlySet<string>
) {
  const sql = yield* SqlClient.SqlClient
  const [table] = yield* sql<{ isThere: boolean }>`select to_regclass('batch_store_channels') is not null as "isThere"`
  if (table?.isThere !== true) return []
  const rows = yield* sql<StoredRow>`select principal, channel_id as "channelId", config, delegated,
      charged::text as charged, total_claimed::text as "totalClaimed", refund_amount::text as "refundAmount",
      refund_for_nonce::text as "refundNonce"
    from batch_store_channels where network = ${network} order by principal, channel_id`
  return rows.flatMap((row): Array<StoredChannel> => {
    const { channelId, charged, config, delegated, principal, refundAmount, refundNonce, totalClaimed } = row
    const read = Result.getOrUndefined(decodeChannelConfig(config))
    const contract = [...contracts].find(
      (address) => read !== undefined && channelIdOf({ networkId, address }, read) === channelId
    )
    return read === undefined || contract === undefined
      ? []
      : [
          {
            contract,
            channelId,
            config: read,
            principal,
            delegated,
            charged: BigInt(charged),
            totalClaimed: BigInt(totalClaimed),
            refund:
              refundAmount === null ? undefined : { amount: BigInt(refundAmount), nonce: BigInt(refundNonce ?? 0) }
          }
        ]
  })
})
