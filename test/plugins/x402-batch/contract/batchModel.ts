// The required behavior of the batch contract, as a pure function of a state and an action: channels, amounts due to
// receivers, and the location of every atom of each token. Written from the document, independently of the contract's
// implementation.
import type { BatchErrorName } from "../../../../plugins/x402-batch/batchErrors.ts"

export interface Channel {
  readonly balance: bigint
  readonly claimed: bigint
  readonly startedAt: bigint
  readonly nonce: bigint
}

export interface State {
  readonly now: bigint
  /** By the channel's number; absent: not open. */
  readonly channels: Readonly<Record<number, Channel>>
  /** By receiver and token: claimed and paid. */
  readonly receivers: Readonly<Record<string, { readonly claimed: bigint; readonly settled: bigint }>>
  /** By token: the sums of all that went in and out. */
  readonly sums: Readonly<Record<number, Sums>>
}

export interface Sums {
  readonly deposited: bigint
  readonly claimed: bigint
  readonly settled: bigint
  readonly refunded: bigint
  readonly withdrawn: bigint
}

/** The constants: each channel's token and receiver by number, and its delay. */
export interface Terms {
  readonly token: number
  readonly receiver: number
  readonly delay: bigint
}

export interface Claimed {
  readonly channel: number
  readonly max: bigint
  readonly total: bigint
}

export type Action =
  | { readonly do: "deposit"; readonly channel: number; readonly amount: bigint }
  | { readonly do: "claim"; readonly claims: ReadonlyArray<Claimed> }
  | { readonly do: "settle"; readonly receiver: number; readonly token: number }
  | {
      readonly do: "refund"
      readonly channel: number
      readonly amount: bigint
      readonly nonce: bigint
      readonly claims: ReadonlyArray<Claimed>
    }
  | { readonly do: "start" | "end"; readonly channel: number }
  | { readonly do: "wait"; readonly seconds: bigint }

/** The state after an action, and the call's result; or the error, with the entry of a claim. */
export type Outcome =
  | { readonly state: State; readonly returned?: bigint }
  | { readonly error: BatchErrorName; readonly entry?: number }

const none: Sums = { deposited: 0n, claimed: 0n, settled: 0n, refunded: 0n, withdrawn: 0n }
export const empty = (now: bigint): State => ({ now, channels: {}, receivers: {}, sums: {} })

const add = (state: State, token: number, part: Partial<Sums>): State => {
  const sums = { ...(state.sums[token] ?? none) }
  for (const [name, amount] of Object.entries(part)) sums[name as keyof Sums] += amount
  return { ...state, sums: { ...state.sums, [token]: sums } }
}

const withChannel = (state: State, channel: number, changes: Partial<Channel>): State => ({
  ...state,
  channels: {
    ...state.channels,
    [channel]: {
      ...(state.channels[channel] ?? { balance: 0n, claimed: 0n, startedAt: 0n, nonce: 0n }),
      ...changes
    }
  }
})

const dueKey = (receiver: number, token: number) => `${receiver}/${token}`

type Step<A extends Action["do"]> = (
  state: State,
  action: Extract<Action, { readonly do: A }>,
  terms: ReadonlyArray<Terms>
) => Outcome

const applyClaims = (before: State, claims: ReadonlyArray<Claimed>, terms: ReadonlyArray<Terms>): Outcome => {
  let state = before
  let returned = 0n
  for (const [entry, { channel, max, total }] of claims.entries()) {
    const found = state.channels[channel]
    if (found === undefined) return { error: "ChannelNotFound", entry }
    if (total <= found.claimed) continue
    if (total > max) return { error: "TotalAboveMaximum", entry }
    if (total > found.balance) return { error: "TotalAboveBalance", entry }
    const { receiver, token } = terms[channel]!
    const key = dueKey(receiver, token)
    const due = state.receivers[key] ?? { claimed: 0n, settled: 0n }
    const moved = total - found.claimed
    state = add(withChannel(state, channel, { claimed: total }), token, { claimed: moved })
    state = { ...state, receivers: { ...state.receivers, [key]: { ...due, claimed: due.claimed + moved } } }
    returned += 1n
  }
  return { state, returned }
}

const steps: { readonly [A in Action["do"]]: Step<A> } = {
  deposit: (state, { amount, channel }, terms) =>
    amount <= 0n
      ? { error: "InvalidAmount" }
      : {
          returned: amount,
          state: add(
            withChannel(state, channel, { balance: (state.channels[channel]?.balance ?? 0n) + amount }),
            terms[channel]!.token,
            { deposited: amount }
          )
        },
  claim: (state, { claims }, terms) =>
    claims.length === 0 ? { error: "NoClaims" } : applyClaims(state, claims, terms),
  settle: (state, { receiver, token }) => {
    const key = dueKey(receiver, token)
    const { claimed, settled } = state.receivers[key] ?? { claimed: 0n, settled: 0n }
    if (claimed === settled) return { error: "NothingToSettle" }
    const receivers = { ...state.receivers, [key]: { claimed, settled: claimed } }
    return { returned: claimed - settled, state: add({ ...state, receivers }, token, { settled: claimed - settled }) }
  },
  refund: (before, { amount, channel, claims, nonce }, terms) => {
    if (amount <= 0n) return { error: "InvalidAmount" }
    const after = applyClaims(before, claims, terms)
    if ("error" in after) return after
    const { state } = after
    const found = state.channels[channel]
    if (found === undefined) return { error: "ChannelNotFound" }
    if (nonce !== found.nonce) return { error: "RefundNonceMismatch" }
    const left = found.balance - found.claimed
    if (left === 0n) return { error: "NothingLeft" }
    const returned = amount < left ? amount : left
    const startedAt = returned === left ? 0n : found.startedAt
    const changes = { balance: found.balance - returned, nonce: nonce + 1n, startedAt }
    return { returned, state: add(withChannel(state, channel, changes), terms[channel]!.token, { refunded: returned }) }
  },
  start: (state, { channel }, terms) => {
    const found = state.channels[channel]
    if (found === undefined) return { error: "ChannelNotFound" }
    if (found.startedAt !== 0n) return { error: "WithdrawalAlreadyStarted" }
    if (found.balance === found.claimed) return { error: "NothingLeft" }
    return {
      returned: state.now + terms[channel]!.delay,
      state: withChannel(state, channel, { startedAt: state.now })
    }
  },
  end: (state, { channel }, terms) => {
    const found = state.channels[channel]
    if (found === undefined) return { error: "ChannelNotFound" }
    if (found.startedAt === 0n) return { error: "WithdrawalNotStarted" }
    if (state.now < found.startedAt + terms[channel]!.delay) return { error: "WithdrawalTooEarly" }
    const returned = found.balance - found.claimed
    const changes = { balance: found.claimed, startedAt: 0n, nonce: found.nonce + 1n }
    return {
      returned,
      state: add(withChannel(state, channel, changes), terms[channel]!.token, { withdrawn: returned })
    }
  },
  wait: (state, { seconds }) => ({ state: { ...state, now: state.now + seconds } })
}

export const step = (state: State, action: Action, terms: ReadonlyArray<Terms>): Outcome =>
  (steps[action.do] as Step<Action["do"]>)(state, action as never, terms)
