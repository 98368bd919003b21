// The difference between this machine's clock and the ledger's: the minimum of clock minus close time over the last ten
// ledgers, each measured when it was first seen. A delay before we see a ledger only increases the difference, so the
// minimum is closest to the truth. Nothing on the money path depends on this machine's clock, but an operator should
// still learn of a wrong clock.

/** Number of ledgers for the minimum. */
const ledgersMax = 10
/** Ledgers after which the measurement is certain enough for a warning. */
const ledgersMin = 3
/** Seconds beyond which the clock counts as wrong. */
export const skewSecondsMax = 5

export interface ClockSkew {
  /** Records a ledger at the moment when it is first seen. */
  readonly note: (machineMillis: number, closedAtSeconds: number) => void
  /** Resets the measurement: another network's ledgers begin. */
  readonly forget: () => void
  /** Seconds, positive when this machine is ahead; undefined before a new ledger was seen. */
  readonly seconds: () => number | undefined
  readonly isWrong: () => boolean
}

export const makeClockSkew = (): ClockSkew => {
  let samples: ReadonlyArray<number> = []
  const seconds = () => (samples.length === 0 ? undefined : Math.min(...samples))
  return {
    note: (machineMillis, closedAtSeconds) => {
      samples = [...samples, machineMillis / 1_000 - closedAtSeconds].slice(-ledgersMax)
    },
    forget: () => {
      samples = []
    },
    seconds,
    isWrong: () => samples.length >= ledgersMin && Math.abs(seconds() ?? 0) > skewSecondsMax
  }
}
