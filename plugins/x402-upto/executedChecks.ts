// What an executed settlement must show: the same sequence of events as its simulation. The promise says what was to be
// moved; the ceiling is the contract's own word, which the payer's signature binds. Pure.
import { Option } from "effect"
import type { ExecutedTransaction } from "../../kernel/ledger/Executed.ts"
import { eventsFault, settledMax } from "./simulationChecks.ts"

interface Promised {
  readonly payer: string
  readonly payTo: string
  readonly asset: string
  readonly amount: bigint
}

/**
 * Whether an executed transaction moved what was promised. A transaction whose meta cannot be read succeeded, and was
 * simulated.
 */
export const movedAsPromised = (executed: ExecutedTransaction, contract: string, promised: Promised): boolean => {
  const { contractEvents, transfers } = executed
  if (contractEvents === undefined || Option.isNone(transfers)) return true
  const max = settledMax(contractEvents, contract)
  return max !== undefined && eventsFault(contractEvents, { ...promised, contract, max }) === undefined
}
