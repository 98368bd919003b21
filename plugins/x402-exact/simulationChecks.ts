// Checks of the enforcing simulation: success, the promised transfer as the only movement of the asset, and a fee
// within the ceilings, including the restore of archived entries. Events that move no tokens, such as those of a smart
// account, are tolerated.
import type { FeeCeilings } from "../../kernel/config/Network.ts"
import type { SimulationAnswer } from "../../kernel/ledger/LedgerRpc.ts"
import {
  explainRefused,
  explainRestore,
  overCeilings,
  restoreOverCeilings
} from "../../kernel/payment/readSimulation.ts"
import type { PromisedMovement } from "../../kernel/payment/Scheme.ts"
import { eventsOfCalls, type ReadEvent, readEvent } from "../../kernel/stellar/TransferEvents.ts"
import type { CheckError } from "./checks.ts"

const readEvents = (eventsXdr: ReadonlyArray<Uint8Array>): ReadonlyArray<ReadEvent> | undefined => {
  try {
    return eventsOfCalls(eventsXdr).map(readEvent)
  } catch {
    return undefined
  }
}

const movementError = (events: ReadonlyArray<ReadEvent> | undefined, promise: PromisedMovement): CheckError => {
  if (events === undefined || events.some(({ _tag }) => _tag === "Unreadable")) {
    return ["invalid_exact_ledger_payload_event_not_transfer", "a movement in the simulation cannot be read"]
  }
  const moved = events.flatMap((event) => (event._tag === "Moved" ? [event] : []))
  const [only, ...others] = moved
  if (only === undefined) return ["invalid_exact_ledger_payload_no_transfer_events", "the simulation shows no transfer"]
  if (moved.some(({ transfer }) => transfer.contract !== promise.asset)) {
    return ["invalid_exact_ledger_payload_event_wrong_asset", "the simulation moves another asset"]
  }
  if (others.length > 0)
    return ["invalid_exact_ledger_payload_multiple_transfers", "the simulation moves the asset more than once"]
  if (only.kind === "mint")
    return ["invalid_exact_ledger_payload_issuer_is_payer", "the payer issues the asset: nothing would be paid"]
  if (only.transfer.from !== promise.payer)
    return ["invalid_exact_ledger_payload_event_wrong_from", "the simulation moves another account's tokens"]
  // A payment to the issuer burns. Its event does not contain a recipient.
  if (only.kind === "transfer" ? only.transfer.to !== promise.payTo : only.kind !== "burn") {
    return ["invalid_exact_ledger_payload_event_wrong_to", "the simulation moves the tokens elsewhere"]
  }
  return only.transfer.amount === promise.amount
    ? undefined
    : ["invalid_exact_ledger_payload_event_wrong_amount", "the simulation moves another amount"]
}

const feeError = (answer: Extract<SimulationAnswer, { _tag: "Simulated" }>, ceilings: FeeCeilings): CheckError => {
  const restore = restoreOverCeilings(answer, ceilings)
  if (restore !== undefined) return ["invalid_ledger_restore_required", restore]
  const message = overCeilings(answer.resourceFeeStroops, ceilings)
  return message === undefined ? undefined : ["invalid_exact_ledger_payload_fee_exceeds_maximum", message]
}

/** The first failure in a simulation's response. `whose`: the party that the asset contract refuses. */
export const checkSimulation = (
  answer: SimulationAnswer,
  promise: PromisedMovement,
  ceilings: FeeCeilings,
  whose?: string
): CheckError => {
  switch (answer._tag) {
    case "Refused":
      return ["invalid_ledger_enforcing_simulation_failed", explainRefused(answer, [], whose)]
    case "RestoreRequired":
      return ["invalid_ledger_restore_required", explainRestore(answer)]
    case "Simulated":
      return movementError(readEvents(answer.eventsXdr), promise) ?? feeError(answer, ceilings)
  }
}

/**
 * True if an executed transaction moved the promised amount. If the meta of a transaction cannot be read, we rely on
 * its success and its earlier simulation.
 */
export const movedAsPromised = (
  transfers: ReadonlyArray<{
    readonly contract: string
    readonly from: string
    readonly to: string
    readonly amount: bigint
  }>,
  promise: PromisedMovement
): boolean =>
  transfers.some(
    ({ amount, contract, from, to }) =>
      contract === promise.asset &&
      from === promise.payer &&
      (to === promise.payTo || to === "") &&
      amount === promise.amount
  )
