// Word vectors in the database: which parts of the table are read.
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { LoadedWordTable } from "../../../plugins/search-semantic/embedded/WordTable.ts"
import { WordVectors } from "../../../plugins/search-semantic/embedded/WordVectors.ts"
import { scanIndex } from "../../../plugins/search-semantic/index/scanIndex.ts"
import { describeDatabases } from "../../support/databases.ts"
import { resourceDocument } from "../search-lexical/resourceDocument.ts"

describeDatabases(
  "word vectors",
  (layer) => {
    it.layer(layer)((it) => {
      it.effect("word vectors load their table only once there is a resource", () =>
        Effect.gen(function* () {
          const vectors = yield* WordVectors
          yield* vectors.write([])
          expect(yield* vectors.count).toBe(0)
          const named = resourceDocument({ id: 1n, serviceName: "weather", resource: "https://x.example/" })
          expect(String(yield* Effect.exit(vectors.write([named])))).toContain("the table is read")
        }).pipe(
          Effect.provide(
            WordVectors.layer.pipe(
              Layer.provide(scanIndex),
              Layer.provide(Layer.succeed(LoadedWordTable, { table: Effect.die("the table is read") }))
            )
          )
        )
      )
    })
  },
  ["kernel", "catalog", "search-semantic"]
)
