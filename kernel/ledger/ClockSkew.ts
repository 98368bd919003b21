// How far this machine's clock is from the ledger's: the minimum of clock minus close time over the last ten ledgers,
// each taken when it was first seen. The delay of seeing a ledger only adds to it, so the minimum is nearest the truth.
// Nothing on the money path depends on this machine's clock; an operator should know all the same.

/** Ledgers over which the least is taken. */
const ledgersMax = 10
/** Ledgers after which the measurement is sure enough for a warning. */
const ledgersMin = 3
/** Seconds beyond which the clock counts as wrong. */
export const skewSecondsMax = 5

export interface ClockSkew {
  /** Notes a ledger in the moment in which it is first seen. */
  readonly note: (machineMillis: number, closedAtSeconds: number) => void
  /** Another network's ledgers begin. */
  readonly forget: () => void
  /** Seconds, positive when this machine is ahead; nothing before a new ledger was seen. */
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
