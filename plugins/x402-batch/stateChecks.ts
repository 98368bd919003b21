// Checks a payload against the ledger's state of its channels, for the failures that have a specific reason; the
// simulation covers the rest. Pure.
import type { Books } from "../../kernel/settlement/store/Settlements.ts"
import { type BatchContract, type ChannelState, channelIdOf, type ClaimEntry } from "./batchCodec.ts"
import type { DepositPayload, LedgerPayload } from "./BatchWire.ts"
import type { CheckError } from "./refusals.ts"
import { stateError } from "./verifyVoucher.ts"

/** A channel that its first deposit opens. */
export const unknownChannel: ChannelState = { balance: 0n, totalClaimed: 0n, withdrawRequestedAt: 0, refundNonce: 0n }

/** The channels of a payload by their ids, each once. */
export const channelsOf = (at: BatchContract, payload: LedgerPayload): ReadonlyArray<string> => {
  switch (payload._tag) {
    case "Deposit":
    case "Refund":
      return [payload.voucher.channelId]
    case "Claim":
      return [...new Set(payload.claims.map(({ config }) => channelIdOf(at, config)))]
    case "Withdraw":
      return [channelIdOf(at, payload.config)]
    case "Settle":
      return []
  }
}

/** Totals that a payload's vouchers claim, by channel; the highest if a channel has several. */
const totalsOf = (at: BatchContract, claims: ReadonlyArray<ClaimEntry>): Readonly<Record<string, string>> => {
  const totals = new Map<string, bigint>()
  for (const { config, totalClaimed } of claims) {
    const id = channelIdOf(at, config)
    const former = totals.get(id) ?? 0n
    totals.set(id, totalClaimed > former ? totalClaimed : former)
  }
  return Object.fromEntries([...totals].map(([id, total]) => [id, total.toString()]))
}

/** The action of a payload, for books and receipts. Only a claim sells; other actions move money back and forth. */
export const booksOf = (at: BatchContract, payload: LedgerPayload, amount: bigint): Books => {
  const kind = payload._tag.toLowerCase()
  switch (payload._tag) {
    case "Claim":
      return { kind, sold: amount, totals: totalsOf(at, payload.claims) }
    case "Refund":
      return {
        kind,
        sold: 0n,
        channel: payload.voucher.channelId,
        ...(payload.claims.length === 0 ? {} : { totals: totalsOf(at, payload.claims) })
      }
    case "Settle":
      return { kind, sold: 0n }
    default:
      return { kind, sold: 0n, channel: channelsOf(at, payload)[0]! }
  }
}

/** The total increase of a claim, over the channels that were read; channels without a reading do not count. */
export const raisedBy = (
  claims: ReadonlyArray<ClaimEntry>,
  at: BatchContract,
  states: ReadonlyMap<string, ChannelState | undefined>
): bigint => {
  const totals = new Map<string, bigint>()
  for (const { config, totalClaimed } of claims) {
    const id = channelIdOf(at, config)
    totals.set(id, totalClaimed > (totals.get(id) ?? 0n) ? totalClaimed : totals.get(id)!)
  }
  let raised = 0n
  for (const [id, total] of totals) {
    const claimed = states.get(id)?.totalClaimed
    if (claimed !== undefined && total > claimed) raised += total - claimed
  }
  return raised
}

/**
 * Checks a payload against its channels' state, for the failures that have a specific reason. A channel that the node
 * does not show may be archived, and the call restores it: the simulation decides whether it exists.
 */
export const readStateError = (
  payload: LedgerPayload,
  at: BatchContract,
  states: ReadonlyMap<string, ChannelState | undefined>
): CheckError => {
  switch (payload._tag) {
    case "Claim": {
      const isShown = payload.claims.every(({ config }) => states.get(channelIdOf(at, config)) !== undefined)
      return !isShown || raisedBy(payload.claims, at, states) > 0n
        ? undefined
        : ["nothing_to_claim", "no claim is above what its channel was claimed before"]
    }
    case "Refund": {
      const state = states.get(payload.voucher.channelId)
      if (state === undefined || payload.nonce === state.refundNonce) return undefined
      return ["refund_payload", `refundNonce is not the channel's, ${state.refundNonce}`]
    }
    default:
      return undefined
  }
}

/** Checks a deposit's voucher against its channel, with the balance from the simulation. */
export const depositStateError = (
  { config, voucher }: DepositPayload,
  before: ChannelState | undefined,
  balance: bigint,
  price: bigint
): CheckError =>
  stateError({ _tag: "Voucher", type: "voucher", config, voucher }, { ...(before ?? unknownChannel), balance }, price)

/** True if a channel's state includes its settlement: a node that lags still shows the state before it. */
export const isStateAfter = (payload: LedgerPayload, state: ChannelState): boolean => {
  switch (payload._tag) {
    case "Deposit":
      return state.balance >= payload.voucher.maxClaimableAmount
    case "Refund":
      return state.refundNonce > payload.nonce
    case "Withdraw":
      return (state.withdrawRequestedAt !== 0) === (payload.functionName === "withdraw_start")
    default:
      return true
  }
}
