// The calibration of "nothing fits": of the questions with an answer and of those without, how many are marked as
// guesses or find nothing. The questions without an answer are those of the own sets and of `unanswered.json`, which we
// ask of the listings of each own set. The questions of `unanswered.json` were written afterwards and the statistic's
// weights were not fitted to them, but two features of the statistic were chosen partly by their scores.
import { readFileSync } from "node:fs"
import type { Dataset } from "./dataset.ts"
import { type LanguageSet, type OwnSet, ownSet, ownSets } from "./judged.ts"
import type { Measured } from "./measure.ts"

export const unanswered = JSON.parse(
  readFileSync(new URL("unanswered.json", import.meta.url), "utf8")
) as ReadonlyArray<string>

/** Maximum share of marked questions among those with an answer, and minimum share among the others. */
export const markedMax = 0.035
export const markedMin = 0.5

const fromList = "list"

/** A set's own questions without filters, and those of the list. */
export const doubted = (name: OwnSet | LanguageSet, others: Dataset["resources"] = []): Dataset => {
  const set = ownSet(name, others)
  const bare = set.queries.filter(({ filters }) => Object.keys(filters).length === 0)
  const added = unanswered.map((query, at) => ({
    id: `${fromList}${at}`,
    class: fromList,
    query,
    filters: {},
    expects_no_result: true
  }))
  return { ...set, queries: [...bare, ...added] }
}

export interface Marked {
  readonly answered: readonly [marked: number, all: number]
  readonly unanswered: readonly [marked: number, all: number]
  readonly listed: readonly [marked: number, all: number]
}

export const markedOf = (measured: ReadonlyArray<Measured>): Marked => {
  const of = (is: (query: Measured["query"]) => boolean): readonly [number, number] => {
    const some = measured.filter(({ query }) => is(query))
    return [some.filter(({ isNearestOnly }) => isNearestOnly).length, some.length]
  }
  return {
    answered: of((query) => !query.expects_no_result),
    unanswered: of((query) => query.expects_no_result && query.class !== fromList),
    listed: of((query) => query.class === fromList)
  }
}

const shareOf = ([marked, all]: readonly [number, number]): string =>
  `${marked} of ${all} (${((100 * marked) / Math.max(1, all)).toFixed(1)} %)`

/** Prints both errors of each set and of all; whether they are within the bounds. */
export const printSilence = async (
  run: (set: Dataset) => Promise<ReadonlyArray<Measured>>,
  names: ReadonlyArray<OwnSet> = ownSets
): Promise<boolean> => {
  const each: Array<Marked> = []
  const line = (name: string, { answered, listed, unanswered }: Marked) =>
    console.log(
      `  ${name.padEnd(8)} marked with an answer ${shareOf(answered)}; without one ${shareOf(unanswered)}, ` +
        `of the list ${shareOf(listed)}`
    )
  for (const name of names) {
    const marked = markedOf(await run(doubted(name)))
    line(name, marked)
    each.push(marked)
  }
  const sum = (figure: keyof Marked): readonly [number, number] => [
    each.reduce((sum, one) => sum + one[figure][0], 0),
    each.reduce((sum, one) => sum + one[figure][1], 0)
  ]
  const all = { answered: sum("answered"), unanswered: sum("unanswered"), listed: sum("listed") }
  line("all", all)
  const none = [all.unanswered[0] + all.listed[0], all.unanswered[1] + all.listed[1]] as const
  return all.answered[0] <= markedMax * all.answered[1] && none[0] >= markedMin * none[1]
}
