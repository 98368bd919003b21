// The kinds of faults and their frequency, drawn for each run: some seeds have many, others few. Every figure is the
// probability of one fault at one call.
import type { LedgerFaults } from "./SimulatedLedger.ts"
import type { Random } from "./random.ts"

export interface Faults {
  readonly rpcAway: number
  readonly sendTryAgain: number
  readonly sendError: number
  readonly sendLost: number
  readonly storeBefore: number
  readonly storeAfter: number
  readonly crash: number
  readonly crashAtStep: number
  readonly slow: number
  /** A process stalls between two steps for longer than a lease. */
  readonly stall: number
}

export const quiet: Faults = {
  rpcAway: 0,
  sendTryAgain: 0,
  sendError: 0,
  sendLost: 0,
  storeBefore: 0,
  storeAfter: 0,
  crash: 0,
  crashAtStep: 0,
  slow: 0,
  stall: 0
}

export const quietLedger: LedgerFaults = { drop: 0, passOver: 0, fail: 0 }

export interface Conditions {
  readonly faults: Faults
  readonly ledger: LedgerFaults
  /** Faults are so rare that some have to be arranged. */
  readonly isFair: boolean
}

export const conditionsOf = ({ chance, next }: Random): Conditions => {
  const isFair = next() < 0.2
  const scaled = (most: number) => most * next() * (isFair ? 0.2 : 1)
  return {
    isFair,
    faults: {
      rpcAway: scaled(0.15),
      sendTryAgain: scaled(0.3),
      sendError: scaled(chance(0.2) ? 1.6 : 0.3),
      sendLost: scaled(0.3),
      storeBefore: scaled(0.05),
      storeAfter: scaled(0.05),
      crash: scaled(0.004),
      crashAtStep: scaled(0.04),
      slow: scaled(0.05),
      stall: scaled(0.02)
    },
    ledger: { drop: scaled(0.3), passOver: scaled(0.5), fail: scaled(0.15) }
  }
}
