// The words that agents and people of this field put around a question. Each frame is measured over whole sets: what it
// costs against the bare question, first and among three. `npm run relevance -- frames` prints the table.
import type { Dataset } from "./dataset.ts"
import { type OwnSet, ownSet } from "./judged.ts"
import type { Measured } from "./measure.ts"

export const frames: ReadonlyArray<string> = [
  "find me an API to …",
  "I need a tool that can … please",
  "paid endpoint for … in JSON",
  "best … service",
  "… pay per call",
  "x402 … usdc",
  "… for ai agents",
  "… that accepts stellar",
  "… api without an api key",
  "pay-per-use … no signup",
  "can my agent … with x402",
  "… paid in usdc on stellar",
  "mcp server for …",
  "… micropayments",
  "which x402 service can I use to …",
  "stellar … api",
  "… settled in xlm",
  "agentic … endpoint",
  "http 402 …",
  "… for my llm agent, pay as you go",
  "… , no subscription, per-request pricing"
]

/** Points of a hundred that a frame may cost. */
export const costMax = 2

/** Questions with an answer and in English: a frame in English about another language's question is not realistic. */
const bareOf = ({ queries }: Dataset) => queries.filter((one) => one.class !== "language" && !one.expects_no_result)

/** A set's questions, bare and in each frame. */
export const framed = (set: Dataset, used = frames): Dataset => ({
  ...set,
  queries: ["…", ...used].flatMap((frame, at) =>
    bareOf(set).map((query) => ({ ...query, id: `${query.id} ${at}`, query: frame.replace("…", query.query) }))
  )
})

export interface Shares {
  readonly first: number
  readonly three: number
  readonly questions: number
}

/** Numbers of right answers by frame; the bare question comes first. */
export const rightByFrame = (set: Dataset, measured: ReadonlyArray<Measured>, used = frames): ReadonlyArray<Shares> =>
  ["…", ...used].map((_, at) => {
    const some = measured.filter(({ query }) => query.id.endsWith(` ${at}`))
    const right = (among: number) =>
      some.filter(({ query, rankings }) => {
        const grades = set.grades.get(query.id.split(" ")[0]!)!
        return rankings.offline!.slice(0, among).some((hit) => (grades.get(hit) ?? 0) >= 2)
      }).length
    return { first: right(1), three: right(3), questions: some.length }
  })

const percent = (part: number, all: number): string => `${((100 * part) / all).toFixed(1)} %`

/** Prints what each frame costs over all the sets together; whether none costs more than `costMax`. */
export const printFrames = async (
  names: ReadonlyArray<OwnSet>,
  run: (set: Dataset) => Promise<ReadonlyArray<Measured>>
): Promise<boolean> => {
  const bySet: Array<ReadonlyArray<Shares>> = []
  for (const name of names) {
    const set = framed(ownSet(name))
    bySet.push(rightByFrame(set, await run(set)))
  }
  let isHeld = true
  const sums = ["…", ...frames].map((frame, at) => {
    const of = (figure: keyof Shares) => bySet.reduce((sum, shares) => sum + shares[at]![figure], 0)
    return { frame, first: of("first"), three: of("three"), questions: of("questions") }
  })
  const bare = sums[0]!
  for (const { first, frame, questions, three } of sums) {
    const cost = (100 * Math.max(bare.first - first, bare.three - three)) / questions
    if (cost > costMax) isHeld = false
    console.log(
      `  ${frame.padEnd(44)} first ${percent(first, questions)}, among three ${percent(three, questions)}; ` +
        `costs ${cost.toFixed(1)} points${cost > costMax ? ", TOO MUCH" : ""}`
    )
  }
  return isHeld
}
