// The middle of some figures: one round beside a busy neighbour does not decide. NaN of none, or of an unknown one.
export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const half = sorted.length / 2
  return sorted.length === 0 || values.some(Number.isNaN)
    ? Number.NaN
    : (sorted[Math.ceil(half) - 1]! + sorted[Math.min(sorted.length - 1, Math.floor(half))]!) / 2
}
