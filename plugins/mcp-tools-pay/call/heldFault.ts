// What a call is answered whose earlier payment stands in its way.
import { fault, type ToolFault } from "../../mcp-tools/contract.ts"
import type { Reservation } from "../budget/Reservation.ts"

/** The same call was made at once, here or at another process. */
export const concurrent = fault(
  "SETTLEMENT_UNKNOWN",
  "the same call was or is paid for by another one that came at once; nothing was signed for this one",
  { reason: "concurrent_call" }
)

const whyOf = ({ state }: Reservation): string =>
  state === "spent"
    ? "a payment for this very call is on the ledger, and its content never came; it is not paid for again unless an " +
      "operator writes that payment off"
    : "a payment for this very call is signed and its outcome open; nothing more is paid until it is known"

/** The same call is held by an earlier payment that this process cannot finish. */
export const heldError = (reservation: Reservation): ToolFault => {
  const { id, state, transaction } = reservation
  return fault("SETTLEMENT_UNKNOWN", whyOf(reservation), {
    paymentIdentifier: id,
    state,
    ...(transaction === undefined ? {} : { transaction })
  })
}
