// Vectors that need nothing of a database: stored as bytes, and scanned in a quantized copy that each process keeps in
// memory (`VectorCopies.ts`). A process loads a generation while it is built and before it answers from it.
import { Effect, Layer } from "effect"
import { Base64 } from "effect/encoding"
import { SqlClient, type SqlError } from "effect/sql"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { withSpanIfSampled } from "../../../kernel/effect/withSpanIfSampled.ts"
import type { Hit } from "../../catalog/contract.ts"
import type { Background, Similar } from "./QuantizedVectors.ts"
import {
  refineSearch,
  type NearestQuery,
  type VectorSet,
  type StoredVector,
  tableOf,
  toHit,
  VectorIndex
} from "./VectorIndex.ts"
import { VectorCopies } from "./VectorCopies.ts"

const freshMillis = 1_000
/** Resources that a filter may leave and still be ranked one by one. */
const amongMax = 50_000

const bytesOf = (vector: Float32Array): Uint8Array =>
  new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength)

const rowsOf = (vectors: ReadonlyArray<StoredVector>): string =>
  JSON.stringify(vectors.map(({ id, vector }) => ({ id: String(id), embedding: Base64.encode(bytesOf(vector)) })))

const toHits = (similar: ReadonlyArray<Similar>, background: Background | undefined): ReadonlyArray<Hit> =>
  similar.map(({ id, similarity }) => {
    if (background === undefined) return toHit(id, similarity)
    const { chance, deviation, mean } = background
    return { ...toHit(id, similarity), prominence: (similarity - mean) / deviation - chance }
  })

const prepare = Effect.fnUntraced(function* (vectorSet: VectorSet) {
  const sql = yield* SqlClient.SqlClient
  yield* sql.unsafe(
    `create table if not exists ${tableOf(vectorSet)} (id bigint primary key, embedding bytea not null, xid xid8 ` +
      `not null default pg_current_xact_id())`
  ).unprepared
  yield* sql.unsafe(`create index if not exists ${tableOf(vectorSet)}_xid on ${tableOf(vectorSet)} (xid)`).unprepared
})

const write = Effect.fnUntraced(function* (vectorSet: VectorSet, vectors: ReadonlyArray<StoredVector>) {
  if (vectors.length === 0) return
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into ${sql(tableOf(vectorSet))} (id, embedding)
    select id, decode(embedding, 'base64')
    from jsonb_to_recordset(${rowsOf(vectors)}::jsonb) as r (id bigint, embedding text)
    order by id on conflict (id) do update set embedding = excluded.embedding, xid = pg_current_xact_id()`
})

/**
 * The candidates that pass the condition, in their order. One row comes back, of their places: as many rows as hits
 * would cost this process more than finding the nearest does.
 */
const passing = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  similar: ReadonlyArray<Similar>,
  condition: NearestQuery["condition"]
) {
  const ids = `{${similar.map(({ id }) => id).join(",")}}`
  const [row] = yield* sql<{ count: number; places: string | null }>`select count(*)::int as count,
    string_agg(v.at::text, ',') as places
    from unnest(${ids}::int8[]) with ordinality v (id, at) where ${condition("v.id")}`
  if (row?.count === similar.length) return similar
  const places = new Set((row?.places ?? "").split(","))
  return similar.filter((_, index) => places.has(String(index + 1)))
})

/** The candidates that are publicly visible, in their order. */
const notHidden = Effect.fnUntraced(function* (
  similar: ReadonlyArray<Similar>,
  visible: NonNullable<NearestQuery["visible"]>
) {
  const seen = yield* visible(similar.map(({ id }) => id))
  if (seen.length === similar.length) return similar
  const ids = new Set(seen)
  return similar.filter(({ id }) => ids.has(id))
})

const fresh = (copies: VectorCopies["Service"], vectorSet: VectorSet) =>
  Effect.flatMap(monotonicMillis, (now) => copies.asOf(vectorSet, now - freshMillis))

const nearest = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  copies: VectorCopies["Service"],
  vectorSet: VectorSet,
  sought: NearestQuery
) {
  const { condition, distinguishing = false, filtered, limit, vector: given, visible: among } = sought
  const vectors = yield* fresh(copies, vectorSet)
  const vector = distinguishing ? vectors.distinguishing(given) : given
  const background = distinguishing ? vectors.background(vector) : undefined
  const read = Effect.fnUntraced(function* (count: number) {
    const similar = vectors.nearest(vector, count)
    const visible = yield* filtered || among === undefined
      ? passing(sql, similar, condition)
      : notHidden(similar, among)
    return {
      hits: toHits(visible.slice(0, limit), background),
      isAll: similar.length < count
    }
  })
  // Planned for the filters' own values each time: a plan for any of them takes ten times as long.
  const passingIds = Effect.map(
    sql<{ ids: string | null }>`select string_agg(id::text, ',') as ids from (select r.id from catalog_resources r
      where ${condition()} limit ${sql.literal(String(amongMax))}) found`.unprepared,
    ([row]) => row?.ids?.split(",").map(BigInt) ?? []
  )
  const exact = (known?: ReadonlyArray<bigint>) =>
    Effect.map(known === undefined ? passingIds : Effect.succeed(known), (ids) =>
      toHits(vectors.nearest(vector, limit, ids), background)
    )
  return yield* refineSearch(sought, read, exact)
}, withSpanIfSampled("ScanIndex.nearest"))

export const scanIndex = Layer.effect(
  VectorIndex,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const copies = yield* VectorCopies
    const { asOf, forget } = copies
    const withSql = <A>(effect: Effect.Effect<A, SqlError.SqlError, SqlClient.SqlClient>) =>
      Effect.provideService(effect, SqlClient.SqlClient, sql)
    const now = (vectorSet: VectorSet) =>
      Effect.asVoid(Effect.flatMap(monotonicMillis, (time) => asOf(vectorSet, time)))
    return VectorIndex.of({
      prepare: (vectorSet) => withSql(prepare(vectorSet)),
      write: (vectorSet, vectors) => withSql(write(vectorSet, vectors)),
      finish: now,
      warm: now,
      nearest: (vectorSet, sought) => nearest(sql, copies, vectorSet, sought),
      edition: (vectorSet) => Effect.map(fresh(copies, vectorSet), ({ edition }) => edition),
      drop: Effect.fnUntraced(function* (vectorSet) {
        forget(vectorSet)
        yield* sql.unsafe(`drop table if exists ${tableOf(vectorSet)}`).unprepared
      })
    })
  })
).pipe(Layer.provide(VectorCopies.layer))
