// The transaction on which the closing of a ledger failed: named by the error, so that it can be thrown out and the
// ledger closed without it.
import { NotFetched } from "../engine/state/Store.ts"
import type { Frame } from "../transaction/Frame.ts"

/** A transaction that the ledger cannot even charge or refund; it is thrown out, and the ledger closed without it. */
export class Offender extends Error {
  readonly frame: Frame

  constructor(frame: Frame, cause: unknown) {
    super("a transaction cannot be applied", { cause })
    this.frame = frame
  }
}

/** Runs a phase of a transaction; an exception carries the transaction. */
export const orOffender = <A>(frame: Frame, phase: () => A): A => {
  try {
    return phase()
  } catch (error) {
    throw new Offender(frame, error)
  }
}

/** The entries to fetch before the failed work can be repeated; undefined if the error has another cause. */
export const missingIn = (error: unknown): NotFetched | undefined => {
  if (error instanceof NotFetched) return error
  return error instanceof Offender && error.cause instanceof NotFetched ? error.cause : undefined
}
