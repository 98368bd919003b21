// Vectors for a database without pgvector: stored as bytes, and scanned in a quantized copy that each process keeps in
// memory. The copy follows the table by transaction ids: rows written by a transaction that was open at the last look
// are read again, so none is missed. The ids are of one cluster: in a database that was restored into another, rows of
// before bear ids that are still to come there and are read once, and a copy of before is made anew. A process loads a
// generation while it is built and before it answers from it; a look at the table belongs to the plugin and not to the
// search that asked for it, so that one which gives up leaves the others what was read.
import { Clock, Deferred, Effect, type Scope } from "effect"
import { Base64 } from "effect/encoding"
import type { SqlClient, SqlError } from "effect/sql"
import { QuantizedVectors } from "./QuantizedVectors.ts"
import { lookCloser, type Place, tableOf, toHit, type StoredVector, type VectorIndex } from "./VectorIndex.ts"

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
  /** When the last look began: it has everything from before. */
  lookedAt: number
}

const bytesOf = (vector: Float32Array): Uint8Array =>
  new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength)

const rowsOf = (vectors: ReadonlyArray<StoredVector>): string =>
  JSON.stringify(vectors.map(({ id, vector }) => ({ id: String(id), embedding: Base64.encode(bytesOf(vector)) })))

const vectorOf = (bytes: Uint8Array): Float32Array => new Float32Array(bytes.slice().buffer)

export const makeScanIndex = (sql: SqlClient.SqlClient, scope: Scope.Scope): VectorIndex => {
  const copies = new Map<bigint, Copy>()
  const looks = new Map<bigint, Deferred.Deferred<void, SqlError.SqlError>>()

  const look = Effect.fnUntraced(function* (place: Place) {
    const known = copies.get(place.generation)
    const now = yield* Clock.currentTimeMillis
    const [snapshot] = yield* sql<{ xid: string; next: string }>`select
      pg_snapshot_xmin(pg_current_snapshot())::text as xid, pg_snapshot_xmax(pg_current_snapshot())::text as next`
    const isOfThisCluster = known !== undefined && BigInt(known.xid) <= BigInt(snapshot!.next)
    const copy: Copy = isOfThisCluster
      ? known
      : { vectors: new QuantizedVectors(place.dimension), xid: "0", lookedAt: 0 }
    let after = -1n
    while (true) {
      const rows = yield* sql<{ id: bigint; embedding: Uint8Array }>`select id, embedding from ${sql(tableOf(place))}
        where xid >= ${copy.xid}::xid8 and (${copy.xid} = '0' or xid < pg_snapshot_xmax(pg_current_snapshot()))
          and id > ${after} order by id limit ${pageMax}`
      copy.vectors.put(rows.map(({ embedding, id }) => ({ id, vector: vectorOf(embedding) })))
      if (rows.length < pageMax) break
      after = rows.at(-1)!.id
      yield* Effect.yieldNow
    }
    copy.xid = snapshot!.xid
    copy.lookedAt = now
    copies.set(place.generation, copy)
    // The replica that drops a generation's table is not always this one.
    for (const [generation, { lookedAt }] of copies)
      if (now - lookedAt > forgottenAfterMillis) copies.delete(generation)
  })

  /** The copy as of this time or later. Those who want it at once share one look. */
  const asOf = Effect.fnUntraced(function* (
    place: Place,
    time: number
  ): Effect.fn.Return<QuantizedVectors, SqlError.SqlError> {
    while (true) {
      const known = copies.get(place.generation)
      if (known !== undefined && known.lookedAt >= time) return known.vectors
      // One that is under way may have begun too early; then another follows.
      const under = looks.get(place.generation)
      if (under !== undefined) {
        yield* Deferred.await(under)
        continue
      }
      const own = Deferred.makeUnsafe<void, SqlError.SqlError>()
      looks.set(place.generation, own)
      yield* Effect.forkIn(
        Effect.onExit(look(place), (exit) => {
          looks.delete(place.generation)
          return Deferred.done(own, exit)
        }),
        scope
      )
      yield* Deferred.await(own)
    }
  })
  const now = (place: Place) => Effect.asVoid(Effect.flatMap(Clock.currentTimeMillis, (time) => asOf(place, time)))

  return {
    method: "scan",
    prepare: (place) =>
      Effect.gen(function* () {
        yield* sql.unsafe(
          `create table if not exists ${tableOf(place)} (id bigint primary key, embedding bytea not null, xid xid8 ` +
            `not null default pg_current_xact_id())`
        ).unprepared
        yield* sql.unsafe(`create index if not exists ${tableOf(place)}_xid on ${tableOf(place)} (xid)`).unprepared
      }),
    write: (place, vectors) =>
      vectors.length === 0
        ? Effect.void
        : Effect.asVoid(sql`insert into ${sql(tableOf(place))} (id, embedding)
        select id, decode(embedding, 'base64')
        from jsonb_to_recordset(${rowsOf(vectors)}::jsonb) as r (id bigint, embedding text)
        order by id on conflict (id) do update set embedding = excluded.embedding, xid = pg_current_xact_id()`),
    finish: now,
    warm: now,
    nearest: Effect.fn("ScanIndex.nearest")(function* (place, { condition, filtered, limit, vector }) {
      const vectors = yield* asOf(place, (yield* Clock.currentTimeMillis) - freshMillis)
      const allowed = (similar: ReadonlyArray<{ readonly id: bigint }>) =>
        Effect.map(
          sql<{
            id: bigint
          }>`select v.id from (select value::bigint as id from
            jsonb_array_elements_text(${JSON.stringify(similar.map(({ id }) => String(id)))}::jsonb)) v
            where ${condition("v.id")}`,
          (rows) => new Set(rows.map(({ id }) => id))
        )
      const look = Effect.fnUntraced(function* (wanted: number) {
        const similar = vectors.nearest(vector, wanted)
        const visible = yield* allowed(similar)
        return {
          hits: similar
            .filter(({ id }) => visible.has(id))
            .slice(0, limit)
            .map(({ id, similarity }) => toHit(id, similarity)),
          isAll: similar.length < wanted
        }
      })
      const exact = Effect.map(
        sql<{ id: bigint }>`select r.id from catalog_resources r where ${condition()} limit ${amongMax}`,
        (rows) =>
          vectors
            .nearest(
              vector,
              limit,
              rows.map(({ id }) => id)
            )
            .map(({ id, similarity }) => toHit(id, similarity))
      )
      return yield* lookCloser({ filtered, limit }, look, exact)
    }),
    drop: (place) =>
      Effect.gen(function* () {
        copies.delete(place.generation)
        yield* sql.unsafe(`drop table if exists ${tableOf(place)}`).unprepared
      })
  }
}
