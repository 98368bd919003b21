// Figures of a ranking against graded judgments: nDCG@10 with a gain of 2^grade − 1, the reciprocal rank of the first
// relevant hit, and recall among the first 20. An unjudged pair counts as grade 0; relevant is a grade of 2 or 3.

export type Grades = ReadonlyMap<string, number>

const gains = (grades: ReadonlyArray<number>): number =>
  grades.reduce((sum, grade, at) => sum + (2 ** grade - 1) / Math.log2(at + 2), 0)

export const ndcg10 = (ranking: ReadonlyArray<string>, grades: Grades): number => {
  const ideal = gains([...grades.values()].toSorted((a, b) => b - a).slice(0, 10))
  return ideal === 0 ? 0 : gains(ranking.slice(0, 10).map((name) => grades.get(name) ?? 0)) / ideal
}

export const reciprocalRank = (ranking: ReadonlyArray<string>, grades: Grades): number => {
  const at = ranking.findIndex((name) => (grades.get(name) ?? 0) >= 2)
  return at === -1 ? 0 : 1 / (at + 1)
}

export const recall20 = (ranking: ReadonlyArray<string>, grades: Grades): number => {
  const relevant = [...grades].filter(([, grade]) => grade >= 2).map(([name]) => name)
  return relevant.length === 0
    ? 0
    : relevant.filter((name) => ranking.slice(0, 20).includes(name)).length / relevant.length
}

export const mean = (numbers: ReadonlyArray<number>): number =>
  numbers.length === 0 ? 0 : numbers.reduce((sum, one) => sum + one, 0) / numbers.length

/**
 * Price queries ask in dollars, which the interface cannot express; queries without a matching resource lack an ideal
 * order.
 */
export const headlineOf = (query: { readonly class: string }): boolean =>
  query.class !== "price_category" && query.class !== "no_result"

/** The 95 % interval of a mean by the bootstrap, of 2,000 samples with replacement from a fixed seed. */
export const interval = (numbers: ReadonlyArray<number>, seed = 1): readonly [low: number, high: number] => {
  if (numbers.length === 0) return [0, 0]
  let state = seed
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 4_294_967_296
  }
  const means = Array.from({ length: 2_000 }, () =>
    mean(numbers.map(() => numbers[Math.floor(next() * numbers.length)]!))
  ).sort((a, b) => a - b)
  return [means[50]!, means[1_949]!]
}
