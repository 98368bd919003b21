// Each own set's score with settings that were not chosen on it. For each set the ranking settings are chosen from a
// grid on the other sets only, whole sets left out, and the left-out set is measured with them. The tuned score, with
// the program's shipped settings, is printed for comparison. Values in the code are not chosen again, so the figures
// are still too good to the extent that these values came from a set.
import type { Dataset } from "./dataset.ts"
import { type OwnSet, ownSet } from "./judged.ts"
import type { Measured } from "./measure.ts"

/** Settings to choose from; the first are the program's own. */
const grid: ReadonlyArray<ReadonlyArray<string>> = [
  [],
  ["search.embedded.weight=0.18"],
  ["search.embedded.weight=0.4"],
  ["search.rrf_k=10"]
]

export interface Shares {
  readonly first: number
  readonly three: number
}

const sharesOf = (set: Dataset, measured: ReadonlyArray<Measured>): Shares => {
  const answered = measured.filter(({ query }) => !query.expects_no_result)
  const right = (among: number) =>
    answered.filter(({ query, rankings }) =>
      rankings.offline!.slice(0, among).some((name) => (set.grades.get(query.id)!.get(name) ?? 0) >= 2)
    ).length / answered.length
  return { first: right(1), three: right(3) }
}

/** The best place in the grid on all sets but one; the first if several are equal. */
export const bestWithout = (left: number, bySet: ReadonlyArray<ReadonlyArray<Shares>>): number => {
  const worth = bySet[0]!.map((_, config) =>
    bySet.reduce((sum, shares, at) => (at === left ? sum : sum + shares[config]!.first + shares[config]!.three), 0)
  )
  return worth.indexOf(Math.max(...worth))
}

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`

/** Prints each set's shares, left out and tuned; returns whether their means over all questions reach the floors. */
export const leaveOneSetOut = async (
  names: ReadonlyArray<OwnSet>,
  others: Dataset["resources"],
  run: (set: Dataset, settings: ReadonlyArray<string>) => Promise<ReadonlyArray<Measured>>
): Promise<boolean> => {
  const sets = names.map((name) => ownSet(name, name === "judged" ? others : []))
  const bySet: Array<ReadonlyArray<Shares>> = []
  for (const set of sets) {
    const shares: Array<Shares> = []
    for (const settings of grid) shares.push(sharesOf(set, await run(set, settings)))
    bySet.push(shares)
  }
  const questions = sets.map(({ queries }) => queries.filter(({ expects_no_result: none }) => !none).length)
  const all = questions.reduce((sum, count) => sum + count, 0)
  const left = bySet.map((shares, at) => ({ ...shares[bestWithout(at, bySet)]!, config: bestWithout(at, bySet) }))
  for (const [at, name] of names.entries())
    console.log(
      `  ${name.padEnd(8)} left out: first ${percent(left[at]!.first)}, among three ${percent(left[at]!.three)}; ` +
        `tuned: ${percent(bySet[at]![0]!.first)}, ${percent(bySet[at]![0]!.three)}; of ${questions[at]}; ` +
        `chosen: ${grid[left[at]!.config]!.join(" ") || "as it comes"}`
    )
  const mean = (shares: ReadonlyArray<Shares>, figure: keyof Shares) =>
    shares.reduce((sum, one, at) => sum + one[figure] * questions[at]!, 0) / all
  const tuned = bySet.map((shares) => shares[0]!)
  console.log(
    `  all      left out: first ${percent(mean(left, "first"))}, among three ${percent(mean(left, "three"))}; ` +
      `tuned: ${percent(mean(tuned, "first"))}, ${percent(mean(tuned, "three"))}; of ${all}`
  )
  return mean(left, "first") >= 0.8 && mean(left, "three") >= 0.92
}
