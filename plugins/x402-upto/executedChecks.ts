// Checks of an executed settlement: it must show the steps of its simulation, in order. The promise is the intended
// amount; the ceiling is in the contract's event, which the payer's signature binds. Pure.
import { Option } from "effect"
import type { ExecutedTransaction } from "../../kernel/ledger/Executed.ts"
import type { OfferedContract } from "./profiles.ts"
import { showsSettlement } from "./simulationChecks.ts"

interface PromisedPayment {
  readonly payer: string
  readonly payTo: string
  readonly asset: string
  readonly amount: bigint
}

/**
 * True if an executed transaction moved the promised amount through one of the offered contracts. If the meta of a
 * transaction cannot be read, we rely on its success and its earlier simulation.
 */
export const movedAsPromised = (
  executed: ExecutedTransaction,
  offered: ReadonlyArray<OfferedContract>,
  promised: PromisedPayment
): boolean => {
  const { contractEvents, transfers } = executed
  if (contractEvents === undefined || Option.isNone(transfers)) return true
  return offered.some(({ contract, profile }) => showsSettlement(contractEvents, { ...promised, contract, profile }))
}
