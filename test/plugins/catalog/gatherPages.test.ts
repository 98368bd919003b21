// Pages without filters that many requests read in one statement: each gets its own rows, from a statement that began
// after the request, at its own read target.
import { expect, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { type CatalogValues, Config } from "../../../plugins/catalog/Config.ts"
import { batchPages, type PageAsked } from "../../../plugins/catalog/discovery/batchPages.ts"
import { describeDatabases } from "../../support/databases.ts"
import { addResources } from "./addResources.ts"
import { makePlace } from "./countedPlace.ts"

const config = Layer.succeed(Config, { includeStale: false, includeUnverified: false } as CatalogValues)
const asOf = Date.UTC(2026, 0, 2)

/** Of 60 resources the even ones have evidence, the first forty since the first of January. */
const world = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* addResources(60)
  yield* sql`update catalog_resources set standing_at = case when id <= 40 then '2026-01-01T00:00:00Z'::timestamptz
    else '2026-01-03T00:00:00Z' end where id % 2 = 0`
  return { sql, pages: yield* batchPages }
})

const asked = (hasEvidence: boolean, below: bigint, count: number, first: ReadonlyArray<bigint> = []): PageAsked => ({
  hasEvidence,
  count,
  place: { hasEvidence, below, shown: 0, total: 60, asOf, first }
})

const ids = (bodies: ReadonlyArray<{ readonly id: bigint }>) => bodies.map(({ id }) => Number(id))

const started = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

describeDatabases(
  "batched pages of browsing",
  (database) => {
    layer(Layer.merge(database, config), { timeout: "240 seconds" })((it) => {
      it.effect("concurrent page reads share one statement per size and kind", () =>
        Effect.gen(function* () {
          const { pages } = yield* world
          const { from, counter } = yield* makePlace
          const asking = yield* Effect.forEach(
            [
              asked(true, 61n, 3),
              asked(true, 20n, 3, [18n, 14n]),
              asked(true, 5n, 3),
              asked(true, 61n, 2),
              // A resource that has risen since is still among the others.
              asked(false, 61n, 3),
              asked(true, 1n, 3)
            ],
            (page) => started(from(pages(page)))
          )
          expect((yield* Effect.forEach(asking, Fiber.join)).map(ids)).toEqual([
            [40, 38, 36],
            [16, 12, 10],
            [4, 2],
            [40, 38],
            [60, 59, 58],
            []
          ])
          expect(counter.statements).toBe(3)
        })
      )

      it.effect("a page read never joins a statement that began before it", () =>
        Effect.gen(function* () {
          const { pages, sql } = yield* world
          const { from, open, shut, counter } = yield* makePlace
          const answered = yield* shut
          const before = yield* started(from(pages(asked(true, 61n, 2))))
          yield* answered
          yield* sql`update catalog_resources set state = 'quarantined' where id = 40`
          const after = yield* Effect.forEach([1, 2], () => started(from(pages(asked(true, 61n, 2)))))
          yield* open
          expect(ids(yield* Fiber.join(before))).toEqual([40, 38])
          for (const one of after) expect(ids(yield* Fiber.join(one))).toEqual([38, 36])
          expect(counter.statements).toBe(2)
        })
      )

      it.effect("pages are read at the replica that each request reads from", () =>
        Effect.gen(function* () {
          const { pages } = yield* world
          const [replica, other] = [yield* makePlace, yield* makePlace]
          const asking = yield* Effect.forEach([replica.from, other.from, replica.from], (from) =>
            started(from(pages(asked(true, 61n, 1))))
          )
          const primary = yield* started(pages(asked(true, 61n, 1)))
          for (const one of [...asking, primary]) expect(ids(yield* Fiber.join(one))).toEqual([40])
          expect([replica.counter.statements, other.counter.statements]).toEqual([1, 1])
        })
      )
    })
  },
  ["kernel", "catalog"]
)
