// Both methods of finding the nearest vectors in a database, compared with the exact answer: quantized copies without
// pgvector, and HNSW with it.
import { expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { TestClock } from "effect/testing"
import { hnswIndex, pgvectorVersion } from "../../../plugins/search-semantic/index/hnswIndex.ts"
import { scanIndex } from "../../../plugins/search-semantic/index/scanIndex.ts"
import {
  type Method,
  type VectorSet,
  tableOf,
  VectorIndex
} from "../../../plugins/search-semantic/index/VectorIndex.ts"
import { ingest } from "../../relevance/ingest.ts"
import { topicResource } from "../../relevance/topics.ts"
import { describeDatabases } from "../../support/databases.ts"

const dimension = 48
const count = 2_600
/** Each index is queried directly here; only generation selection depends on the generation's owner. */
const place: VectorSet = { generation: 1n, dimension, method: "scan" }

/** Vectors around forty directions, the same in every run. */
const vectors = (() => {
  let seed = 11
  const random = () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) | 0
    return (seed >>> 0) / 4_294_967_296 - 0.5
  }
  const centres = Array.from({ length: 40 }, () => Array.from({ length: dimension }, random))
  return Array.from({ length: count }, (_, at) => {
    const numbers = centres[at % 40]!.map((one) => one + 0.8 * random())
    return { id: BigInt(at + 1), vector: Float32Array.from(numbers, (one) => one / Math.hypot(...numbers)) }
  })
})()

const exactly = (query: Float32Array, limit: number, holds: (id: bigint) => boolean = () => true) =>
  vectors
    .filter(({ id }) => holds(id))
    .map(({ id, vector }) => ({ id, similarity: vector.reduce((sum, one, at) => sum + one * query[at]!, 0) }))
    .sort((a, b) => b.similarity - a.similarity)
    .slice(0, limit)

/** A separate index, as another process has it. */
const made = (layer: typeof scanIndex) =>
  Effect.map(Layer.build(Layer.fresh(layer)), (context) => Context.get(context, VectorIndex))

const filled = (method: Method) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    if (method === "hnsw") yield* pgvectorVersion(sql)
    const index = yield* made(method === "hnsw" ? hnswIndex : scanIndex)
    yield* ingest(
      sql,
      Array.from({ length: count }, (_, at) => topicResource(at))
    )
    yield* index.prepare(place)
    yield* index.write(place, vectors)
    yield* index.finish(place)
    const conditionOf = (where: (id: string) => Statement.Fragment) => (id?: string) => where(id ?? "r.id")
    const nearest = (
      vector: Float32Array,
      where: (id: string) => Statement.Fragment = () => sql`true`,
      filtered = false
    ) =>
      Effect.map(index.nearest(place, { vector, limit: 20, filtered, condition: conditionOf(where) }), (hits) =>
        hits.map(({ id }) => id)
      )
    return { sql, index, nearest }
  })

describeDatabases(
  "the nearest vectors",
  (layer, kind) => {
    it.effect.each(kind === "pglite" ? (["scan", "hnsw"] as const) : (["scan"] as const))(
      "the index finds 95 of the exact nearest 100, by %s",
      (method) =>
        Effect.gen(function* () {
          const { nearest } = yield* filled(method)
          let found = 0
          for (let query = 0; query < 20; query++) {
            const { vector } = vectors[query * 61]!
            const hits = yield* nearest(vector)
            found += exactly(vector, 20).filter(({ id }) => hits.includes(id)).length
            expect(hits[0]).toBe(vectors[query * 61]!.id)
          }
          expect(found).toBeGreaterThanOrEqual(380)
        }).pipe(Effect.provide(layer))
    )

    it.effect.skipIf(kind !== "pglite")("hnsw returns the nearest that pass, in any order of the filter's plan", () =>
      Effect.gen(function* () {
        const { nearest, sql } = yield* filled("hnsw")
        // A join that sorts by id, as planners choose over a few hundred resources.
        yield* sql`set enable_nestloop = off`.unprepared
        yield* sql`set enable_hashjoin = off`.unprepared
        let found = 0
        for (let query = 0; query < 20; query++) {
          const { vector } = vectors[query * 61]!
          const hits = yield* nearest(
            vector,
            (id) => sql`${sql.literal(id)} in (select r.id from catalog_resources r where r.state = 'active')`
          )
          found += exactly(vector, 20).filter(({ id }) => hits.includes(id)).length
        }
        expect(found).toBeGreaterThanOrEqual(390)
      }).pipe(Effect.provide(layer))
    )

    it.effect.skipIf(kind !== "pglite")("hnsw reads as far as one query asks, for that query alone", () =>
      Effect.gen(function* () {
        const { index, sql } = yield* filled("hnsw")
        // As planners choose over more resources.
        yield* sql`set enable_seqscan = off`.unprepared
        yield* sql`set enable_sort = off`.unprepared
        const { vector } = vectors[7]!
        const hits = yield* index.nearest(place, { vector, limit: 300, filtered: false, condition: () => sql`true` })
        expect(hits).toHaveLength(300)
        const ids = hits.map(({ id }) => id)
        expect(exactly(vector, 300).filter(({ id }) => ids.includes(id)).length).toBeGreaterThanOrEqual(290)
        const [left] = yield* sql<{ far: string }>`select current_setting('hnsw.ef_search') as far`
        expect(left!.far).toBe("40")
      }).pipe(Effect.provide(layer))
    )

    it.effect("a scan reports similarity above all vectors, also under a narrow filter", () =>
      Effect.gen(function* () {
        const { index, sql } = yield* filled("scan")
        const { id, vector } = vectors[7]!
        const ask = (distinguishing: boolean, where: (id: string) => Statement.Fragment, filtered: boolean) =>
          index.nearest(place, {
            vector,
            distinguishing,
            limit: 20,
            filtered,
            condition: (id) => where(id ?? "r.id")
          })
        const all = yield* ask(true, () => sql`true`, false)
        const few = yield* ask(true, (at) => sql`${sql.literal(at)} in (${id}, 9)`, true)
        const [plain] = yield* ask(false, () => sql`true`, false)
        expect(all[0]!.id).toBe(id)
        expect(all[0]!.prominence).toBeGreaterThan(0.5)
        expect(few.map((hit) => hit.id)).toEqual([id, 9n])
        expect(few[0]!.prominence).toBeCloseTo(all[0]!.prominence!, 9)
        expect(few[1]!.prominence).toBeLessThan(0)
        expect(plain!.prominence).toBeUndefined()
      }).pipe(Effect.provide(layer))
    )

    it.effect("a scan ranks cached visible resources, and under a filter its matches", () =>
      Effect.gen(function* () {
        const { index, sql } = yield* filled("scan")
        const [{ id: first, vector }, { id: second }] = [vectors[7]!, vectors[9]!]
        const ask = (filtered: boolean) =>
          index.nearest(place, {
            vector,
            limit: 20,
            filtered,
            visible: (ids) => Effect.succeed(ids.filter((id) => id === first)),
            condition: (id) => sql`${sql.literal(id ?? "r.id")} in (${first}, ${second})`
          })
        expect((yield* ask(false)).map(({ id }) => id)).toEqual([first])
        expect((yield* ask(true)).map(({ id }) => id)).toEqual([first, second])
      }).pipe(Effect.provide(layer))
    )

    it.effect.each(kind === "pglite" ? (["scan", "hnsw"] as const) : (["scan"] as const))(
      "narrow filters are exact, and hidden resources displace nothing, by %s",
      (method) =>
        Effect.gen(function* () {
          const { index, nearest, sql } = yield* filled(method)
          const { vector } = vectors[0]!
          const few = yield* nearest(vector, (id) => sql`${sql.literal(id)} % 200 = 7`, true)
          expect(few.toSorted()).toEqual(
            exactly(vector, 20, (id) => id % 200n === 7n)
              .map(({ id }) => id)
              .toSorted()
          )
          // Known matches are ranked without querying the filter.
          const among = [507n, 9n, 1_203n]
          const known = { vector, limit: 20, few: Effect.succeed(among), condition: () => sql`false` }
          expect((yield* index.nearest(place, { ...known, filtered: true })).map(({ id }) => id)).toEqual(
            exactly(vector, 20, (id) => among.includes(id)).map(({ id }) => id)
          )
          // Everything near is hidden: two hundred resources that may not be shown.
          const hidden = exactly(vector, 200).map(({ id }) => id)
          const seen = yield* nearest(vector, (id) => sql`not (${sql.in(id, hidden)})`)
          expect(
            exactly(vector, 10, (id) => !hidden.includes(id)).filter(({ id }) => seen.includes(id)).length
          ).toBeGreaterThanOrEqual(9)
          expect(seen).toHaveLength(20)
        }).pipe(Effect.provide(layer))
    )

    it.effect("a generation that begins to answer reads its copy anew [S319]", () =>
      Effect.gen(function* () {
        const { index, nearest } = yield* filled("scan")
        const { vector } = vectors[500]!
        yield* (yield* made(scanIndex)).write(place, [{ id: 8_001n, vector }])
        yield* TestClock.adjust("1 millis")
        expect(yield* nearest(vector)).not.toContain(8_001n)
        yield* index.warm(place)
        expect(yield* nearest(vector)).toContain(8_001n)
      }).pipe(Effect.provide(layer))
    )

    it.effect("a scan reads all vectors across batches, in any id order", () =>
      Effect.gen(function* () {
        const { index, sql } = yield* filled("scan")
        const table = sql.literal(tableOf(place))
        const { vector } = vectors[500]!
        // The first five thousand end within this transaction, and the next id is below their last one.
        yield* sql`insert into ${table} (id, embedding)
          select added, embedding from ${table}, generate_series(10001, 15000) as added where id = 1`
        yield* index.write(place, [{ id: 9_001n, vector }])
        const elsewhere = yield* made(scanIndex)
        const question = { vector, limit: 20, filtered: false, condition: () => sql`true` }
        const hits = yield* elsewhere.nearest(place, question)
        expect(hits.slice(0, 2).map(({ id }) => id)).toEqual([501n, 9_001n])
      }).pipe(Effect.provide(layer))
    )

    it.effect("a scan reads each vector once after a restore into another cluster", () =>
      Effect.gen(function* () {
        const { index, nearest, sql } = yield* filled("scan")
        const { vector } = vectors[500]!
        const table = sql.literal(tableOf(place))
        yield* sql`update ${table} set xid = '999999999999'`
        const restored = yield* nearest(vector)
        expect(restored[0]).toBe(501n)
        // No product code writes like this: a second read would show it.
        yield* sql`update ${table} set embedding = (select embedding from ${table} where id = 501) where id = 700`
        yield* TestClock.adjust("1001 millis")
        expect(yield* nearest(vector)).toEqual(restored)
        yield* index.write(place, [{ id: 7_003n, vector }])
        yield* TestClock.adjust("1001 millis")
        expect((yield* nearest(vector)).slice(0, 2).sort()).toEqual([501n, 7_003n])
      }).pipe(Effect.provide(layer))
    )

    // The embedded database runs one connection at a time: an open transaction would block everything.
    it.effect.skipIf(kind === "pglite")(
      "writes reach every replica's copy within about a second, despite open transactions",
      () =>
        Effect.gen(function* () {
          const { index, nearest, sql } = yield* filled("scan")
          const elsewhere = yield* made(scanIndex)
          const { vector } = vectors[500]!
          expect((yield* nearest(vector))[0]).toBe(501n)
          const [opened, released] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
          // A test that fails must not wait for its own transaction.
          yield* Effect.addFinalizer(() => Deferred.succeed(released, undefined))
          const writing = yield* Effect.forkChild(
            sql.withTransaction(
              Effect.gen(function* () {
                yield* elsewhere.write(place, [{ id: 7_001n, vector }])
                yield* Deferred.succeed(opened, undefined)
                yield* Deferred.await(released)
              })
            )
          )
          yield* Deferred.await(opened)
          // A later transaction commits first; the copy that sees it must not assume to be past the open one.
          yield* elsewhere.write(place, [{ id: 7_002n, vector }])
          yield* TestClock.adjust("1001 millis")
          expect((yield* nearest(vector)).slice(0, 2)).toEqual([501n, 7_002n])
          yield* Deferred.succeed(released, undefined)
          yield* Fiber.join(writing)
          yield* TestClock.adjust("1001 millis")
          expect((yield* nearest(vector)).slice(0, 3)).toEqual([501n, 7_001n, 7_002n])
          yield* index.drop(place)
        }).pipe(Effect.provide(layer))
    )
  },
  ["kernel", "catalog", "search-semantic"]
)
