// When a claimable balance may be claimed: a tree of "before this time", and, or, not. A signed predicate may use times
// relative to the balance's creation; the stored one has absolute times. Times are in seconds of the ledger's clock.
import type { ClaimPredicate } from "../Wire.ts"
import { INT64_MAX } from "../Accounts.ts"

/** Levels that a predicate may be nested, its root counted. */
const LEVELS_MAX = 4

const PredicateType = { unconditional: 0, and: 1, or: 2, not: 3, beforeAbsolute: 4, beforeRelative: 5 } as const

/** True when every branch has the content that its kind requires, no time is negative, and it is not too deep. */
export const isPredicateValid = (predicate: ClaimPredicate, level = 1): boolean => {
  if (level > LEVELS_MAX) return false
  const arePair = (pair: ReadonlyArray<ClaimPredicate>): boolean =>
    pair.length === 2 && pair.every((one) => isPredicateValid(one, level + 1))
  switch (predicate.type) {
    case PredicateType.unconditional:
      return true
    case PredicateType.and:
      return arePair(predicate.andPredicates)
    case PredicateType.or:
      return arePair(predicate.orPredicates)
    case PredicateType.not:
      return predicate.notPredicate !== null && isPredicateValid(predicate.notPredicate, level + 1)
    case PredicateType.beforeAbsolute:
      return predicate.absBefore >= 0n
    case PredicateType.beforeRelative:
      return predicate.relBefore >= 0n
  }
}

/** The predicate with every relative time counted from `now`, at most the last second that there is. */
export const withAbsoluteTimes = (predicate: ClaimPredicate, now: bigint): ClaimPredicate => {
  const all = (pair: ReadonlyArray<ClaimPredicate>): Array<ClaimPredicate> =>
    pair.map((one) => withAbsoluteTimes(one, now))
  switch (predicate.type) {
    case PredicateType.and:
      return { type: 1, andPredicates: all(predicate.andPredicates) }
    case PredicateType.or:
      return { type: 2, orPredicates: all(predicate.orPredicates) }
    case PredicateType.not:
      return { type: 3, notPredicate: withAbsoluteTimes(predicate.notPredicate!, now) }
    case PredicateType.beforeRelative:
      return { type: 4, absBefore: now > INT64_MAX - predicate.relBefore ? INT64_MAX : now + predicate.relBefore }
    default:
      return predicate
  }
}

/** True if a stored predicate holds at `now`; "before" excludes the second itself. */
export const holds = (predicate: ClaimPredicate, now: bigint): boolean => {
  switch (predicate.type) {
    case PredicateType.unconditional:
      return true
    case PredicateType.and:
      return predicate.andPredicates.every((one) => holds(one, now))
    case PredicateType.or:
      return predicate.orPredicates.some((one) => holds(one, now))
    case PredicateType.not:
      return !holds(predicate.notPredicate!, now)
    case PredicateType.beforeAbsolute:
      return predicate.absBefore > now
    case PredicateType.beforeRelative:
      throw new Error("a kept predicate names a relative time")
  }
}
