// The ledger's pace, measured by looks that saw news: a burst of ledgers in one look, or an endpoint that was away,
// must not move it, because the bound of an honest authorization is reckoned with it.

/**
 * Until it is measured, the shortest close time that an official client computes with: nobody honest is refused for it.
 */
const secondsPerLedgerAssumed = 1
/** Looks over which the interval is averaged, and how many of the shortest and of the longest are left out. */
export const looksMax = 20
const looksMin = 3
const outliersShare = 0.2

/** One look that saw news: ledgers since the look before, and the milliseconds between. */
export interface Look {
  readonly ledgers: number
  readonly millis: number
}

/**
 * Seconds per ledger of some looks, 0.1 to 60. Those with the shortest and the longest interval a ledger are left out:
 * a burst (a friendbot that closes at once) and a gap (an endpoint that was away) say nothing about the ledger's pace.
 */
export const paceOf = (looks: ReadonlyArray<Look>): number => {
  if (looks.length < looksMin) return secondsPerLedgerAssumed
  const ordered = looks.toSorted((a, b) => a.millis / a.ledgers - b.millis / b.ledgers)
  const outliers = Math.max(1, Math.floor(looks.length * outliersShare))
  const kept = ordered.slice(outliers, looks.length - outliers)
  const seconds =
    kept.reduce((sum, { millis }) => sum + millis, 0) / kept.reduce((sum, { ledgers }) => sum + ledgers, 0) / 1_000
  return Math.min(60, Math.max(0.1, seconds))
}
