// Head selection: which ledger is the newest among endpoints that may disagree. Pure. A ledger that continues the
// selected line is taken immediately; a short leap is taken when it is reported twice. A line far ahead is taken if no
// endpoint is on the selected line any more, in two cases: it advanced and closed as much later as its number is
// higher, or it was the only reported line for seconds (half a minute if it does not advance). A line below is taken
// only if it advances while the selected line does not, or if it closed later although its number is lower: then the
// network was reset. If endpoints contradict each other for long, the majority is right; of two, the line that the
// other could have become. So wrong answers of one or a few endpoints change nothing, and no wrong selection lasts.
import type { LatestLedger } from "./LedgerRpc.ts"

export interface HeadState {
  readonly newest: LatestLedger
  /** When the head last changed, monotonic milliseconds. */
  readonly advancedAt: number
  /** One endpoint's answer from the start, not confirmed yet: two of its answers may both be wrong. */
  readonly isUnconfirmed: boolean
  /** The lower ledger that the last poll reported. */
  readonly below: LatestLedger | undefined
  /** A line far ahead that every poll since has reported. */
  readonly candidateAhead: CandidateAhead | undefined
  /** A better line than the selected one, in its first report. */
  readonly competingHead: LatestLedger | undefined
}

interface CandidateAhead {
  readonly first: LatestLedger
  /** Monotonic milliseconds since which it is the only line; reset whenever another line is reported too. */
  readonly aloneSince: number
  readonly polls: number
}

interface HeadObservations {
  readonly first: LatestLedger
  /** Every endpoint's own answer, requested after the first one; empty if that was not necessary. */
  readonly second: ReadonlyArray<LatestLedger>
  /** Monotonic milliseconds. */
  readonly at: number
  /** Duration of a ledger, seconds. */
  readonly closeInterval: number
  /** This machine's clock, Unix seconds: only to doubt one of two endpoints with a close time in the future. */
  readonly machineSeconds: number
}

type HeadUpdate = {
  readonly state: HeadState
  /** `advanced`: by an expected number of ledgers; `moved`: to another place. */
  readonly change: "none" | "advanced" | "moved"
}

/** Ledgers that may close unseen between two polls, in addition to three times the prediction of the close interval. */
const burstMax = 12
/** Time after which a stalled line is replaced by a lower one that advances: milliseconds, or ledgers. */
const stillMillis = 10_000
const stillLedgers = 3
/** Ledgers that a test network may close in a moment: a leap of at most this length is taken when reported twice. */
const leapMax = 1_000
/** A longer leap that its close times do not explain must be the only line for this long, in this many polls. */
const beyondMillis = 30_000
const beyondPolls = 5
/** The same for a line that advances. */
const beyondMovingMillis = 5_000
/** Maximum seconds of a close time in this machine's future, because the machine's clock may be wrong. */
const futureSecondsMax = 3_600

/** Maximum lead of a ledger that continues the selected line. */
const reachOf = (belief: HeadState, at: number, pace: number): number =>
  burstMax + Math.ceil((3 * Math.max(0, at - belief.advancedAt)) / (pace * 1_000))

/** Whether the line is stalled, by its own close interval. */
const isStalled = (belief: HeadState, at: number, pace: number): boolean =>
  at - belief.advancedAt > Math.max(stillMillis, stillLedgers * pace * 1_000)

/** The position of an answer relative to the selected line. */
type Relation = "same" | "next" | "ahead" | "below"

export const relationOf = (belief: HeadState, answer: LatestLedger, at: number, pace: number): Relation => {
  const ledgers = answer.sequence - belief.newest.sequence
  if (ledgers === 0) return "same"
  if (ledgers < 0) return "below"
  return ledgers <= reachOf(belief, at, pace) ? "next" : "ahead"
}

const newestOf = (answers: ReadonlyArray<LatestLedger>): LatestLedger | undefined =>
  answers.reduce<LatestLedger | undefined>(
    (newest, one) => (newest === undefined || one.sequence > newest.sequence ? one : newest),
    undefined
  )

const areNear = (a: LatestLedger, b: LatestLedger): boolean => Math.abs(a.sequence - b.sequence) <= burstMax

/** A line that several answers agree upon. */
interface Line {
  readonly newest: LatestLedger
  readonly answers: number
  readonly endpoints: number
}

const linesOf = (answers: ReadonlyArray<LatestLedger>): ReadonlyArray<Line> =>
  answers.map((one) => {
    const line = answers.filter((other) => areNear(one, other))
    return {
      newest: newestOf(line)!,
      answers: line.length,
      endpoints: new Set(line.map(({ endpoint }) => endpoint)).size
    }
  })

/**
 * Whether the higher of two lines can continue the lower one: it is as many ledgers later as its close is seconds
 * later.
 */
const continues = (low: LatestLedger, high: LatestLedger, pace: number): boolean =>
  high.closedAtSeconds > low.closedAtSeconds &&
  high.sequence - low.sequence <= burstMax + (3 * (high.closedAtSeconds - low.closedAtSeconds)) / pace

const isBetter = (a: Line, b: Line, { machineSeconds, closeInterval: pace }: HeadObservations): boolean => {
  if (a.endpoints !== b.endpoints) return a.endpoints > b.endpoints
  const isHigher = a.newest.sequence > b.newest.sequence
  const [low, high] = isHigher ? [b.newest, a.newest] : [a.newest, b.newest]
  const isFuture = (one: LatestLedger) => one.closedAtSeconds > machineSeconds + futureSecondsMax
  return isHigher === (continues(low, high, pace) && (isFuture(low) || !isFuture(high)))
}

const bestOf = (lines: ReadonlyArray<Line>, polled: HeadObservations): Line | undefined =>
  lines.reduce<Line | undefined>(
    (best, line) => (best === undefined || isBetter(line, best, polled) ? line : best),
    undefined
  )

const headAt = (newest: LatestLedger, at: number, isFirstWord = false): HeadState => ({
  newest,
  advancedAt: at,
  isUnconfirmed: isFirstWord,
  below: undefined,
  candidateAhead: undefined,
  competingHead: undefined
})

/** The first selection: a line that two answers report, or the best line of several endpoints. */
export const initialHead = (polled: HeadObservations): HeadState | undefined => {
  const answers = [polled.first, ...polled.second]
  const isAlone = new Set(answers.map(({ endpoint }) => endpoint)).size === 1
  const best = bestOf(
    linesOf(answers).filter((line) => !isAlone || line.answers > 1),
    polled
  )
  return best === undefined ? undefined : headAt(best.newest, polled.at, best.endpoints === 1)
}

/** A better line than the selected one, which is still reported. */
const competingHeadIn = (belief: HeadState, polled: HeadObservations): LatestLedger | undefined => {
  const { at, closeInterval: pace, second } = polled
  const isOwn = ({ newest }: Line) => ["same", "next"].includes(relationOf(belief, newest, at, pace))
  const lines = linesOf(second)
  const own = bestOf(lines.filter(isOwn), polled)
  const other = bestOf(
    lines.filter((line) => !isOwn(line)),
    polled
  )
  return own !== undefined && other !== undefined && isBetter(other, own, polled) ? other.newest : undefined
}

/** Reports of a line ahead. */
interface ObservedAhead extends CandidateAhead {
  readonly newest: LatestLedger
  /** The number of answers that agree on it, including at most one earlier answer. */
  readonly answers: number
}

/** Undefined while an endpoint is on the selected line and the line has not stalled. */
const observeAhead = (
  belief: HeadState,
  { at, first, closeInterval: pace, second }: HeadObservations
): ObservedAhead | undefined => {
  const answers = [first, ...second]
  const relations = answers.map((one) => relationOf(belief, one, at, pace))
  if (relations.includes("same") && !isStalled(belief, at, pace)) return undefined
  const ahead = answers.filter((_, index) => relations[index] === "ahead")
  const alone = ahead.length === answers.length ? undefined : { aloneSince: at, polls: 0 }
  const before = belief.candidateAhead
  const isContinued = (one: LatestLedger) =>
    before !== undefined &&
    one.sequence >= before.first.sequence &&
    one.sequence <= before.first.sequence + burstMax + (3 * (at - before.aloneSince)) / (pace * 1_000)
  const goingOn = newestOf(ahead.filter(isContinued))
  if (before !== undefined && goingOn !== undefined)
    return { newest: goingOn, answers: ahead.length + 1, ...before, polls: before.polls + 1, ...alone }
  const newest = newestOf(ahead)
  return newest === undefined
    ? undefined
    : { newest, answers: ahead.length, first: newest, aloneSince: at, polls: 1, ...alone }
}

/** Whether a line ahead has shown that the ledger continues there: a wrong node may report more than one ledger. */
const isConfirmedAhead = (
  belief: HeadState,
  { aloneSince, answers, first, polls: reads, newest }: ObservedAhead,
  { at, closeInterval: pace }: HeadObservations
): boolean => {
  if (newest.sequence - belief.newest.sequence <= leapMax && answers > 1) return true
  const hasMoved = newest.sequence > first.sequence
  if (hasMoved && continues(belief.newest, newest, pace)) return true
  return reads >= beyondPolls && at - aloneSince >= (hasMoved ? beyondMovingMillis : beyondMillis)
}

/** A line below that has advanced since the last poll, while the selected one does not, or closed earlier. */
const movingBelow = (belief: HeadState, below: LatestLedger, isStill: boolean): boolean =>
  belief.below !== undefined &&
  below.sequence > belief.below.sequence &&
  (isStill || below.closedAtSeconds > belief.newest.closedAtSeconds)

export const selectHead = (belief: HeadState, polled: HeadObservations): HeadUpdate => {
  const { at, first, closeInterval: pace, second } = polled
  const answers = [first, ...second]
  const by = (relation: Relation) => newestOf(answers.filter((one) => relationOf(belief, one, at, pace) === relation))
  const rival = second.length === 0 ? belief.competingHead : competingHeadIn(belief, polled)
  if (rival !== undefined && belief.competingHead !== undefined && rival.sequence > belief.competingHead.sequence)
    return { state: headAt(rival, at), change: "moved" }
  const competingHead = rival === undefined ? undefined : (belief.competingHead ?? rival)
  const keep = (changed: Partial<HeadState>): HeadState => ({ ...belief, competingHead, ...changed })
  const next = by("next")
  if (next !== undefined)
    return {
      state: keep({ newest: next, advancedAt: at, isUnconfirmed: false, below: undefined, candidateAhead: undefined }),
      change: "advanced"
    }
  const received = observeAhead(belief, polled)
  if (received !== undefined && isConfirmedAhead(belief, received, polled))
    return { state: headAt(received.newest, at), change: "moved" }
  const beyond: CandidateAhead | undefined = received && {
    first: received.first,
    aloneSince: received.aloneSince,
    polls: received.polls
  }
  const isStill = isStalled(belief, at, pace)
  if (by("same") !== undefined && !isStill)
    return { state: keep({ below: undefined, candidateAhead: undefined }), change: "none" }
  const below = by("below")
  if (below === undefined) return { state: keep({ candidateAhead: beyond }), change: "none" }
  if (movingBelow(belief, below, isStill)) return { state: headAt(below, at), change: "moved" }
  return { state: keep({ below, candidateAhead: beyond }), change: "none" }
}

/** Ledgers an endpoint may be behind the newest one: two concurrent polls may fall on both sides of a close. */
const lagMax = 2

/** The endpoints with an answer off the selected line, or without an answer. */
export const unfitEndpoints = (
  belief: HeadState,
  second: ReadonlyArray<LatestLedger>,
  at: number,
  pace: number
): ReadonlySet<number> =>
  new Set(
    second.flatMap((one) => {
      const isFit =
        one.sequence >= belief.newest.sequence - lagMax &&
        one.sequence <= belief.newest.sequence + reachOf(belief, at, pace)
      return isFit ? [] : [one.endpoint]
    })
  )
