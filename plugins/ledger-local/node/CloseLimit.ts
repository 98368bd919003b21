// Limits for the contracts of one ledger: declared instructions, and run time, which is only measured while they run. A
// contract that fills memory takes the machine far longer than its instructions suggest. When the time is used up, the
// contracts that had their turn form the ledger, which is computed again, and the rest waits for the next one in order,
// without aging in the queue. The next ledger then begins with as many instructions as this one had time for. Each
// ledger that needs less than half of its time lets the next have twice as many, up to the limit. Without a time limit,
// such as for a ledger that must be reproducible, only instructions count.
import type { Frame } from "../transaction/Frame.ts"

export interface CloseTime {
  /** Limits for the contracts of one ledger. */
  readonly millis: number
  /** A clock that never goes back, milliseconds. */
  readonly now: () => number
}

/** The time of a ledger's contracts is used up. */
export class TimeIsUp extends Error {
  /** Contract transactions that had their turn, one at least. */
  readonly ran: number

  constructor(ran: number) {
    super(`the time of a ledger's contracts is over after ${ran}`)
    this.ran = ran
  }
}

export const instructionsOf = (frame: Frame): number => frame.soroban?.resources.instructions ?? 0

export class CloseLimit {
  readonly #instructionsMax: number
  readonly #time: CloseTime | undefined
  #instructions: number

  constructor(instructionsMax: number, time: CloseTime | undefined) {
    this.#instructionsMax = instructionsMax
    this.#instructions = instructionsMax
    this.#time = time
  }

  /** True when a transaction fits in addition to the declared total; the first always does, up to the limit. */
  admits(declared: number, frame: Frame): boolean {
    const sum = declared + instructionsOf(frame)
    return sum <= this.#instructions || (declared === 0 && sum <= this.#instructionsMax)
  }

  /** True for transactions that would fit if previous ledgers had not run out of time. */
  defers(declared: number, frame: Frame): boolean {
    return declared + instructionsOf(frame) <= this.#instructionsMax
  }

  /** Gives each contract transaction its turn. Throws `TimeIsUp` before the first without time left. */
  run<A>(all: ReadonlyArray<A>, turn: (one: A) => void): void {
    if (this.#time === undefined) return all.forEach(turn)
    const { millis, now } = this.#time
    const began = now()
    for (const [ran, one] of all.entries()) {
      if (ran > 0 && now() - began >= millis) throw new TimeIsUp(ran)
      turn(one)
    }
    if (now() - began < millis / 2) this.#instructions = Math.min(this.#instructionsMax, this.#instructions * 2)
  }

  /** There was time for these. */
  learn(frames: ReadonlyArray<Frame>): void {
    this.#instructions = Math.max(
      1,
      frames.reduce((sum, frame) => sum + instructionsOf(frame), 0)
    )
  }
}

/** Classic transactions one by one, then those of contracts, all made ready before the first of them runs. */
export const runInOrder = <A extends { readonly frame: Frame }>(
  all: ReadonlyArray<A>,
  ready: (one: A) => void,
  run: (one: A) => void,
  limit: CloseLimit | undefined
): void => {
  for (const one of all) {
    if (one.frame.isSoroban) continue
    ready(one)
    run(one)
  }
  const contracts = all.filter(({ frame }) => frame.isSoroban)
  contracts.forEach(ready)
  if (limit === undefined) contracts.forEach(run)
  else limit.run(contracts, run)
}
