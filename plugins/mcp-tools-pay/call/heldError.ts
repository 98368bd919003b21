// Errors for a call that is blocked by an earlier or concurrent payment for the same call.
import { toolError, type ToolError } from "../../mcp-tools/contract.ts"
import type { Reservation } from "../budget/Reservation.ts"

/** The same call is in progress, here or at another process. */
export const concurrent = toolError(
  "SETTLEMENT_UNKNOWN",
  "a concurrent identical call is paying or has paid; nothing was signed for this one",
  { reason: "concurrent_call" }
)

const whyOf = ({ state }: Reservation): string =>
  state === "spent"
    ? "a payment for this call is on the ledger, but its content was never received; it is not paid again unless an " +
      "operator writes that payment off"
    : "a payment for this call is signed, but its outcome is not known; nothing else is paid until it is known"

/** An earlier payment that this process cannot finish blocks the call. */
export const heldError = (reservation: Reservation): ToolError => {
  const { id, state, transaction } = reservation
  return toolError("SETTLEMENT_UNKNOWN", whyOf(reservation), {
    paymentIdentifier: id,
    state,
    ...(transaction === undefined ? {} : { transaction })
  })
}
