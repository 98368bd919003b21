// The ledger's pace, measured by looks that saw news. A burst of ledgers in one look, or an endpoint that was away, is
// no measure of the next ledger. A payment client counts both: its authorization is bounded by the faster of the two.

/**
 * Until it is measured, the shortest close time that an official client computes with: nobody honest is refused for it.
 */
const secondsPerLedgerAssumed = 1
/** Looks over which the interval is averaged, and how many of the shortest and of the longest are left out. */
const looksMax = 20
const looksMin = 3
const outliersShare = 0.2
/** Intervals between the ledgers over which an official client takes the mean. */
const clientIntervals = 19

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

/**
 * Seconds per ledger, 0.1 to 60, of the fastest clock that an honest client may have now: a client takes the plain mean
 * of the last ledgers, and bursts that the pace leaves out are in it, while the others may have become slower. Until
 * as many have been seen since the start, or since the ledger went on elsewhere, it may have read any pace.
 */
export const fastestPaceOf = (looks: ReadonlyArray<Look>): number => {
  let ledgers = 0
  let millis = 0
  for (const look of looks.toReversed()) {
    if (ledgers >= clientIntervals) break
    ledgers += look.ledgers
    millis += look.millis
  }
  const mean = ledgers < clientIntervals ? secondsPerLedgerAssumed : Math.max(0.1, millis / ledgers / 1_000)
  return Math.min(paceOf(looks), mean)
}

/** The paces of a follower's own looks. */
export const makePaces = () => {
  let looks: ReadonlyArray<Look> = []
  let pace = paceOf(looks)
  let fastest = fastestPaceOf(looks)
  const measure = (seen: ReadonlyArray<Look>) => {
    looks = seen
    pace = paceOf(looks)
    fastest = fastestPaceOf(looks)
  }
  return {
    note: (look: Look) => measure([...looks, look].slice(-looksMax)),
    forget: () => measure([]),
    pace: () => pace,
    fastest: () => fastest,
    /** Looks that they are known by, at most 20. */
    looks: () => looks.length
  }
}
