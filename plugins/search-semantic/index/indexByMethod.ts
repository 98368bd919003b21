// Each generation keeps the index method with which it was begun: when the setting changes, the old generation answers
// until its successor is complete. The method of a new one is decided once, at the start.
import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { Database } from "../../../kernel/database/Database.ts"
import type { SearchSettings } from "../../catalog/contract.ts"
import { hnswIndex } from "./hnswIndex.ts"
import { scanIndex } from "./scanIndex.ts"
import { type Method, type VectorSet, VectorIndex } from "./VectorIndex.ts"

/**
 * The way of a new generation. The embedded database scans even with pgvector: it serves one process with the only
 * copy, and an index in WebAssembly takes ten times as long to find the nearest.
 */
export const newMethod = (
  asked: SearchSettings["Service"]["semantic"]["index"],
  database: Database["Service"]["kind"],
  hasPgvector: boolean
): Method => {
  if (asked === "scan" || !hasPgvector) return "scan"
  return asked === "hnsw" || database === "server" ? "hnsw" : "scan"
}

const built = (layer: typeof scanIndex) =>
  Effect.map(Layer.build(layer), (context) => Context.get(context, VectorIndex))

export const indexByMethod = Layer.effect(
  VectorIndex,
  Effect.gen(function* () {
    const indexes = { hnsw: yield* built(hnswIndex), scan: yield* built(scanIndex) }
    const at = <A>(vectorSet: VectorSet, use: (index: VectorIndex["Service"]) => Effect.Effect<A, SqlError.SqlError>) =>
      use(indexes[vectorSet.method])
    return VectorIndex.of({
      prepare: (vectorSet) => at(vectorSet, ({ prepare }) => prepare(vectorSet)),
      write: (vectorSet, vectors) => at(vectorSet, ({ write }) => write(vectorSet, vectors)),
      finish: (vectorSet) => at(vectorSet, ({ finish }) => finish(vectorSet)),
      warm: (vectorSet) => at(vectorSet, ({ warm }) => warm(vectorSet)),
      nearest: (vectorSet, sought) => at(vectorSet, ({ nearest }) => nearest(vectorSet, sought)),
      edition: (vectorSet, stored) => at(vectorSet, ({ edition }) => edition(vectorSet, stored)),
      drop: (vectorSet) => at(vectorSet, ({ drop }) => drop(vectorSet))
    })
  })
)
