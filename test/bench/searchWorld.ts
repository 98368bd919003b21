// The made-up world of the bench of search: resources whose words have the frequencies of natural language, queries
// drawn from the words of one resource each, and an embedding of texts by their words. Everything comes from one seed:
// every run measures the same.
import type { IngestedResource } from "../relevance/ingest.ts"

export const DIMENSION = 384

const randomFrom = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
}

const syllables =
  "ba ce di fo gu la me ni po ru sa te vi xo zu kar len mit nor pel qua ris sol tan ver wex yor zin".split(" ")
const vocabulary = Array.from({ length: 20_000 }, (_, at) => {
  let word = ""
  for (let rest = at + 30; rest > 0; rest = Math.floor(rest / syllables.length))
    word += syllables[rest % syllables.length]
  return `${word}k`
})
// Zipf and Mandelbrot's law: the commonest word stands in one text of six, most words in a few.
const cumulative: Array<number> = []
for (let at = 0; at < vocabulary.length; at++) cumulative.push((cumulative[at - 1] ?? 0) + 1 / (at + 50))

export interface Question {
  readonly query: string
  /** The name of the resource that its words are of. */
  readonly about: string
}

export const makeWorld = (
  count: number,
  questions: number
): { readonly resources: ReadonlyArray<IngestedResource>; readonly questions: ReadonlyArray<Question> } => {
  const random = randomFrom(7)
  const word = (): string => {
    const drawn = random() * cumulative.at(-1)!
    let [low, high] = [0, cumulative.length - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (cumulative[middle]! < drawn) low = middle + 1
      else high = middle
    }
    return vocabulary[low]!
  }
  const words = (many: number) => Array.from({ length: many }, word)
  const resources = Array.from({ length: count }, (_, at): IngestedResource => ({
    name: `resource-${at}`,
    type: at % 10 === 0 ? "mcp" : "http",
    url: `https://seller-${at % 5_000}.example/v1/${word()}/${at}`,
    toolName: at % 10 === 0 ? `${word()}_${word()}` : "",
    serviceName: words(3).join(" "),
    description: words(10 + Math.floor(random() * 50)).join(" "),
    tags: words(3),
    info: { input: { type: "http", method: "GET" } },
    options: [
      {
        scheme: at % 4 === 0 ? "upto" : "exact",
        network: "ledger:testnet",
        asset: `CASSET${at % 3}`,
        amount: String(at % 1_000),
        payTo: `GPAYTO${at % 5_000}`
      }
    ]
  }))
  return {
    resources,
    questions: Array.from({ length: questions }, (_, at) => {
      const { description, name, serviceName, tags } = resources[(at * 7_919) % count]!
      const all = [...serviceName.split(" "), ...tags, ...description.split(" ")]
      return {
        query: Array.from({ length: 2 + Math.floor(random() * 6) }, () => all[Math.floor(random() * all.length)]).join(
          " "
        ),
        about: name
      }
    })
  }
}

/** A vector of the text's first words: texts that share words are near each other. Not of length 1. */
export const embedWords = (text: string): ReadonlyArray<number> => {
  const vector = new Float64Array(DIMENSION)
  for (const token of text
    .toLowerCase()
    .split(/[^a-z]+/)
    .slice(0, 24)) {
    let hash = 2_166_136_261
    for (let at = 0; at < token.length; at++) hash = Math.imul(hash ^ token.charCodeAt(at), 16_777_619)
    for (let at = 0; at < 24; at++) {
      hash = Math.imul(hash ^ (hash >>> 13), 0x5bd1e995)
      vector[(hash >>> 8) % DIMENSION]! += (hash & 1) === 0 ? 1 : -1
    }
  }
  vector[0]! += 1
  return Array.from(vector)
}
