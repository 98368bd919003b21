// The ledger's close interval, measured by polls that saw a new ledger. A burst of ledgers in one poll, or an
// unavailable endpoint, does not predict the next ledger. A payment client counts both, and by close times, which may
// run ahead of the clock until it catches up. So its authorization is bounded by the shortest interval that it may have
// read.

/**
 * Default until it is measured: the shortest close time that an official client computes with, so that no honest client
 * is refused.
 */
const secondsPerLedgerAssumed = 1
/** Samples of the average, and how many of the shortest and of the longest are left out. */
const pollsMax = 20
const pollsMin = 3
const outliersShare = 0.2
/** Samples in the search for the shortest interval. */
const soonestPolls = 5
/** Intervals between the ledgers in an official client's mean. */
const clientIntervals = 19
/** Samples in the search for a client's reading: it signed some ledgers ago, and its samples may be dropped since. */
const clientPollsMax = 60

/**
 * One sample, a poll that saw a new ledger: ledgers since the previous sample, and the time between them, by two
 * clocks.
 */
interface PollObservation {
  readonly ledgers: number
  /** Elapsed time on this machine. */
  readonly millis: number
  /** Time between the two closes, by the ledger's own close times. */
  readonly closeSeconds: number
}

const bounded = (seconds: number): number => Math.min(60, Math.max(0.1, seconds))
const sumOf = (polls: ReadonlyArray<PollObservation>, what: keyof PollObservation): number =>
  polls.reduce((sum, poll) => sum + poll[what], 0)

/**
 * The last 20 samples; undefined if there are fewer. The samples with the shortest and the longest interval are left
 * out: a burst (a friendbot that closes immediately) and a gap (an unavailable endpoint) do not show the close
 * interval.
 */
const usual = (seen: ReadonlyArray<PollObservation>): ReadonlyArray<PollObservation> | undefined => {
  const polls = seen.slice(-pollsMax)
  if (polls.length < pollsMin) return undefined
  const ordered = polls.toSorted((a, b) => a.millis / a.ledgers - b.millis / b.ledgers)
  const outliers = Math.max(1, Math.floor(polls.length * outliersShare))
  return ordered.slice(outliers, polls.length - outliers)
}

/** Seconds per ledger, 0.1 to 60, of the last 20 samples. */
export const meanCloseInterval = (seen: ReadonlyArray<PollObservation>): number => {
  const polls = usual(seen)
  return polls === undefined
    ? secondsPerLedgerAssumed
    : bounded(sumOf(polls, "millis") / sumOf(polls, "ledgers") / 1_000)
}

/**
 * The same for ledgers with content. A local ledger with close times ahead of the clock leaves out empty ledgers until
 * the clock has caught up. By its close times it is as fast as before, and so it is for payments.
 */
export const activeCloseInterval = (seen: ReadonlyArray<PollObservation>): number => {
  const polls = usual(seen)
  return polls === undefined
    ? secondsPerLedgerAssumed
    : Math.min(meanCloseInterval(seen), bounded(sumOf(polls, "closeSeconds") / sumOf(polls, "ledgers")))
}

/** The shortest recent interval, seconds, 0.1 to 60, by either clock: the next ledger does not come much sooner. */
export const minCloseInterval = (seen: ReadonlyArray<PollObservation>): number =>
  bounded(
    Math.min(
      ...seen
        .slice(-soonestPolls)
        .map(({ closeSeconds, ledgers, millis }) => Math.min(millis / 1_000, closeSeconds) / ledgers)
    )
  )

/** The mean of as many samples before `end` as a client reads, by the faster clock; undefined if there are fewer. */
const clientMean = (polls: ReadonlyArray<PollObservation>, end: number): number | undefined => {
  let [ledgers, millis, closeSeconds] = [0, 0, 0]
  for (let at = end - 1; at >= 0 && ledgers < clientIntervals; at--) {
    ledgers += polls[at]!.ledgers
    millis += polls[at]!.millis
    closeSeconds += polls[at]!.closeSeconds
  }
  return ledgers < clientIntervals ? undefined : Math.min(millis / 1_000, closeSeconds) / ledgers
}

/**
 * Seconds per ledger, 0.1 to 60, of the fastest clock that an honest client may have now: a client takes the plain mean
 * of the last ledgers when it signs, by their close times. It includes bursts that the close interval leaves out, and
 * other ledgers may have become slower since. Until twice as many ledgers were seen since the start, or since a change
 * of the head, the client may have read any interval.
 */
export const minClientCloseInterval = (polls: ReadonlyArray<PollObservation>): number => {
  const ledgers = sumOf(polls, "ledgers")
  const means =
    ledgers < 2 * clientIntervals
      ? [secondsPerLedgerAssumed]
      : polls.flatMap((_, at) => clientMean(polls, at + 1) ?? [])
  return Math.min(meanCloseInterval(polls), Math.max(0.1, Math.min(...means)))
}

/** Seconds per ledger, by a follower's own polls. */
export interface CloseIntervals {
  readonly note: (poll: PollObservation) => void
  readonly forget: () => void
  readonly pace: () => number
  readonly busy: () => number
  readonly fastest: () => number
  readonly soonest: () => number
  /** The number of samples, at most 60. */
  readonly polls: () => number
}

export const makeCloseIntervals = (): CloseIntervals => {
  let reads: ReadonlyArray<PollObservation> = []
  let pace = meanCloseInterval(reads)
  let busy = activeCloseInterval(reads)
  let fastest = minClientCloseInterval(reads)
  const measure = (seen: ReadonlyArray<PollObservation>) => {
    reads = seen
    pace = meanCloseInterval(reads)
    busy = activeCloseInterval(reads)
    fastest = minClientCloseInterval(reads)
  }
  return {
    note: (poll: PollObservation) => measure([...reads, poll].slice(-clientPollsMax)),
    forget: () => measure([]),
    pace: () => pace,
    busy: () => busy,
    fastest: () => fastest,
    soonest: () => minCloseInterval(reads),
    polls: () => reads.length
  }
}
