// What the one enforcing simulation must show, and the executed transaction after it: success without a restore, the
// sequence of events that a settlement has (allowance, transfer, the allowance's end, the contract's own word with
// ceiling and amount; for zero the last alone), no other movement of any token, and a fee within the ceilings. Events
// that move no tokens, such as those of a smart account, are tolerated wherever they stand.
import { StrKey } from "@stellar/stellar-sdk/base"
import type { FeeCeilings } from "../../kernel/config/Network.ts"
import type { SimulationAnswer } from "../../kernel/ledger/LedgerRpc.ts"
import {
  explainRefused,
  explainRestore,
  type Meaning,
  overCeilings,
  restoreOverCeilings
} from "../../kernel/payment/readSimulation.ts"
import { type ContractEvent, eventsOfCalls, isPublished, readEvent } from "../../kernel/stellar/TransferEvents.ts"
import type { Fault } from "./refusals.ts"
import { addressOf, fieldsOf, i128Of, symbolOf, vecOf } from "../../kernel/stellar/Value.ts"

/** What a settlement is to move. `contract` is the settlement contract. */
export interface Settlement {
  readonly contract: string
  readonly payer: string
  readonly payTo: string
  readonly asset: string
  readonly max: bigint
  readonly amount: bigint
}

/** What errors of the settlement contract mean. */
const meanings: ReadonlyArray<Meaning> = [
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

const isSettled = (event: ContractEvent, { amount, asset, max, payTo, payer }: Settlement): boolean => {
  const { data, topics } = event.body.v0
  const fields = fieldsOf(data)
  return (
    addressOf(topics[1]) === payer &&
    addressOf(topics[2]) === payTo &&
    addressOf(topics[3]) === asset &&
    i128Of(fields?.get("max")) === max &&
    i128Of(fields?.get("actual")) === amount
  )
}

const movementFault = (event: ContractEvent, settlement: Settlement): Fault => {
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

/** The ceiling that the contract states in a transaction; undefined when it states none. */
export const settledMax = (events: ReadonlyArray<ContractEvent>, contract: string): bigint | undefined => {
  const own = events.find((event) => emitterOf(event) === contract)
  return own === undefined ? undefined : i128Of(fieldsOf(own.body.v0.data)?.get("max"))
}

/** The first thing wrong with the contract events of one settlement, in their order. */
export const eventsFault = (events: ReadonlyArray<ContractEvent>, settlement: Settlement): Fault => {
  for (const event of events) {
    const fault = movementFault(event, settlement)
    if (fault !== undefined) return fault
  }
  const steps = events.filter((event) => [settlement.asset, settlement.contract].includes(emitterOf(event) ?? ""))
  const names = steps.map((event) => `${symbolOf(event.body.v0.topics[0])}`)
  const expected = settlement.amount === 0n ? ["upto_settled"] : ["approve", "transfer", "approve", "upto_settled"]
  if (names.join() !== expected.join()) {
    return ["invalid_upto_ledger_event_wrong_sequence", `the events are not ${expected.join(", ")}`]
  }
  const settled = steps.at(-1)!
  if (emitterOf(settled) !== settlement.contract || !isSettled(settled, settlement)) {
    return ["invalid_upto_ledger_event_wrong_settlement", "the contract does not state this ceiling and this amount"]
  }
  const [opened, , closed] = steps
  const holds =
    settlement.amount === 0n || (isApproval(opened!, settlement, settlement.max) && isApproval(closed!, settlement, 0n))
  return holds
    ? undefined
    : ["invalid_upto_ledger_event_wrong_sequence", "the allowance is not the maximum, or does not end at zero"]
}

/**
 * What the facilitator's own authorization adds to a settlement over a verification, in which it costs nothing: an
 * entry for its nonce and a signature. Measured at some 4 000 stroops.
 */
export const ownAuthorizationStroops = 10_000n

const feeFault = (resourceStroops: bigint, ceilings: FeeCeilings): Fault => {
  const message = overCeilings(resourceStroops, ceilings)
  return message === undefined ? undefined : ["invalid_upto_ledger_payload_fee_exceeds_maximum", message]
}

/** The first thing wrong with a simulation's answer. `addedStroops`: what the settlement will cost beyond it. */
export const simulationFault = (
  answer: SimulationAnswer,
  settlement: Settlement,
  ceilings: FeeCeilings,
  addedStroops: bigint
): Fault => {
  switch (answer._tag) {
    case "Refused":
      return ["invalid_upto_ledger_simulation_failed", explainRefused(answer, meanings)]
    case "RestoreRequired":
      return ["invalid_upto_ledger_restore_required", explainRestore(answer)]
    case "Simulated": {
      const events = contractEvents(answer.eventsXdr)
      if (events === undefined) return ["invalid_upto_ledger_event_unreadable", "an event cannot be read"]
      const costed = { ...answer, resourceFeeStroops: answer.resourceFeeStroops + addedStroops }
      const restore = restoreOverCeilings(costed, ceilings)
      return (
        eventsFault(events, settlement) ??
        (restore === undefined
          ? feeFault(costed.resourceFeeStroops, ceilings)
          : ["invalid_upto_ledger_restore_required", restore])
      )
    }
  }
}
