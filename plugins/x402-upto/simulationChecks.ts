// Checks of the enforcing simulation, and of the executed transaction after it: success without a restore, a
// settlement's sequence of events (allowance, transfer, the allowance's end, the contract's event with ceiling and
// amount; for zero only the last), no other movement of any token, and a fee within the ceilings. Events that move no
// tokens, such as those of a smart account, are tolerated at any position.
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

/** The ceiling that a transaction shows: in the contract's event, or in the allowance if the contract emits none. */
export const settledMax = (
  events: ReadonlyArray<ContractEvent>,
  contract: string,
  { stated }: Profile
): bigint | undefined => {
  if (stated !== undefined) {
    const own = events.find((event) => emitterOf(event) === contract)
    return own === undefined ? undefined : stated(own).max
  }
  const opened = events.find(
    ({ body: { v0 } }) => symbolOf(v0.topics[0]) === "approve" && addressOf(v0.topics[2]) === contract
  )
  return opened === undefined ? undefined : i128Of(vecOf(opened.body.v0.data)?.[0])
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
