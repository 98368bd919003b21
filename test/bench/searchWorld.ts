// The generated data of the search bench: resources of English words with the frequencies of natural language, queries
// drawn from the words of one resource each, queries of words that no listing has and of mistyped words, and an
// embedding of texts by their words. Everything comes from one seed, so every run measures the same.
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { foreignIn } from "../../plugins/search-lexical/languages.ts"
import type { IngestedResource } from "../relevance/ingest.ts"

export const DIMENSION = 384

const randomFrom = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
}

/**
 * Words of the vector table, without the words that occur in every text and the small words of other languages ("van",
 * "del"): among random words two of them would make a listing Dutch or Italian, and a catalog in other languages makes
 * every query more expensive.
 */
const vocabulary = (() => {
  const foreign = foreignIn("de,fr,es,pt,it,nl")
  const bytes = readFileSync(new URL("../../plugins/search-semantic/embedded/words.bin", import.meta.url))
  const words = bytes.toString("utf8", 8, 8 + bytes.readUInt32LE(4)).split("\n")
  return words
    .slice(200)
    .filter((word) => /^[a-z]{3,16}$/.test(word) && !foreign.some(({ smallWords }) => smallWords.has(word)))
    .slice(0, 20_000)
})()
// Zipf–Mandelbrot law: the most common word occurs in one text of six, most words in a few.
const cumulative: Array<number> = []
for (let at = 0; at < vocabulary.length; at++) cumulative.push((cumulative[at - 1] ?? 0) + 1 / (at + 50))

export interface Question {
  readonly query: string
  /** The name of the resource that provided its words. */
  readonly about: string
}

/** The queries. The resources themselves are not in memory during a measurement. */
export interface World {
  readonly questions: ReadonlyArray<Question>
  /** Separate parts of the same size; only one measurement uses each part. */
  readonly fresh: ReadonlyArray<ReadonlyArray<Question>>
  /** Queries of 73 words that no resource holds. */
  readonly unknown: ReadonlyArray<string>
  /** Queries of up to 40 words of resources, each with a typo. */
  readonly mistyped: ReadonlyArray<string>
  /** URLs of some HTTP resources. */
  readonly urls: ReadonlyArray<string>
}

const unknownWords = 73
const mistypedWords = 40
const queryLengthMax = 512

const drawWord = (random: () => number): string => {
  const drawn = random() * cumulative.at(-1)!
  let [low, high] = [0, cumulative.length - 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if (cumulative[middle]! < drawn) low = middle + 1
    else high = middle
  }
  return vocabulary[low]!
}

/** The catalog's key of a URL, for a request of that one resource. */
const keyOf = (type: string, url: string, toolName: string): string =>
  createHash("sha256")
    .update(JSON.stringify([type, url, toolName]))
    .digest("hex")

const resourceAt = (at: number, random: () => number): IngestedResource => {
  const word = () => drawWord(random)
  const words = (many: number) => Array.from({ length: many }, word)
  const type = at % 10 === 0 ? "mcp" : "http"
  const url = `https://seller-${at % 5_000}.example/v1/${word()}/${at}`
  const toolName = at % 10 === 0 ? `${word()}_${word()}` : ""
  return {
    name: `resource-${at}`,
    key: keyOf(type, url, toolName),
    type,
    url,
    toolName,
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
  }
}

const letters = "abcdefghijklmnopqrstuvwxyz"

/** Six random letters: hardly ever a word, and hardly ever the same twice. */
const unknownQuery = (random: () => number): string =>
  Array.from({ length: unknownWords }, () =>
    Array.from({ length: 6 }, () => letters[Math.floor(random() * letters.length)]).join("")
  ).join(" ")

/** Swaps two neighboring letters of each word. */
const mistypedQuery = (random: () => number): string => {
  const words: Array<string> = []
  while (words.length < mistypedWords) {
    const word = drawWord(random)
    if (word.length < 8) continue
    const at = 2 + Math.floor(random() * (word.length - 4))
    words.push(`${word.slice(0, at)}${word[at + 1]}${word[at]}${word.slice(at + 2)}`)
  }
  return words.join(" ").slice(0, queryLengthMax).replace(/ \S*$/, "")
}

export const makeWorld = (
  count: number,
  questions: number,
  freshParts = 0
): { readonly world: World; readonly resources: ReadonlyArray<IngestedResource> } => {
  const random = randomFrom(7)
  const resources = Array.from({ length: count }, (_, at) => resourceAt(at, random))
  const questionAt = (at: number): Question => {
    const { description, name, serviceName, tags } = resources[(at * 7_919) % count]!
    const all = [...serviceName.split(" "), ...tags, ...description.split(" ")]
    const words = Array.from({ length: 2 + Math.floor(random() * 6) }, () => all[Math.floor(random() * all.length)])
    return { query: words.join(" "), about: name }
  }
  const world: World = {
    questions: Array.from({ length: questions }, (_, at) => questionAt(at)),
    unknown: Array.from({ length: questions }, () => unknownQuery(random)),
    mistyped: Array.from({ length: questions }, () => mistypedQuery(random)),
    urls: resources
      .filter(({ type }) => type === "http")
      .slice(0, questions)
      .map(({ url }) => url),
    fresh: Array.from({ length: freshParts }, (_, part) =>
      Array.from({ length: questions }, (_, at) => questionAt(questions * (part + 1) + at))
    )
  }
  return { world, resources }
}

/** A vector of the text's first words: texts that share words are near each other. Not normalized. */
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
