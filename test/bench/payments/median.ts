// The median of some figures, so that a single disturbed round does not decide. NaN for an empty list or an unknown
// figure.
export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const half = sorted.length / 2
  return sorted.length === 0 || values.some(Number.isNaN)
    ? Number.NaN
    : (sorted[Math.ceil(half) - 1]! + sorted[Math.min(sorted.length - 1, Math.floor(half))]!) / 2
}
