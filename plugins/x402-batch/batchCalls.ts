// The client side of the `batch-settlement` contract: the arguments of its calls, the keys and values of its entries,
// its events and its errors. Pure. Names and numbers are those of contract/batch.as; README.md, "The contract".
import { contractTextOf } from "../../kernel/stellar/Address.ts"
import { contractDataKey } from "../../kernel/stellar/LedgerEntry.ts"
import { type ContractEvent, isPublished } from "../../kernel/stellar/TransferEvents.ts"
import {
  addressOf,
  addressValue,
  bytesOf,
  bytesValue,
  fieldsOf,
  i128Of,
  i128Value,
  symbolOf,
  u64Of,
  u64Value,
  type Value,
  vecOf,
  vecValue
} from "../../kernel/stellar/Value.ts"
import {
  bytesOfHex,
  type ChannelConfig,
  type ChannelState,
  type ClaimEntry,
  configOfValue,
  configValue,
  hexOfBytes
} from "./batchCodec.ts"

/** The contract's functions by their names on the ledger. */
export const batchFunctions = {
  deposit: "deposit",
  claim: "claim",
  settle: "settle",
  refund: "refund",
  withdrawStart: "withdraw_start",
  withdrawEnd: "withdraw_end",
  state: "state",
  receiverState: "receiver_state",
  channelId: "channel_id"
} as const

/** `deposit(from, config, amount)`: `from` authorizes it with the token's transfer to the contract below it. */
export const depositArgs = (from: string, config: ChannelConfig, amount: bigint): ReadonlyArray<Value> => [
  addressValue(from),
  configValue(config),
  i128Value(amount)
]

/** The sub-invocation of a deposit's authorization: `transfer(from, contract, amount)` of the token. */
export const depositTransferArgs = (from: string, contract: string, amount: bigint): ReadonlyArray<Value> => [
  addressValue(from),
  addressValue(contract),
  i128Value(amount)
]

const claimValue = ({ config, maxClaimableAmount, signature, totalClaimed }: ClaimEntry): Value =>
  vecValue([
    configValue(config),
    i128Value(maxClaimableAmount),
    bytesValue(bytesOfHex(signature)),
    i128Value(totalClaimed)
  ])

export const claimsValue = (claims: ReadonlyArray<ClaimEntry>): Value => vecValue(claims.map(claimValue))

/** The entries of a claim; undefined for a value of another form. */
export const claimsOfValue = (value: Value | undefined): ReadonlyArray<ClaimEntry> | undefined => {
  const claims: Array<ClaimEntry> = []
  for (const one of vecOf(value) ?? [undefined]) {
    const [first, max, signature, total] = vecOf(one) ?? []
    const config = configOfValue(first)
    const [maxClaimableAmount, signed, totalClaimed] = [i128Of(max), bytesOf(signature), i128Of(total)]
    if (config === undefined || maxClaimableAmount === undefined || totalClaimed === undefined) return undefined
    if (signed?.length !== 64) return undefined
    claims.push({ config, maxClaimableAmount, signature: hexOfBytes(signed), totalClaimed })
  }
  return claims
}

/**
 * `claim(claims, expires_at, signature)`: authorized only by that signature of the receiver's authorizer, until the
 * close time `expires_at`; anyone submits it.
 */
export const claimArgs = (
  claims: ReadonlyArray<ClaimEntry>,
  expiresAt: number,
  signature: string
): ReadonlyArray<Value> => [claimsValue(claims), u64Value(BigInt(expiresAt)), bytesValue(bytesOfHex(signature))]

/** `settle(receiver, token)`: anyone submits it. */
export const settleArgs = (receiver: string, token: string): ReadonlyArray<Value> => [
  addressValue(receiver),
  addressValue(token)
]

/**
 * A refund, with the claims that run before it in the same call. If it is empty, the contract does not read
 * `claimSignature`.
 */
export interface RefundCall {
  readonly config: ChannelConfig
  /** Maximum refund; if less is left, the refund is the rest. */
  readonly amount: bigint
  readonly nonce: bigint
  /** The last close time for which the signatures are valid, Unix seconds. */
  readonly expiresAt: number
  readonly signature: string
  readonly claims: ReadonlyArray<ClaimEntry>
  readonly claimSignature?: string
}

const noSignature = "00".repeat(64)

/** `refund(config, amount, nonce, expires_at, signature, claims, claim_signature)`: anyone submits it. */
export const refundArgs = (call: RefundCall): ReadonlyArray<Value> => [
  configValue(call.config),
  i128Value(call.amount),
  u64Value(call.nonce),
  u64Value(BigInt(call.expiresAt)),
  bytesValue(bytesOfHex(call.signature)),
  claimsValue(call.claims),
  bytesValue(bytesOfHex(call.claimSignature ?? noSignature))
]

/** `withdraw_start(config)` and `withdraw_end(config)`: the payer authorizes each. */
export const withdrawArgs = (config: ChannelConfig): ReadonlyArray<Value> => [configValue(config)]

/** The ledger key of a channel's entry, base64: its state is read without a simulation. */
export const channelKey = (contract: string, channelId: string): string =>
  contractDataKey(contract, bytesValue(bytesOfHex(channelId)))

/** The ledger key of a receiver's claimed and swept totals of a token, base64. */
export const receiverKey = (contract: string, receiver: string, token: string): string =>
  contractDataKey(contract, vecValue([addressValue(receiver), addressValue(token)]))

/** Decodes a channel's value, from its entry or from `state`; undefined for a value of another form. */
export const channelStateOf = (value: Value | undefined): ChannelState | undefined => {
  const items = vecOf(value)
  const [balance, totalClaimed] = [i128Of(items?.[0]), i128Of(items?.[1])]
  const [withdrawRequestedAt, refundNonce] = [u64Of(items?.[2]), u64Of(items?.[3])]
  return balance === undefined ||
    totalClaimed === undefined ||
    withdrawRequestedAt === undefined ||
    refundNonce === undefined
    ? undefined
    : { balance, totalClaimed, withdrawRequestedAt: Number(withdrawRequestedAt), refundNonce }
}

/** A receiver's total claimed amount of a token, and the part that was paid out. */
export interface ReceiverState {
  readonly totalClaimed: bigint
  readonly totalSettled: bigint
}

export const receiverStateOf = (value: Value | undefined): ReceiverState | undefined => {
  const [claimed, settled] = vecOf(value) ?? []
  const [totalClaimed, totalSettled] = [i128Of(claimed), i128Of(settled)]
  return totalClaimed === undefined || totalSettled === undefined ? undefined : { totalClaimed, totalSettled }
}

/** An event of the contract. Amounts are the transferred amounts. */
export type BatchEvent =
  | {
      readonly _tag: "Deposited"
      readonly channelId: string
      readonly config: ChannelConfig
      readonly from: string
      readonly amount: bigint
      readonly balance: bigint
    }
  | {
      readonly _tag: "Claimed"
      /** The receiver's authorizer, 32 bytes, hex. */
      readonly authorizer: string
      /** The channels that advanced, with their new totals. */
      readonly channels: ReadonlyArray<{ readonly channelId: string; readonly totalClaimed: bigint }>
    }
  | { readonly _tag: "Settled"; readonly receiver: string; readonly token: string; readonly amount: bigint }
  | {
      readonly _tag: "Refunded"
      readonly channelId: string
      readonly payer: string
      readonly amount: bigint
      readonly balance: bigint
      readonly nonce: bigint
    }
  | {
      readonly _tag: "WithdrawStarted"
      readonly channelId: string
      readonly payer: string
      /** The first close time that allows the withdrawal to end, Unix seconds. */
      readonly endsAt: number
    }
  | {
      readonly _tag: "WithdrawEnded"
      readonly channelId: string
      readonly payer: string
      readonly amount: bigint
      readonly balance: bigint
    }

/** The first topic of each event. */
export const eventNames = {
  deposited: "batch_deposited",
  claimed: "batch_claimed",
  settled: "batch_settled",
  refunded: "batch_refunded",
  withdrawStarted: "batch_withdraw_started",
  withdrawEnded: "batch_withdraw_ended"
} as const

type Topics = ReadonlyArray<Value | undefined>

const hexTopic = (value: Value | undefined): string | undefined => {
  const bytes = bytesOf(value)
  return bytes?.length === 32 ? hexOfBytes(bytes) : undefined
}

const depositedOf = ([, first]: Topics, data: Value): BatchEvent | undefined => {
  const of = fieldsOf(data)
  const [channelId, config, from] = [hexTopic(first), configOfValue(of?.get("config")), addressOf(of?.get("from"))]
  const [amount, balance] = [i128Of(of?.get("amount")), i128Of(of?.get("balance"))]
  if (channelId === undefined || config === undefined || from === undefined) return undefined
  if (amount === undefined || balance === undefined) return undefined
  return { _tag: "Deposited", channelId, config, from, amount, balance }
}

const claimedOf = ([, first]: Topics, data: Value): BatchEvent | undefined => {
  const authorizer = hexTopic(first)
  const channels = (vecOf(data) ?? []).map((one) => {
    const [id, total] = vecOf(one) ?? []
    return { channelId: hexTopic(id), totalClaimed: i128Of(total) }
  })
  if (authorizer === undefined || channels.some((one) => one.channelId === undefined || one.totalClaimed === undefined))
    return undefined
  return { _tag: "Claimed", authorizer, channels } as BatchEvent
}

const settledOf = ([, first, second]: Topics, data: Value): BatchEvent | undefined => {
  const [receiver, token, amount] = [addressOf(first), addressOf(second), i128Of(data)]
  return receiver === undefined || token === undefined || amount === undefined
    ? undefined
    : { _tag: "Settled", receiver, token, amount }
}

const refundedOf = ([, first, second]: Topics, data: Value): BatchEvent | undefined => {
  const of = fieldsOf(data)
  const [channelId, payer] = [hexTopic(first), addressOf(second)]
  const [amount, balance, nonce] = [i128Of(of?.get("amount")), i128Of(of?.get("balance")), u64Of(of?.get("nonce"))]
  if (channelId === undefined || payer === undefined) return undefined
  if (amount === undefined || balance === undefined || nonce === undefined) return undefined
  return { _tag: "Refunded", channelId, payer, amount, balance, nonce }
}

const startedOf = ([, first, second]: Topics, data: Value): BatchEvent | undefined => {
  const [channelId, payer, endsAt] = [hexTopic(first), addressOf(second), u64Of(data)]
  return channelId === undefined || payer === undefined || endsAt === undefined
    ? undefined
    : { _tag: "WithdrawStarted", channelId, payer, endsAt: Number(endsAt) }
}

const endedOf = ([, first, second]: Topics, data: Value): BatchEvent | undefined => {
  const of = fieldsOf(data)
  const [channelId, payer] = [hexTopic(first), addressOf(second)]
  const [amount, balance] = [i128Of(of?.get("amount")), i128Of(of?.get("balance"))]
  return channelId === undefined || payer === undefined || amount === undefined || balance === undefined
    ? undefined
    : { _tag: "WithdrawEnded", channelId, payer, amount, balance }
}

const readers: ReadonlyMap<string, (topics: Topics, data: Value) => BatchEvent | undefined> = new Map([
  [eventNames.deposited, depositedOf],
  [eventNames.claimed, claimedOf],
  [eventNames.settled, settledOf],
  [eventNames.refunded, refundedOf],
  [eventNames.withdrawStarted, startedOf],
  [eventNames.withdrawEnded, endedOf]
])

/** Decodes an event of the contract; undefined for events of other contracts and in any other form. */
export const batchEventOf = (contract: string, event: ContractEvent): BatchEvent | undefined => {
  if (!isPublished(event) || event.contractId === null) return undefined
  if (contractTextOf(event.contractId as Uint8Array) !== contract) return undefined
  const { data, topics } = event.body.v0
  return readers.get(symbolOf(topics[0]) ?? "")?.(topics, data)
}

/** The channels that the call with this event changed. */
export const channelsOfEvent = (event: BatchEvent): ReadonlyArray<string> => {
  switch (event._tag) {
    case "Claimed":
      return event.channels.map(({ channelId }) => channelId)
    case "Settled":
      return []
    default:
      return [event.channelId]
  }
}
