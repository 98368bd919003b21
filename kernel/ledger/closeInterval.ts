// The ledger's pace, measured by looks that saw news. A burst of ledgers in one look, or an endpoint that was away, is
// no measure of the next ledger. A payment client counts both, and by close times, which may run ahead of the clock and
// let it catch up: its authorization is bounded by the fastest of what it may have read.

/**
 * Until it is measured, the shortest close time that an official client computes with: nobody honest is refused for it.
 */
const secondsPerLedgerAssumed = 1
/** Looks over which the interval is averaged, and how many of the shortest and of the longest are left out. */
const looksMax = 20
const looksMin = 3
const outliersShare = 0.2
/** Looks among which the shortest interval is sought. */
const soonestLooks = 5
/** Intervals between the ledgers over which an official client takes the mean. */
const clientIntervals = 19
/** Looks among which a client's reading is sought: it signed some ledgers ago, and what it read may have left since. */
const clientLooksMax = 60

/** One look that saw news: ledgers since the look before, and the time between, by two clocks. */
export interface PollObservation {
  readonly ledgers: number
  /** That elapsed here. */
  readonly millis: number
  /** Between the two closes, as the ledger tells them. */
  readonly closeSeconds: number
}

const bounded = (seconds: number): number => Math.min(60, Math.max(0.1, seconds))
const sumOf = (looks: ReadonlyArray<PollObservation>, what: keyof PollObservation): number =>
  looks.reduce((sum, look) => sum + look[what], 0)

/**
 * The last 20 looks; undefined when they are too few. Those with the shortest and the longest interval a ledger are
 * left out: a burst (a friendbot that closes at once) and a gap (an endpoint that was away) say nothing about the
 * ledger's pace.
 */
const usual = (seen: ReadonlyArray<PollObservation>): ReadonlyArray<PollObservation> | undefined => {
  const looks = seen.slice(-looksMax)
  if (looks.length < looksMin) return undefined
  const ordered = looks.toSorted((a, b) => a.millis / a.ledgers - b.millis / b.ledgers)
  const outliers = Math.max(1, Math.floor(looks.length * outliersShare))
  return ordered.slice(outliers, looks.length - outliers)
}

/** Seconds per ledger, 0.1 to 60, of the last 20 looks. */
export const meanCloseInterval = (seen: ReadonlyArray<PollObservation>): number => {
  const looks = usual(seen)
  return looks === undefined
    ? secondsPerLedgerAssumed
    : bounded(sumOf(looks, "millis") / sumOf(looks, "ledgers") / 1_000)
}

/**
 * The same of ledgers that have something in them. A local ledger whose close times have run ahead of the clock leaves
 * out empty ones until the clock has caught up: by its close times it is as fast as ever, and so it is for payments.
 */
export const activeCloseInterval = (seen: ReadonlyArray<PollObservation>): number => {
  const looks = usual(seen)
  return looks === undefined
    ? secondsPerLedgerAssumed
    : Math.min(meanCloseInterval(seen), bounded(sumOf(looks, "closeSeconds") / sumOf(looks, "ledgers")))
}

/** The shortest time a ledger took of late, seconds, 0.1 to 60, by either clock: no next one comes much sooner. */
export const minCloseInterval = (seen: ReadonlyArray<PollObservation>): number =>
  bounded(
    Math.min(
      ...seen
        .slice(-soonestLooks)
        .map(({ closeSeconds, ledgers, millis }) => Math.min(millis / 1_000, closeSeconds) / ledgers)
    )
  )

/** The mean of as many looks before `end` as a client reads, by the faster clock; undefined when they are fewer. */
const clientMean = (looks: ReadonlyArray<PollObservation>, end: number): number | undefined => {
  let [ledgers, millis, closeSeconds] = [0, 0, 0]
  for (let at = end - 1; at >= 0 && ledgers < clientIntervals; at--) {
    ledgers += looks[at]!.ledgers
    millis += looks[at]!.millis
    closeSeconds += looks[at]!.closeSeconds
  }
  return ledgers < clientIntervals ? undefined : Math.min(millis / 1_000, closeSeconds) / ledgers
}

/**
 * Seconds per ledger, 0.1 to 60, of the fastest clock that an honest client may have now: a client takes the plain mean
 * of the last ledgers when it signs, by their close times. Bursts that the pace leaves out are in it, and others may
 * have become slower since. Until twice as many have been seen since the start, or since the ledger went on elsewhere,
 * it may have read any pace.
 */
export const minClientCloseInterval = (looks: ReadonlyArray<PollObservation>): number => {
  const ledgers = sumOf(looks, "ledgers")
  const means =
    ledgers < 2 * clientIntervals
      ? [secondsPerLedgerAssumed]
      : looks.flatMap((_, at) => clientMean(looks, at + 1) ?? [])
  return Math.min(meanCloseInterval(looks), Math.max(0.1, Math.min(...means)))
}

/** Seconds per ledger by a follower's own looks. */
export interface CloseIntervals {
  readonly note: (look: PollObservation) => void
  readonly forget: () => void
  readonly pace: () => number
  readonly busy: () => number
  readonly fastest: () => number
  readonly soonest: () => number
  /** Looks that they are known by, at most 60. */
  readonly looks: () => number
}

export const makeCloseIntervals = (): CloseIntervals => {
  let looks: ReadonlyArray<PollObservation> = []
  let pace = meanCloseInterval(looks)
  let busy = activeCloseInterval(looks)
  let fastest = minClientCloseInterval(looks)
  const measure = (seen: ReadonlyArray<PollObservation>) => {
    looks = seen
    pace = meanCloseInterval(looks)
    busy = activeCloseInterval(looks)
    fastest = minClientCloseInterval(looks)
  }
  return {
    note: (look: PollObservation) => measure([...looks, look].slice(-clientLooksMax)),
    forget: () => measure([]),
    pace: () => pace,
    busy: () => busy,
    fastest: () => fastest,
    soonest: () => minCloseInterval(looks),
    looks: () => looks.length
  }
}
