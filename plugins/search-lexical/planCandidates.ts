// Which documents are looked at for a query. Ranking every document that holds any word of the query would cost whatever the
// commonest word costs, so candidates are chosen from the rarest words up: single words while they fit the budget, then pairs
// and triples of common ones, then common words where they name the resource. A document left out holds only common words of the
// query, and not two of them together. Pure; the numbers of documents are estimates, and the budget bounds the work, not the answer.

export interface Term {
  /** A tsquery of one lexeme, or of the lexemes that stand for a mistyped or partial word. */
  readonly tsquery: string
  /** Documents that hold it. */
  readonly documents: number
  /** What a match of it is worth. */
  readonly weight: number
}

export interface CandidatePlan {
  readonly tsquery: string
  /** Nothing that matches any term is left out. */
  readonly complete: boolean
}

/** Share of the documents with a term that have it in their identifiers, as planned for; real ones differ. */
const namingShare = 0.1

const subsets = (terms: ReadonlyArray<Term>, size: number): ReadonlyArray<ReadonlyArray<Term>> =>
  size === 0 ? [[]] : terms.flatMap((term, at) => subsets(terms.slice(at + 1), size - 1).map((rest) => [term, ...rest]))

/** Restricts a tsquery to weight A: `'a' | 'b':*` becomes `'a':A | 'b':*A`. */
const naming = (tsquery: string): string => tsquery.replace(/'(?=\s|$)/g, "':A").replace(/':\*/g, "':*A")

/** The conditions on candidates for terms that all stand in some document; `budget` is the number of documents to look at. */
export const planCandidates = (terms: ReadonlyArray<Term>, documents: number, budget: number): CandidatePlan => {
  const rising = terms.toSorted((a, b) => a.documents - b.documents)
  const any = (chosen: ReadonlyArray<string>) => chosen.map((one) => `(${one})`).join(" | ")
  if (rising.reduce((sum, term) => sum + term.documents, 0) <= budget) {
    return { tsquery: any(rising.map(({ tsquery }) => tsquery)), complete: true }
  }
  const chosen: Array<string> = []
  let left = budget
  let common = 0
  for (; common < rising.length && rising[common]!.documents <= left; common++) {
    chosen.push(rising[common]!.tsquery)
    left -= rising[common]!.documents
  }
  // Words of one text come together more often than by chance.
  const together = (set: ReadonlyArray<Term>) => 3 * set.reduce((share, term) => share * (term.documents / documents), documents)
  const commonOnes = rising.slice(common, common + 6)
  const sets = [2, 3, 4].flatMap((size) => subsets(commonOnes, size)).map((set) => ({ set, size: together(set) })).toSorted((a, b) => a.size - b.size)
  const taken: Array<ReadonlyArray<Term>> = []
  for (const { set, size } of sets) {
    if (size > left) break
    // A larger set is in what a smaller one has taken already.
    if (taken.some((smaller) => smaller.every((term) => set.includes(term)))) continue
    taken.push(set)
    left -= size
    chosen.push(set.map(({ tsquery }) => `(${tsquery})`).join(" & "))
  }
  for (const term of commonOnes) {
    if (term.documents * namingShare > Math.max(left, budget / 2)) break
    left -= term.documents * namingShare
    chosen.push(naming(term.tsquery))
  }
  return chosen.length === 0 ? { tsquery: any([naming(rising[0]!.tsquery)]), complete: false } : { tsquery: any(chosen), complete: false }
}
