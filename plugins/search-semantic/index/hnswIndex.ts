// Vectors in pgvector's own type with an HNSW index. The nearest are found first and then filtered; if a filter leaves
// too few, a second pass ranks exactly the resources that pass it. pgvector indexes up to 2 000 numbers a vector, and
// up to 4 000 in half precision.
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { withSpanIfSampled } from "../../../kernel/effect/withSpanIfSampled.ts"
import { Lane } from "../../../kernel/database/Connections.ts"
import { refineSearch, type StoredVector, tableOf, toHit, VectorIndex } from "./VectorIndex.ts"

const fullPrecisionMax = 2_000
const searchedMax = 1_000
const searchedMin = 400

const written = (vector: Float32Array): string => `[${vector.join(",")}]`

const rowsOf = (vectors: ReadonlyArray<StoredVector>): string =>
  JSON.stringify(vectors.map(({ id, vector }) => ({ id: String(id), embedding: written(vector) })))

/** The version of pgvector, if it is installed or can be. */
export const pgvectorVersion = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const [offered] = yield* sql<{
    installed: string | null
  }>`select installed_version as installed from pg_available_extensions where name = 'vector'`
  if (offered === undefined) return undefined
  if (offered.installed !== null) return offered.installed
  const made = yield* Effect.exit(sql`create extension if not exists vector`.unprepared)
  if (made._tag === "Failure") return undefined
  const [now] = yield* sql<{
    installed: string
  }>`select extversion as installed from pg_extension where extname = 'vector'`
  return now?.installed
})

const make = (sql: SqlClient.SqlClient): VectorIndex["Service"] => {
  const typeOf = (dimension: number) =>
    dimension <= fullPrecisionMax ? `vector(${dimension})` : `halfvec(${dimension})`
  const operators = (dimension: number) => (dimension <= fullPrecisionMax ? "vector_cosine_ops" : "halfvec_cosine_ops")
  const castOf = (dimension: number) => sql.literal(dimension <= fullPrecisionMax ? "::vector" : "::halfvec")
  const transactional = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.provideService(inTransaction(effect), SqlClient.SqlClient, sql)
  const statement = (text: string) => Effect.asVoid(sql.unsafe(text).unprepared)

  return {
    prepare: (vectorSet) =>
      statement(
        `create table if not exists ${tableOf(vectorSet)} ` +
          `(id bigint primary key, embedding ${typeOf(vectorSet.dimension)} not null)`
      ),
    write: (vectorSet, vectors) =>
      vectors.length === 0
        ? Effect.void
        : Effect.asVoid(sql`insert into ${sql(tableOf(vectorSet))} (id, embedding)
        select id, embedding${castOf(vectorSet.dimension)}
        from jsonb_to_recordset(${rowsOf(vectors)}::jsonb) as r (id bigint, embedding text)
        order by id on conflict (id) do update set embedding = excluded.embedding`),
    finish: (vectorSet) =>
      transactional(
        Effect.gen(function* () {
          yield* statement("set local statement_timeout = 0")
          yield* statement(
            `create index if not exists ${tableOf(vectorSet)}_hnsw on ${tableOf(vectorSet)} using hnsw (embedding ` +
              `${operators(vectorSet.dimension)})`
          )
        })
      ).pipe(Effect.provideService(Lane, "maintenance")),
    warm: () => Effect.void,
    nearest: Effect.fnUntraced(function* (vectorSet, sought) {
      const { condition, limit, vector } = sought
      const table = sql(tableOf(vectorSet))
      const query = sql`${written(vector)}${castOf(vectorSet.dimension)}`
      const toHits = (rows: ReadonlyArray<{ readonly id: bigint; readonly distance: number }>) =>
        rows
          .map(({ distance, id }) => toHit(id, 1 - distance))
          .toSorted((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))
      // The search width is set for only this statement, before the index is read, which depends on its result: a
      // transaction around two statements would be four round trips.
      const read = Effect.fnUntraced(function* (required: number) {
        const searched = String(Math.max(searchedMin, Math.min(searchedMax, required)))
        const rows = yield* sql<{ id: bigint; distance: number; examined: bigint }>`with nearest as materialized (
            select found.id, found.distance
            from (select set_config('hnsw.ef_search', ${searched}, true) as searched, ${query} as vector offset 0) asked
            cross join lateral (select id, embedding <=> asked.vector as distance from ${table}
              where asked.searched <> '' order by embedding <=> asked.vector limit ${required}) found)
          select nearest.id, nearest.distance, (select count(*) from nearest) as examined from nearest
            where ${condition("nearest.id")} order by nearest.distance, nearest.id limit ${limit}`
        return { hits: toHits(rows), isAll: rows.length > 0 && rows[0]!.examined < BigInt(required) }
      })
      const exact = (known?: ReadonlyArray<bigint>) =>
        Effect.map(
          sql<{ id: bigint; distance: number }>`select v.id, v.embedding <=> ${query} as distance from ${table} v
            where ${known === undefined ? condition("v.id") : sql`v.id = any(${`{${known.join(",")}}`}::int8[])`}
            order by distance, v.id limit ${limit}`,
          toHits
        )
      return yield* refineSearch(sought, read, exact)
    }, withSpanIfSampled("HnswIndex.nearest")),
    edition: (_, stored) => Effect.succeed(String(stored)),
    drop: (vectorSet) => statement(`drop table if exists ${tableOf(vectorSet)}`)
  }
}

export const hnswIndex = Layer.effect(VectorIndex, Effect.map(SqlClient.SqlClient, make))
