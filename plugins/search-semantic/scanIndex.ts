// Vectors for a database without pgvector: stored as bytes, and scanned in a quantized copy that each process keeps in memory. The copy
// follows the table by transaction ids: rows written by a transaction that was open at the last look are read again, so none is
// missed. A process loads a generation before it answers from it.
import { Clock, Effect, Semaphore } from "effect"
import { Base64 } from "effect/encoding"
import type { SqlClient } from "effect/sql"
import { QuantizedVectors } from "./QuantizedVectors.ts"
import { lookCloser, type Place, tableOf, toHit, type VectorIndex } from "./VectorIndex.ts"

const pageMax = 5_000
const freshMillis = 1_000
/** Resources that a filter may leave and still be ranked one by one. */
const amongMax = 50_000
/** A copy of another generation that nobody has read for so long goes. */
const forgottenAfterMillis = 60_000

interface Copy {
  readonly vectors: QuantizedVectors
  /** Transactions below this one were over at the last look. */
  xid: string
  lookedAt: number
}

const bytesOf = (vector: Float32Array): Uint8Array => new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength)

const vectorOf = (bytes: Uint8Array): Float32Array => new Float32Array(bytes.slice().buffer)

export const makeScanIndex = (sql: SqlClient.SqlClient): VectorIndex => {
  const copies = new Map<bigint, Copy>()
  const lock = Semaphore.makeUnsafe(1)

  const load = Effect.fnUntraced(function*(place: Place, copy: Copy) {
    const [look] = yield* sql<{ xid: string }>`select pg_snapshot_xmin(pg_current_snapshot())::text as xid`
    let after = -1n
    while (true) {
      const rows = yield* sql<{ id: bigint; embedding: Uint8Array }>`select id, embedding from ${sql(tableOf(place))}
        where xid >= ${copy.xid}::xid8 and id > ${after} order by id limit ${pageMax}`
      copy.vectors.put(rows.map(({ embedding, id }) => ({ id, vector: vectorOf(embedding) })))
      if (rows.length < pageMax) break
      after = rows.at(-1)!.id
      yield* Effect.yieldNow
    }
    copy.xid = look!.xid
    copy.lookedAt = yield* Clock.currentTimeMillis
  })

  const fresh = Effect.fnUntraced(function*(place: Place) {
    const known = copies.get(place.generation)
    if (known !== undefined && (yield* Clock.currentTimeMillis) - known.lookedAt < freshMillis) return known.vectors
    return yield* lock.withPermits(1)(Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      const copy = copies.get(place.generation) ?? { vectors: new QuantizedVectors(place.dimension), xid: "0", lookedAt: -freshMillis }
      if (now - copy.lookedAt >= freshMillis) yield* load(place, copy)
      copies.set(place.generation, copy)
      // The replica that drops a generation's table is not always this one.
      for (const [generation, other] of copies) if (now - other.lookedAt > forgottenAfterMillis) copies.delete(generation)
      return copy.vectors
    }))
  })

  return {
    method: "scan",
    prepare: (place) =>
      Effect.gen(function*() {
        yield* sql.unsafe(`create table if not exists ${tableOf(place)} (id bigint primary key, embedding bytea not null, xid xid8 not null default pg_current_xact_id())`).unprepared
        yield* sql.unsafe(`create index if not exists ${tableOf(place)}_xid on ${tableOf(place)} (xid)`).unprepared
      }),
    write: (place, vectors) =>
      vectors.length === 0 ? Effect.void : Effect.asVoid(sql`insert into ${sql(tableOf(place))} (id, embedding)
        select id, decode(embedding, 'base64')
        from jsonb_to_recordset(${JSON.stringify(vectors.map(({ id, vector }) => ({ id: String(id), embedding: Base64.encode(bytesOf(vector)) })))}::jsonb) as r (id bigint, embedding text)
        order by id on conflict (id) do update set embedding = excluded.embedding, xid = pg_current_xact_id()`),
    finish: (place) => Effect.asVoid(fresh(place)),
    nearest: Effect.fn("ScanIndex.nearest")(function*(place, { condition, filtered, limit, vector }) {
      const vectors = yield* fresh(place)
      const allowed = (similar: ReadonlyArray<{ readonly id: bigint }>) =>
        Effect.map(
          sql<{ id: bigint }>`select v.id from (select value::bigint as id from jsonb_array_elements_text(${JSON.stringify(similar.map(({ id }) => String(id)))}::jsonb)) v where ${condition("v.id")}`,
          (rows) => new Set(rows.map(({ id }) => id))
        )
      const look = Effect.fnUntraced(function*(wanted: number) {
        const similar = vectors.nearest(vector, wanted)
        const visible = yield* allowed(similar)
        return {
          hits: similar.filter(({ id }) => visible.has(id)).slice(0, limit).map(({ id, similarity }) => toHit(id, similarity)),
          isAll: similar.length < wanted
        }
      })
      const exact = Effect.map(sql<{ id: bigint }>`select r.id from catalog_resources r where ${condition()} limit ${amongMax}`, (rows) =>
        vectors.nearest(vector, limit, rows.map(({ id }) => id)).map(({ id, similarity }) => toHit(id, similarity)))
      return yield* lookCloser({ filtered, limit }, look, exact)
    }),
    drop: (place) =>
      Effect.gen(function*() {
        copies.delete(place.generation)
        yield* sql.unsafe(`drop table if exists ${tableOf(place)}`).unprepared
      })
  }
}
