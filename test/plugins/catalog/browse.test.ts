// Which pages have a prepared statement: a server keeps one for each text, so texts that a caller varies have none.
import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { type CatalogValues, Config } from "../../../plugins/catalog/Config.ts"
import { Catalog, type Filters } from "../../../plugins/catalog/contract.ts"
import { Browse } from "../../../plugins/catalog/discovery/Browse.ts"
import { Counts } from "../../../plugins/catalog/discovery/Counts.ts"
import { describeDatabases } from "../../support/databases.ts"
import { layerTest } from "../../support/layerTest.ts"
import { addResources } from "./addResources.ts"
import { makePlace } from "./countedPlace.ts"

const total = 160

const parts = Browse.layer.pipe(
  Layer.provide([
    Layer.succeed(Config, {
      includeStale: false,
      includeUnverified: false,
      metadataBytesMax: 131_072
    } as CatalogValues),
    layerTest(Catalog, { seal: () => Effect.succeed("cursor") }),
    Layer.mock(Counts)({
      count: () => Effect.succeed({ asOf: Date.UTC(2026, 0, 2), first: [], snapshot: BigInt(total), total })
    })
  ])
)

describeDatabases(
  "browsing",
  (database) => {
    layer(parts.pipe(Layer.provideMerge(database)), { timeout: "240 seconds" })((it) => {
      it.effect("a page is prepared unless offset, size or filters vary it", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* addResources(total)
          yield* sql`update catalog_resources set standing_at = '2026-01-01T00:00:00Z'`
          const { page } = yield* Browse
          const { counter, from } = yield* makePlace
          const read = Effect.fnUntraced(function* (filters: Filters, limit: number, offset = 0) {
            counter.prepared = 0
            const { items } = Option.getOrThrow(yield* from(page({ filters, limit, offset, cursor: undefined })))
            return [items.length, counter.prepared]
          })
          expect(yield* read({ type: "http" }, 2)).toEqual([2, 1])
          expect(yield* read({ type: "http" }, 100)).toEqual([100, 1])
          expect(yield* read({ type: "http" }, 101)).toEqual([101, 0])
          expect(yield* read({ type: "http" }, 2, 1)).toEqual([2, 0])
          expect(yield* read({}, 2, 1)).toEqual([2, 0])
          expect(yield* read({ type: "http", extension: "catalog" }, 2)).toEqual([2, 0])
        })
      )
    })
  },
  ["kernel", "catalog"]
)
