// Bodies that many requests read in one statement: batched when requested together, never from another read target than
// the request's, and never older than the request.
import { expect, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { type CatalogValues, Config } from "../../../plugins/catalog/Config.ts"
import { batchBodies } from "../../../plugins/catalog/discovery/batchBodies.ts"
import { describeDatabases } from "../../support/databases.ts"
import { addResources } from "./addResources.ts"
import { makePlace } from "./countedPlace.ts"

const config = Layer.succeed(Config, {
  includeStale: false,
  includeUnverified: false,
  metadataBytesMax: 131_072
} as CatalogValues)

const names = (bodies: ReadonlyArray<{ readonly json: string }>) =>
  bodies.map(({ json }) => (JSON.parse(json) as { name: string }).name)

const started = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

describeDatabases(
  "bodies",
  (database) => {
    layer(Layer.merge(database, config), { timeout: "240 seconds" })((it) => {
      it.effect("concurrent body reads share one statement and keep their order", () =>
        Effect.gen(function* () {
          yield* addResources(60)
          const bodies = yield* batchBodies
          const { from, counter } = yield* makePlace
          const asked = [[3n, 1n, 2n], [2n, 5n], [99n, 4n], []]
          const asking = yield* Effect.forEach(asked, (ids) => started(from(bodies(ids))))
          const answers = yield* Effect.forEach(asking, Fiber.join)
          expect(answers.map(names)).toEqual([["3", "1", "2"], ["2", "5"], ["4"], []])
          expect(counter.statements).toBe(1)
          // A large read does not make other requests wait for it.
          const many = Array.from({ length: 51 }, (_, at) => BigInt(at + 1))
          const both = yield* Effect.forEach([many, [1n]], (ids) => started(from(bodies(ids))))
          expect((yield* Effect.forEach(both, Fiber.join)).map(({ length }) => length)).toEqual([51, 1])
          expect(counter.statements).toBe(3)
        })
      )

      it.effect("a body read never joins a statement that began before it", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          yield* addResources(2)
          const bodies = yield* batchBodies
          const { from, open, shut, counter } = yield* makePlace
          const answered = yield* shut
          const before = yield* started(from(bodies([1n, 2n])))
          yield* answered
          yield* sql`update catalog_resources set state = 'quarantined' where id = 1`
          const after = yield* Effect.forEach([1, 2], () => started(from(bodies([1n, 2n]))))
          yield* open
          expect(names(yield* Fiber.join(before))).toEqual(["1", "2"])
          for (const one of after) expect(names(yield* Fiber.join(one))).toEqual(["2"])
          expect(counter.statements).toBe(2)
        })
      )

      it.effect("bodies are read at the replica that each request reads from", () =>
        Effect.gen(function* () {
          yield* addResources(1)
          const bodies = yield* batchBodies
          const [replica, other] = [yield* makePlace, yield* makePlace]
          const asking = yield* Effect.forEach([replica.from, other.from, replica.from], (from) =>
            started(from(bodies([1n])))
          )
          const primary = yield* started(bodies([1n]))
          for (const one of [...asking, primary]) expect(names(yield* Fiber.join(one))).toEqual(["1"])
          expect([replica.counter.statements, other.counter.statements]).toEqual([1, 1])
        })
      )
    })
  },
  ["kernel", "catalog"]
)
