// Checks of the search bench before the measurements, since a fast and wrong answer is worthless: the resource that
// provided a query's words must be among the first results, and so must the exactly nearest vectors.
import { Effect } from "effect"
import type { Facilitator } from "../support/facilitator.ts"
import { atLeast } from "./rig/bars.ts"
import { searchPath } from "./searchMeasure.ts"
import { embedWords, type Question } from "./searchWorld.ts"

/**
 * Share of the queries with their resource among the first 20 (two common words belong to more resources than that),
 * and share of the exactly nearest 10 that are found.
 */
const FOUND_BAR = 0.85
const RECALL_BAR = 0.95
const RECALL_QUERIES = 25
const NEAREST = 10

/** The share of the questions with their resource among the first 20. */
export const checkFound = Effect.fnUntraced(function* (facilitator: Facilitator, questions: ReadonlyArray<Question>) {
  let found = 0
  for (const { about, query } of questions) {
    const { json, status } = yield* facilitator.ask(searchPath(query, "lexical"))
    const isFound = () => json.resources.some(({ name }: { readonly name: string }) => name === about)
    if (status === 200 && json.partialResults === false && isFound()) found += 1
  }
  return [atLeast("found by their words", found / questions.length, FOUND_BAR)]
})

interface VectorQuestion {
  readonly query: string
  readonly vector: ReadonlyArray<number>
  nearest: ReadonlyArray<{ readonly name: string; readonly similarity: number }>
}

/** Both kinds of vector as their text; a bare PostgreSQL returns bytes of little-endian floats. */
const vectorOf = (text: string): ArrayLike<number> =>
  text.startsWith("[")
    ? (JSON.parse(text) as Array<number>)
    : new Float32Array(Uint8Array.from(Buffer.from(text.slice(2), "hex")).buffer)

const take = (asked: ReadonlyArray<VectorQuestion>, name: string, vector: ArrayLike<number>): void => {
  for (const one of asked) {
    const similarity = one.vector.reduce((sum, part, at) => sum + part * vector[at]!, 0)
    if (one.nearest.length >= NEAREST && similarity <= one.nearest.at(-1)!.similarity) continue
    one.nearest = [...one.nearest, { name, similarity }]
      .toSorted((a, b) => b.similarity - a.similarity)
      .slice(0, NEAREST)
  }
}

/** Compares every stored vector with every query's. */
const exactlyNearest = Effect.fnUntraced(function* ({ sql }: Facilitator, questions: ReadonlyArray<Question>) {
  const [generation] = yield* sql<{ id: bigint }>`select id from search_semantic_generations where status = 'active'`
  const table = sql(`search_semantic_vectors_${generation!.id}`)
  const asked = questions.map(({ query }): VectorQuestion => ({ query, vector: embedWords(query), nearest: [] }))
  for (let after = -1n; ;) {
    const rows = yield* sql<{ id: bigint; name: string; embedding: string }>`select v.id,
        r.document::jsonb->>'name' as name, v.embedding::text as embedding
      from ${table} v join catalog_resources r on r.id = v.id where v.id > ${after} order by v.id limit 2000`
    for (const { embedding, name } of rows) take(asked, name, vectorOf(embedding))
    if (rows.length < 2_000) return asked
    after = rows.at(-1)!.id
  }
})

/**
 * The share of the exactly nearest ten, by the stored vectors, among the first 20, and of the nearest five in the fused
 * answer.
 */
export const checkRecall = Effect.fnUntraced(function* (facilitator: Facilitator, questions: ReadonlyArray<Question>) {
  const asked = yield* exactlyNearest(facilitator, questions.slice(0, RECALL_QUERIES))
  let found = 0
  let fused = 0
  for (const { nearest, query } of asked) {
    const names = (mode: string) =>
      Effect.map(
        facilitator.ask(searchPath(query, mode)),
        ({ json }) => new Set(json.resources.map(({ name }: { readonly name: string }) => name))
      )
    const [semantic, hybrid] = [yield* names("semantic"), yield* names("hybrid")]
    found += nearest.filter(({ name }) => semantic.has(name)).length
    fused += nearest.slice(0, NEAREST / 2).filter(({ name }) => hybrid.has(name)).length
  }
  return [
    atLeast("nearest found", found / (NEAREST * asked.length), RECALL_BAR),
    atLeast("nearest in the fused answer", fused / ((NEAREST / 2) * asked.length), RECALL_BAR)
  ]
})
