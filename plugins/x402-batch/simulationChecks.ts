// Checks of a call's simulation, and of the executed transaction after it: the requested transfer and no other movement
// of any token, the contract's event for it, only the authorizations that were sent, and a fee within the ceilings.
// Pure.
import { Option } from "effect"
import type { FeeCeilings } from "../../kernel/config/Network.ts"
import type { ExecutedTransaction } from "../../kernel/ledger/Executed.ts"
import type { SimulationAnswer } from "../../kernel/ledger/LedgerRpc.ts"
import {
  explainRefused,
  explainRestore,
  overCeilings,
  restoreOverCeilings
} from "../../kernel/payment/readSimulation.ts"
import type { Executed, PromisedMovement } from "../../kernel/payment/Scheme.ts"
import { foundEntry, readContractData } from "../../kernel/stellar/LedgerEntry.ts"
import {
  type ContractEvent,
  eventsOfCalls,
  isPublished,
  readEvent,
  type TransferEvent
} from "../../kernel/stellar/TransferEvents.ts"
import { type BatchEvent, batchEventOf, channelKey, channelStateOf } from "./batchCalls.ts"
import { batchErrorOf } from "./batchErrors.ts"
import type { LedgerPayload } from "./BatchWire.ts"
import { simulationWords } from "./ledgerCalls.ts"
import type { BatchWord, CheckError } from "./refusals.ts"

/** The movements and the contract's own events of a call. */
export interface Shown {
  readonly transfers: ReadonlyArray<TransferEvent>
  readonly own: ReadonlyArray<BatchEvent>
}

/** Undefined when a movement cannot be read. */
const shownBy = (contract: string, events: ReadonlyArray<ContractEvent>): Shown | undefined => {
  const transfers: Array<TransferEvent> = []
  const own: Array<BatchEvent> = []
  for (const event of events) {
    const read = readEvent(event)
    if (read._tag === "Unreadable") return undefined
    if (read._tag === "Moved") transfers.push(read.transfer)
    const event_ = batchEventOf(contract, event)
    if (event_ !== undefined) own.push(event_)
  }
  return { transfers, own }
}

const shownBySimulation = (contract: string, eventsXdr: ReadonlyArray<Uint8Array>): Shown | undefined => {
  try {
    return shownBy(contract, eventsOfCalls(eventsXdr).filter(isPublished))
  } catch {
    return undefined
  }
}

/** The movement of a call: none, or one transfer between the parties; undefined for anything else. */
export const movedBetween = (
  { transfers }: Shown,
  { asset, payTo, payer }: Pick<PromisedMovement, "payer" | "payTo" | "asset">
): bigint | undefined => {
  const [first, ...others] = transfers
  if (first === undefined) return 0n
  return others.length === 0 && first.contract === asset && first.from === payer && first.to === payTo
    ? first.amount
    : undefined
}

const contractCode = /Contract, #([0-9]+)\)/

/** Specific reasons for some contract errors. */
const wordsOfErrors: Readonly<Record<string, BatchWord>> = {
  ChannelNotFound: "channel_not_found",
  RefundNonceMismatch: "refund_payload",
  SignatureExpired: "payload_authorization_valid_before",
  NothingToSettle: "nothing_to_settle",
  NothingLeft: "refund_no_balance",
  TooManyClaims: "too_many_claims",
  WithdrawDelayOutOfRange: "withdraw_delay_out_of_range",
  AuthorizerMismatch: "authorizer_address_mismatch",
  TotalAboveMaximum: "charge_exceeds_signed_cumulative",
  TotalAboveBalance: "cumulative_exceeds_balance"
}

const refusedError = (
  payload: LedgerPayload,
  answer: Extract<SimulationAnswer, { readonly _tag: "Refused" }>
): CheckError => {
  const word = simulationWords[payload._tag]
  if (/Budget, ExceededLimit/.test(answer.code) && payload._tag === "Claim")
    return ["too_many_claims", `${payload.claims.length} claims do not fit one transaction; send them in parts`]
  const error = batchErrorOf(Number(contractCode.exec(answer.code)?.[1] ?? 0))
  if (error === undefined) {
    const isPoor = payload._tag === "Deposit" && /Contract, #10\)/.test(answer.code)
    return [isPoor ? "insufficient_balance" : word, explainRefused(answer)]
  }
  const where = error.entry === undefined ? "" : `claims[${error.entry}]: `
  return [wordsOfErrors[error.name] ?? word, `${where}${error.name}`]
}

/** The result of a simulation, or its first problem. */
export const readSimulation = (
  payload: LedgerPayload,
  answer: SimulationAnswer,
  contract: string,
  ceilings: FeeCeilings
): { readonly shown: Shown } | { readonly error: NonNullable<CheckError> } => {
  const word = simulationWords[payload._tag]
  switch (answer._tag) {
    case "Refused":
      return { error: refusedError(payload, answer)! }
    case "RestoreRequired":
      return { error: [word, explainRestore(answer)] }
    case "Simulated": {
      const shown = shownBySimulation(contract, answer.eventsXdr)
      if (shown === undefined) return { error: [word, "a movement in the simulation cannot be read"] }
      // A recording simulation lists the other required signers.
      const isSigned = payload._tag === "Deposit" || payload._tag === "Withdraw"
      if (!isSigned && answer.authXdr.length > 0) return { error: [word, "the call needs a further authorization"] }
      const dear = restoreOverCeilings(answer, ceilings) ?? overCeilings(answer.resourceFeeStroops, ceilings)
      return dear === undefined ? { shown } : { error: ["fee_exceeds_maximum", dear] }
    }
  }
}

/** The increase of a claim's channels: from the totals before its transaction to the totals in its event. */
const soldIn = (contract: string, { own }: Shown, { entryChanges = [] }: ExecutedTransaction): bigint | undefined => {
  const totals = new Map<string, bigint | undefined>()
  for (const change of entryChanges) {
    const found = foundEntry(change)
    const read = found === undefined ? undefined : readContractData(found)
    if (read !== undefined && !totals.has(read.key)) totals.set(read.key, channelStateOf(read.value)?.totalClaimed)
  }
  let sold = 0n
  for (const { channelId, totalClaimed } of own.flatMap((event) => (event._tag === "Claimed" ? event.channels : []))) {
    const key = channelKey(contract, channelId)
    const before = totals.get(key)
    if (before === undefined) return undefined
    sold += totalClaimed - before
    totals.set(key, totalClaimed)
  }
  return sold
}

/**
 * The amount that our executed transaction moved, compared with the promise in its record. If another transaction of
 * the seller has claimed all channels since, a claim succeeds without an event and sells nothing.
 */
export const readExecuted = (contract: string, promise: PromisedMovement, executed: ExecutedTransaction): Executed => {
  const { contractEvents, transfers } = executed
  // The meta cannot be read. The transaction succeeded, and its simulation passed the checks.
  if (contractEvents === undefined || Option.isNone(transfers)) return { _tag: "Moved", amount: promise.amount }
  const shown = shownBy(contract, contractEvents)
  const moved = shown === undefined ? undefined : movedBetween(shown, promise)
  if (shown === undefined || moved === undefined) return notPromised
  if (moved === 0n && promise.payer === contract && shown.own.length === 0)
    return { _tag: "Moved", amount: 0n, sold: 0n }
  if (!shown.own.some((event) => isOf(event, contract, promise))) return notPromised
  const isClaim = shown.own.every(({ _tag }) => _tag === "Claimed")
  return { _tag: "Moved", amount: moved, ...(isClaim ? { sold: soldIn(contract, shown, executed) } : {}) }
}

const notPromised: Executed = {
  _tag: "NotMoved",
  message: "the executed transaction does not show the expected movement"
}

/** True if an event of the contract belongs to a call between these parties. */
const isOf = (event: BatchEvent, contract: string, { asset, payTo, payer }: PromisedMovement): boolean => {
  switch (event._tag) {
    case "Deposited":
      return payTo === contract && event.from === payer && event.config.token === asset
    case "Claimed":
      return payer === contract
    case "Settled":
      return payer === contract && event.receiver === payTo && event.token === asset
    case "Refunded":
    case "WithdrawStarted":
    case "WithdrawEnded":
      return payer === contract && event.payer === payTo
  }
}
