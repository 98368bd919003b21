// What a resource and a query mean by the table of words: the weighed mean of their words. Names tell most, then tags,
// then what is described. Pure.
import type { ResourceDocument } from "../../catalog/contract.ts"
import { resourceTexts, tellingWords } from "../../search-lexical/contract.ts"
import type { Meaning, WordTable } from "./WordTable.ts"

/** Another way from texts to vectors is another revision. */
export const recipe = "2"

const fields = [
  ["a", 1],
  ["b", 0.6],
  ["c", 0.8],
  ["d", 0.1]
] as const

export const resourceVector = (table: WordTable, resource: ResourceDocument): Float32Array | undefined => {
  const texts = resourceTexts(resource)
  const words = fields.flatMap(([field, weight]) =>
    texts[field].split(" ").map((word): readonly [string, number] => [word, weight])
  )
  return table.meaningOf(words)?.vector
}

export const queryMeaning = (table: WordTable, query: string): Meaning | undefined =>
  table.meaningOf([...new Set(tellingWords(query))].map((word) => [word, 1]))
