// Selects the candidates of a query. Ranking every document that holds any word of the query would cost as much as its
// commonest word, so candidates are chosen from the rarest words up: single words while they fit the budget, then pairs
// of common words, then common words that name or tag the resource. A document left out holds only common words of the
// query, no two of them together, in prose. Pure; numbers of documents are estimates.

export interface Term {
  /** A tsquery of one lexeme, or of the substitutes for a mistyped or partial word. */
  readonly tsquery: string
  /** Documents that hold it anywhere, and in names or tags. */
  readonly documents: number
  readonly naming: number
  /** The weight of a match. */
  readonly weight: number
  /** Near-synonyms: a document is worth the maximum of the word's match and theirs. */
  readonly alike?: SimilarTerm
}

export interface SimilarTerm {
  readonly tsquery: string
  readonly weight: number
  /** Each lexeme separately. */
  readonly each: ReadonlyArray<Omit<Term, "weight">>
}

export interface Condition {
  /** `naming`: only names and tags are searched. */
  readonly where: "document" | "naming"
  readonly tsquery: string
}

export interface CandidatePlan {
  readonly conditions: ReadonlyArray<Condition>
  /** Nothing that matches any term is left out. */
  readonly complete: boolean
  /** Upper bound of the matching documents, as if no two words occurred together. */
  readonly documents: number
}

/** Pairs of common words are made of this many of the rarest of them. */
const pairedMax = 4
/** Words of one text occur together more often than by chance. */
const kinship = 3

const anyOf = (terms: ReadonlyArray<Pick<Term, "tsquery">>): string =>
  terms.map(({ tsquery }) => `(${tsquery})`).join(" | ")

/** Near-synonyms of the terms. */
export const similarTerms = (terms: ReadonlyArray<Term>): ReadonlyArray<Omit<Term, "weight">> =>
  terms.flatMap(({ alike }) => alike?.each ?? [])

/** Every document that holds any of the terms. */
export const scanAll = (terms: ReadonlyArray<Pick<Term, "tsquery" | "documents">>): CandidatePlan => ({
  conditions: [{ where: "document", tsquery: anyOf(terms) }],
  complete: true,
  documents: terms.reduce((sum, { documents }) => sum + documents, 0)
})

/** The conditions on candidates; `budget` is the number of candidates, of `documents` in all. */
export const planCandidates = (terms: ReadonlyArray<Term>, documents: number, budget: number): CandidatePlan => {
  const rising = terms.toSorted((a, b) => a.documents - b.documents)
  const all = scanAll(rising)
  if (all.documents <= budget) return all
  let left = budget
  const rare = rising.filter((term) => {
    const fits = term.documents <= left
    if (fits) left -= term.documents
    return fits
  })
  const common = rising.filter((term) => !rare.includes(term)).slice(0, pairedMax)
  const conditions: Array<Condition> = rare.length === 0 ? [] : [{ where: "document", tsquery: anyOf(rare) }]
  const pairs = common
    .flatMap((a, at) =>
      common.slice(at + 1).map((b) => ({
        tsquery: `(${a.tsquery}) & (${b.tsquery})`,
        size: kinship * a.documents * (b.documents / documents)
      }))
    )
    .toSorted((a, b) => a.size - b.size)
  for (const { size, tsquery } of pairs) {
    if (size > left) break
    left -= size
    conditions.push({ where: "document", tsquery })
  }
  const naming = common.filter((term) => {
    const fits = term.naming <= left
    if (fits) left -= term.naming
    return fits
  })
  if (naming.length > 0) conditions.push({ where: "naming", tsquery: anyOf(naming) })
  // For a single common word, or only undistinguished words: take the resources that the rarest of them names.
  const [rarest] = rising
  return conditions.length === 0
    ? { conditions: [{ where: "naming", tsquery: rarest!.tsquery }], complete: false, documents: rarest!.naming }
    : { conditions, complete: false, documents: budget - left }
}

/**
 * The plan, and documents of the rarest of related words for as many more. They do not affect completeness: a document
 * that holds only related words may be left out.
 */
export const alsoRelated = (
  plan: CandidatePlan,
  related: ReadonlyArray<Omit<Term, "weight">>,
  budget: number
): CandidatePlan => {
  let left = budget
  const rare = related
    .toSorted((a, b) => a.documents - b.documents)
    .filter(({ documents }) => {
      const fits = documents <= left
      if (fits) left -= documents
      return fits
    })
  return rare.length === 0
    ? plan
    : {
        ...plan,
        conditions: [...plan.conditions, { where: "document", tsquery: anyOf(rare) }],
        documents: plan.documents + budget - left
      }
}
