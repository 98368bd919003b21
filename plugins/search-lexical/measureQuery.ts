// How much of a query the documents hold: its mass, and the shares that they hold at all or by similar words, spellings
// and topics. Pure.
import type { Term } from "./queryTerms.ts"

/** The weight of an absent word that a topic of the query explains, as a share. */
const explainedShare = 0.5

/** A word of the query that no document holds. */
export interface Absent {
  readonly weight: number
  /** The weight of its similar words. */
  readonly like: number
  /** By the topic of a phrase. */
  readonly isExplained: boolean
  /** Documents hold a similar spelling. */
  readonly isGuessed: boolean
}

/** The share of an absent word that a similar spelling or a topic supports. */
const supportedShare = 0.5

export const measureQuery = (
  direct: ReadonlyArray<Term>,
  absent: ReadonlyArray<Absent>,
  translated: number
): { readonly covered: number; readonly mass: number; readonly supported: number } => {
  const held = direct.reduce((sum, { weight }) => sum + weight, 0)
  const missing = absent.reduce((sum, one) => sum + one.weight * (one.isExplained ? explainedShare : 1), 0)
  const supports = absent.map(({ isExplained, isGuessed, like, weight }) =>
    Math.max(Math.min(weight, like), isExplained || isGuessed ? supportedShare * weight : 0)
  )
  const mass = translated + held + missing
  const shareOf = (part: number) => Math.min(1, part / Math.max(mass, Number.EPSILON))
  const supported = supports.reduce((sum, one) => sum + one, held + translated)
  return { mass, covered: shareOf(held), supported: shareOf(supported) }
}
