// Invented resources and an invented embedding model, for tests of search's mechanics: each resource is about one
// topic, and the model recognizes topics by their words and synonyms. A model's name changes its space, so that vectors
// of two models never match.
import type { IngestedResource } from "./ingest.ts"

export const topics: ReadonlyArray<ReadonlyArray<string>> = [
  ["weather", "climate", "rain"],
  ["ledger", "accounts", "bookkeeping"],
  ["translation", "languages", "interpreter"],
  ["music", "songs", "melody"],
  ["maps", "geography", "routes"],
  ["sanctions", "compliance", "screening"],
  ["shipping", "parcels", "freight"],
  ["genetics", "genome", "heredity"]
]

export const topicResource = (at: number, parts: Partial<IngestedResource> = {}): IngestedResource => {
  const [word] = topics[at % topics.length]!
  return {
    name: `resource-${at}`,
    type: at % 5 === 4 ? "mcp" : "http",
    url: `https://seller-${at % 40}.example/v1/${word}/${at}`,
    toolName: at % 5 === 4 ? `lookup_${word}_${at}` : "",
    serviceName: `Service ${at}`,
    description: `Data about ${word}, series ${at}.`,
    tags: [],
    info: { input: { type: "http", method: "GET" } },
    options: [
      {
        scheme: at % 2 === 0 ? "exact" : "upto",
        network: "ledger:testnet",
        asset: "CASSET",
        amount: String(100 * (at + 1)),
        payTo: `GPAYTO${at % 10}`
      }
    ],
    ...parts
  }
}

/** A unit axis for the topic of a text, rotated by the model's name; far from every axis if the text lacks a topic. */
export const embedTopic = (text: string, model: string): ReadonlyArray<number> => {
  const dimension = 16
  const turn = [...model].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % topics.length
  const lower = text.toLowerCase()
  const topic = topics.findIndex((words) => words.some((word) => lower.includes(word)))
  const series = Number(/series (\d+)/.exec(lower)?.[1] ?? 0)
  return Array.from({ length: dimension }, (_, at) => {
    if (topic === -1) return at === dimension - 1 ? 1 : 0
    return at === (topic + turn) % topics.length ? 1 : at === topics.length + (series % 7) ? 0.05 : 0
  })
}
