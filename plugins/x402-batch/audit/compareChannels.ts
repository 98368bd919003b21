// The channels' audit, pure: sums the contract's holdings and compares them with the records. Every recorded call has
// its event. A channel's balance equals the recorded movements plus those of others. No total decreases. The contract
// covers the channels' balances and the amounts owed to receivers. Channels opened before the endpoint's history are
// not summed.
import type { Mismatch } from "../../../kernel/audit/compare.ts"
import type { BatchEvent, ReceiverState } from "../batchCalls.ts"
import { batchFunctions } from "../batchCalls.ts"
import type { ChannelState } from "../batchCodec.ts"
import type { ChannelCall, NamedChannel, StoredChannel } from "./channelRecords.ts"

/** An event of the contract in a transaction of any sender. */
interface SeenBatchEvent {
  readonly contract: string
  readonly transaction: string
  readonly ledger: number
  readonly event: BatchEvent
}

interface ChannelOnLedger extends NamedChannel {
  /** Undefined if the entry does not exist on the ledger or is archived. */
  readonly state: ChannelState | undefined
  /** The ledger that changed it last. */
  readonly modifiedLedger: number
}

/** The amount of a token owed to a receiver, and the contract's balance of that token. */
interface ReceiverOnLedger {
  readonly contract: string
  readonly receiver: string
  readonly token: string
  readonly state: ReceiverState | undefined
  readonly modifiedLedger: number
}

export interface ChannelView {
  readonly fromLedger: number
  readonly toLedger: number
  readonly events: ReadonlyArray<SeenBatchEvent>
  readonly channels: ReadonlyArray<ChannelOnLedger>
  readonly receivers: ReadonlyArray<ReceiverOnLedger>
  /**
   * Each contract's balance of each token, by `holdingOf`. Only for the network's own assets, and read after the rest.
   */
  readonly holdings: ReadonlyMap<string, { readonly amount: bigint; readonly modifiedLedger: number }>
}

export interface ChannelRecords {
  readonly calls: ReadonlyArray<ChannelCall>
  /** The store's records, read before the ledger and after it: charges and claims rise between the two reads. */
  readonly storedBefore: ReadonlyArray<StoredChannel>
  readonly storedAfter: ReadonlyArray<StoredChannel>
}

/** A token of a contract, summed over the known channels; decimal, atomic units. */
interface TokenSum {
  readonly contract: string
  readonly token: string
  /** Deposited, and not claimed, refunded or withdrawn. */
  readonly held: string
  /** Claimed, and not yet paid to receivers. */
  readonly unsettled: string
  /** The contract's balance; null for a token that is not an asset of the network. */
  readonly has: string | null
}

interface ChannelAudit {
  readonly channels: number
  /** Opened before the endpoint's history: compared, not summed. */
  readonly older: number
  /** Changed by transactions of others as well. */
  readonly ofOthers: number
  /** Changed while the audit read: not compared. */
  readonly changed: number
  /** Not on the ledger, and last used before an entry's shortest life: archived. */
  readonly archived: number
  readonly tokens: ReadonlyArray<TokenSum>
  readonly mismatches: ReadonlyArray<Mismatch>
}

/** Minimum ledgers that an entry lives after each call that changes it (`contract/channel.as`). */
export const lifeLedgersMin = 259_200

export const holdingOf = (contract: string, token: string): string => `${contract} ${token}`

type Wrong = (rule: string, subject: string, detail: string) => void

/** The amount that an event moves into its channel; negative: out of it. Undefined for an event without a movement. */
const change = (event: BatchEvent): bigint | undefined => {
  switch (event._tag) {
    case "Deposited":
      return event.amount
    case "Refunded":
    case "WithdrawEnded":
      return -event.amount
    default:
      return undefined
  }
}

const changeOfCall = ({ functionName, moved }: ChannelCall): bigint => {
  if (functionName === batchFunctions.deposit) return moved
  return functionName === batchFunctions.refund || functionName === batchFunctions.withdrawEnd ? -moved : 0n
}

const isOf = (call: ChannelCall, event: BatchEvent): boolean => {
  if (event._tag === "Settled")
    return event.receiver === call.swept?.receiver && event.token === call.swept.token && event.amount === call.moved
  return "channelId" in event && event.channelId === call.channel?.channelId && change(event) === changeOfCall(call)
}

/** Functions whose event carries the moved amount. */
const moving: ReadonlySet<string> = new Set([
  batchFunctions.deposit,
  batchFunctions.refund,
  batchFunctions.withdrawEnd,
  batchFunctions.settle
])

const verifyCalls = ({ calls }: ChannelRecords, view: ChannelView, wrong: Wrong): void => {
  const byTransaction = Map.groupBy(view.events, ({ transaction }) => transaction)
  for (const call of calls) {
    if (call.ledger < view.fromLedger || call.ledger > view.toLedger || !moving.has(call.functionName)) continue
    const events = byTransaction.get(call.transaction) ?? []
    if (!events.some(({ contract, event }) => contract === call.contract && isOf(call, event)))
      wrong("channel event", call.settlement, `records ${call.functionName} of ${call.moved}, but the contract differs`)
  }
}

/** Recorded calls and received events, grouped by channel: a facilitator has many of each. */
interface ByChannel {
  readonly calls: ReadonlyMap<string, ReadonlyArray<ChannelCall>>
  readonly events: ReadonlyMap<string, ReadonlyArray<SeenBatchEvent>>
  /** The highest total of the recorded claims, with its settlement. */
  readonly claimed: ReadonlyMap<string, { readonly total: bigint; readonly settlement: string }>
  readonly storedBefore: ReadonlyMap<string, ReadonlyArray<StoredChannel>>
  readonly storedAfter: ReadonlyMap<string, ReadonlyArray<StoredChannel>>
  readonly recorded: ReadonlySet<string>
}

const placeOf = ({ channelId, contract }: { readonly channelId: string; readonly contract: string }): string =>
  `${contract} ${channelId}`

const byChannel = ({ calls, storedAfter, storedBefore }: ChannelRecords, view: ChannelView): ByChannel => {
  const claimed = new Map<string, { total: bigint; settlement: string }>()
  for (const { claims, ledger, settlement } of calls) {
    // The endpoint may be behind the endpoint that reported it.
    if (ledger > view.toLedger) continue
    for (const claim of claims) {
      const known = claimed.get(placeOf(claim))
      if (known === undefined || known.total < claim.totalClaimed)
        claimed.set(placeOf(claim), { total: claim.totalClaimed, settlement })
    }
  }
  return {
    calls: Map.groupBy(calls, ({ channel }) => (channel === undefined ? "" : placeOf(channel))),
    events: Map.groupBy(view.events, ({ contract, event }) =>
      "channelId" in event ? placeOf({ contract, channelId: event.channelId }) : ""
    ),
    claimed,
    storedBefore: Map.groupBy(storedBefore, placeOf),
    storedAfter: Map.groupBy(storedAfter, placeOf),
    recorded: new Set(calls.map(({ transaction }) => transaction))
  }
}

interface Sum {
  readonly isComplete: boolean
  readonly balance: bigint
  readonly hasOthers: boolean
}

/** A channel's balance from our records of our calls, and from the events of all other calls. */
const sumOf = (place: string, { calls, events, recorded }: ByChannel): Sum => {
  const own = events.get(place) ?? []
  const others = own.filter(({ event, transaction }) => change(event) !== undefined && !recorded.has(transaction))
  const [first] = own
  return {
    isComplete: first?.event._tag === "Deposited" && first.event.amount === first.event.balance,
    balance:
      (calls.get(place) ?? []).reduce((sum, call) => sum + changeOfCall(call), 0n) +
      others.reduce((sum, { event }) => sum + (change(event) ?? 0n), 0n),
    hasOthers: others.length > 0
  }
}

/** Compares a channel's claimed amount with its records. */
const verifyClaimed = (channel: NamedChannel, state: ChannelState, known: ByChannel, wrong: Wrong): void => {
  const { totalClaimed: claimed } = state
  const { channelId } = channel
  const place = placeOf(channel)
  const recorded = known.claimed.get(place)
  if (recorded !== undefined && recorded.total > claimed)
    wrong("channel claim", recorded.settlement, `claimed ${recorded.total} of ${channelId}, the ledger has ${claimed}`)
  for (const { charged, refund, totalClaimed } of known.storedBefore.get(place) ?? []) {
    if (totalClaimed > claimed)
      wrong("channel store", channelId, `is stored with ${totalClaimed} claimed, the ledger has ${claimed}`)
    // Read before the ledger: the amount charged until then must still be claimable.
    const held = refund === undefined || refund.nonce < state.refundNonce ? 0n : refund.amount
    const claimable = state.balance - held
    if (charged > claimable)
      wrong("channel claimable", channelId, `${charged} was charged, at most ${claimable} can be claimed in all`)
  }
  for (const { charged, delegated } of known.storedAfter.get(place) ?? [])
    if (delegated && claimed > charged)
      wrong("channel charges", channelId, `${claimed} was claimed, the store has charged ${charged}`)
}

/** Checks for each token that the contract covers the channels' balances and the amounts due to receivers. */
const sumTokens = (view: ChannelView, wrong: Wrong): ReadonlyArray<TokenSum> => {
  const sums = new Map<string, { held: bigint; unsettled: bigint; newest: number; contract: string; token: string }>()
  const sumAt = (contract: string, token: string) => {
    const key = holdingOf(contract, token)
    const sum = sums.get(key) ?? { held: 0n, unsettled: 0n, newest: 0, contract, token }
    sums.set(key, sum)
    return sum
  }
  for (const { config, contract, modifiedLedger, state } of view.channels) {
    if (state === undefined) continue
    const sum = sumAt(contract, config.token)
    sum.held += state.balance - state.totalClaimed
    sum.newest = Math.max(sum.newest, modifiedLedger)
  }
  for (const { contract, modifiedLedger, state, token } of view.receivers) {
    if (state === undefined) continue
    const sum = sumAt(contract, token)
    sum.unsettled += state.totalClaimed - state.totalSettled
    sum.newest = Math.max(sum.newest, modifiedLedger)
  }
  return [...sums].map(([key, { contract, held, newest, token, unsettled }]) => {
    const holding = view.holdings.get(key)
    // During traffic a reading only proves something if all of it belongs to one moment.
    const isOneMoment = Math.max(newest, holding?.modifiedLedger ?? Infinity) <= view.toLedger
    if (holding !== undefined && isOneMoment && holding.amount < held + unsettled)
      wrong("channels covered", contract, `has ${holding.amount} of ${token}, owes ${held + unsettled}`)
    return {
      contract,
      token,
      held: held.toString(),
      unsettled: unsettled.toString(),
      has: holding?.amount.toString() ?? null
    }
  })
}

export const compareChannels = (records: ChannelRecords, view: ChannelView): ChannelAudit => {
  const mismatches: Array<Mismatch> = []
  const wrong: Wrong = (rule, subject, detail) => mismatches.push({ rule, subject, detail })
  verifyCalls(records, view, wrong)
  const known = byChannel(records, view)
  let [older, ofOthers, changed, archived] = [0, 0, 0, 0]
  for (const channel of view.channels) {
    const { channelId, modifiedLedger, state } = channel
    const place = placeOf(channel)
    if (state === undefined) {
      const used = (known.calls.get(place) ?? []).filter(({ ledger }) => ledger <= view.toLedger)
      const newest = used.reduce((most, { ledger }) => Math.max(most, ledger), -Infinity)
      if (newest + lifeLedgersMin > view.toLedger)
        wrong("channel on ledger", channelId, `was used in ledger ${newest}, and is not on the ledger`)
      else if (used.length > 0) archived += 1
    } else if (modifiedLedger > view.toLedger) changed += 1
    else {
      const sum = sumOf(place, known)
      if (!sum.isComplete) older += 1
      else if (sum.balance !== state.balance)
        wrong("channel balance", channelId, `is ${state.balance}, the records add up to ${sum.balance}`)
      if (sum.hasOthers) ofOthers += 1
      verifyClaimed(channel, state, known, wrong)
    }
  }
  const tokens = sumTokens(view, wrong)
  return { channels: view.channels.length, older, ofOthers, changed, archived, tokens, mismatches }
}
