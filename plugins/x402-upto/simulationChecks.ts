// Checks of the enforcing simulation: success without a restore, a settlement's sequence of events, no other movement
// of any token, and a fee within the ceilings. The sequence is allowance, transfer, the allowance's end, and the
// contract's event with ceiling and amount; for zero only the last. Events that move no tokens, such as those of a
// smart account, are tolerated at any position. An executed transaction must show the same steps in the same order,
// among any other events.
import { StrKey } from "@stellar/stellar-sdk/base"
import type { FeeCeilings } from "../../kernel/config/Network.ts"
import type { SimulationAnswer } from "../../kernel/ledger/LedgerRpc.ts"
import {
  explainRefused,
  explainRestore,
  type HostErrorMeaning,
  overCeilings,
  restoreOverCeilings
} from "../../kernel/payment/readSimulation.ts"
import { type ContractEvent, eventsOfCalls, isPublished, readEvent } from "../../kernel/stellar/TransferEvents.ts"
import type { Profile } from "./profiles.ts"
import type { CheckError } from "./refusals.ts"
import { addressOf, i128Of, symbolOf, vecOf } from "../../kernel/stellar/Value.ts"

/** The intended movement of a settlement. `contract` is the settlement contract. */
export interface Settlement {
  readonly contract: string
  readonly profile: Profile
  /** Whether the allowance ends with the call. */
  readonly closes: boolean
  readonly payer: string
  readonly payTo: string
  readonly asset: string
  readonly max: bigint
  readonly amount: bigint
}

const meanings: ReadonlyArray<HostErrorMeaning> = [
  [/Contract, #105\)/, "the authorization is not valid yet"],
  [/Contract, #106\)/, "the authorization's deadline has passed"],
  [/Contract, #107\)/, "the authorization's deadline is too far ahead"],
  [/Contract, #108\)/, "two parties that must differ are the same"],
  [/Contract, #109\)/, "the payer's settlement id is spent"],
  [/Contract, #110\)/, "the token does not move the amount from payer to recipient"]
]

const contractEvents = (eventsXdr: ReadonlyArray<Uint8Array>): ReadonlyArray<ContractEvent> | undefined => {
  try {
    return eventsOfCalls(eventsXdr).filter(isPublished)
  } catch {
    return undefined
  }
}

const emitterOf = ({ contractId }: ContractEvent): string | undefined =>
  contractId === null ? undefined : StrKey.encodeContract(contractId as Uint8Array)

const isApproval = (event: ContractEvent, { contract, payer }: Settlement, amount: bigint): boolean => {
  const { data, topics } = event.body.v0
  const approved = i128Of(vecOf(data)?.[0])
  return addressOf(topics[1]) === payer && addressOf(topics[2]) === contract && approved === amount
}

const isSettled = (event: ContractEvent, { amount, asset, max, payTo, payer, profile }: Settlement): boolean => {
  const stated = profile.stated?.(event)
  return (
    stated?.payer === payer &&
    stated.payTo === payTo &&
    (!("token" in stated) || stated.token === asset) &&
    stated.max === max &&
    stated.actual === amount
  )
}

const movementError = (event: ContractEvent, settlement: Settlement): CheckError => {
  const read = readEvent(event)
  if (read._tag === "Unreadable")
    return ["invalid_upto_ledger_event_unreadable", "a movement in the simulation cannot be read"]
  if (read._tag === "Other") return undefined
  const { kind, transfer } = read
  if (transfer.contract !== settlement.asset)
    return ["invalid_upto_ledger_event_wrong_asset", "the simulation moves another asset"]
  return kind === "transfer" &&
    transfer.from === settlement.payer &&
    transfer.to === settlement.payTo &&
    transfer.amount === settlement.amount
    ? undefined
    : ["invalid_upto_ledger_event_wrong_transfer", "the simulation moves something else than the amount to payTo"]
}

/** The expected event names of a settlement, in order. */
const expectedNames = ({ amount, closes, profile }: Settlement): ReadonlyArray<string> => [
  ...(amount === 0n && !profile.zeroApproves
    ? []
    : ["approve", ...(amount === 0n ? [] : ["transfer"]), ...(closes ? ["approve"] : [])]),
  ...(profile.stated === undefined ? [] : ["upto_settled"])
]

/** The first failure in the contract events of one settlement, in order. */
export const checkEvents = (events: ReadonlyArray<ContractEvent>, settlement: Settlement): CheckError => {
  for (const event of events) {
    const error = movementError(event, settlement)
    if (error !== undefined) return error
  }
  const steps = events.filter((event) => [settlement.asset, settlement.contract].includes(emitterOf(event) ?? ""))
  const names = steps.map((event) => `${symbolOf(event.body.v0.topics[0])}`)
  const expected = expectedNames(settlement)
  if (names.join() !== expected.join()) {
    return ["invalid_upto_ledger_event_wrong_sequence", `the events are not ${expected.join(", ")}`]
  }
  const settled = settlement.profile.stated === undefined ? undefined : steps.at(-1)!
  if (settled !== undefined && (emitterOf(settled) !== settlement.contract || !isSettled(settled, settlement))) {
    return ["invalid_upto_ledger_event_wrong_settlement", "the contract does not state this ceiling and this amount"]
  }
  const [opened, closed] = steps.filter((_, index) => names[index] === "approve")
  const holds =
    (opened === undefined || isApproval(opened, settlement, settlement.max)) &&
    (closed === undefined || isApproval(closed, settlement, 0n))
  return holds
    ? undefined
    : ["invalid_upto_ledger_event_wrong_sequence", "the allowance is not the maximum, or does not end at zero"]
}

/** The ceilings that a transaction's events name: the contract's own, or allowances if the contract emits none. */
const namedMaxima = (
  events: ReadonlyArray<ContractEvent>,
  { asset, contract, payer, profile }: Omit<Settlement, "closes" | "max">
): ReadonlyArray<bigint> =>
  events.flatMap((event) => {
    const { data, topics } = event.body.v0
    const isOpened =
      emitterOf(event) === asset &&
      symbolOf(topics[0]) === "approve" &&
      addressOf(topics[1]) === payer &&
      addressOf(topics[2]) === contract
    if (profile.stated === undefined) return isOpened ? (i128Of(vecOf(data)?.[0]) ?? []) : []
    return emitterOf(event) === contract ? (profile.stated(event).max ?? []) : []
  })

/** Whether an event is this step of a settlement. */
const isStep = (event: ContractEvent, name: string, settlement: Settlement, isFirst: boolean): boolean => {
  const { asset, contract, max } = settlement
  if (symbolOf(event.body.v0.topics[0]) !== name) return false
  switch (name) {
    case "approve":
      return emitterOf(event) === asset && isApproval(event, settlement, isFirst ? max : 0n)
    case "transfer":
      return readEvent(event)._tag === "Moved" && movementError(event, settlement) === undefined
    default:
      return emitterOf(event) === contract && isSettled(event, settlement)
  }
}

const includesSteps = (events: ReadonlyArray<ContractEvent>, settlement: Settlement): boolean => {
  const expected = expectedNames(settlement)
  let seen = 0
  for (const event of events)
    if (seen < expected.length && isStep(event, expected[seen]!, settlement, seen === 0)) seen += 1
  return seen === expected.length
}

/**
 * Whether the steps of a settlement are among an executed transaction's events, in order. Other events do not matter:
 * the payer's own account chooses them, and it may run differently from its simulation.
 */
export const showsSettlement = (
  events: ReadonlyArray<ContractEvent>,
  promised: Omit<Settlement, "closes" | "max">
): boolean => {
  const { amount, asset, payTo, payer, profile } = promised
  // Without an event of the contract, only a missing transfer shows that zero was settled.
  const isPaid = (event: ContractEvent): boolean => {
    const read = readEvent(event)
    if (read._tag !== "Moved" || read.kind !== "transfer") return false
    const { contract, from, to } = read.transfer
    return contract === asset && from === payer && to === payTo
  }
  if (amount === 0n && profile.stated === undefined && events.some(isPaid)) return false
  // If the payer chose the end of the allowance, the steps with it include the steps without it.
  const closes = profile.revokes === "always"
  return namedMaxima(events, promised).some(
    (max) => max >= amount && includesSteps(events, { ...promised, closes, max })
  )
}

/**
 * Cost of the facilitator's own authorization in a settlement, over a verification: an entry for its nonce and a
 * signature. Measured at some 4 000 stroops.
 */
export const ownAuthorizationStroops = 10_000n

const feeError = (resourceStroops: bigint, ceilings: FeeCeilings): CheckError => {
  const message = overCeilings(resourceStroops, ceilings)
  return message === undefined ? undefined : ["invalid_upto_ledger_payload_fee_exceeds_maximum", message]
}

/**
 * The first failure in a simulation's response. `addedStroops`: the settlement's additional cost; `whose`: the refused
 * party.
 */
export const checkSimulation = (
  answer: SimulationAnswer,
  settlement: Settlement,
  ceilings: FeeCeilings,
  addedStroops: bigint,
  whose?: string
): CheckError => {
  switch (answer._tag) {
    case "Refused":
      return ["invalid_upto_ledger_simulation_failed", explainRefused(answer, meanings, whose)]
    case "RestoreRequired":
      return ["invalid_upto_ledger_restore_required", explainRestore(answer)]
    case "Simulated": {
      const events = contractEvents(answer.eventsXdr)
      if (events === undefined) return ["invalid_upto_ledger_event_unreadable", "an event cannot be read"]
      const costed = { ...answer, resourceFeeStroops: answer.resourceFeeStroops + addedStroops }
      const restore = restoreOverCeilings(costed, ceilings)
      return (
        checkEvents(events, settlement) ??
        (restore === undefined
          ? feeError(costed.resourceFeeStroops, ceilings)
          : ["invalid_upto_ledger_restore_required", restore])
      )
    }
  }
}
