// The quantized copies of vectors that a process keeps in memory. A copy follows its table by transaction ids: rows
// written by a transaction that was open at the last read are read again, so none is missed. The ids belong to one
// cluster. In a database that was restored into another, older rows have ids that lie in the future there and are read
// once, and an older copy is rebuilt. A read of the table belongs to the plugin and not to the search that started it,
// so a search that gives up leaves the result to the others.
import { Context, Deferred, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { QuantizedVectors } from "./QuantizedVectors.ts"
import { type VectorSet, tableOf } from "./VectorIndex.ts"

const pageMax = 5_000
/** A copy of another generation that was not read for this long is dropped. */
const forgottenAfterMillis = 60_000

interface Copy {
  readonly vectors: QuantizedVectors
  /** Transactions below this one had ended at the last read. */
  xid: string
  /** Start of the last read, by `monotonicMillis`: the copy has everything written before. */
  observedAt: number
}

const vectorOf = (bytes: Uint8Array): Float32Array => new Float32Array(bytes.slice().buffer)

/**
 * Reads rows written since the copy's last read, in the order of transactions, which their index serves; in the order
 * of resources the database would read the whole table.
 */
const readInto = Effect.fnUntraced(function* (copy: Copy, vectorSet: VectorSet) {
  const sql = yield* SqlClient.SqlClient
  let from = { xid: copy.xid, id: -1n }
  while (true) {
    const rows = yield* sql<{ id: bigint; embedding: Uint8Array; xid: string }>`select id, embedding, xid::text as xid
      from ${sql(tableOf(vectorSet))} v
      where v.xid >= ${from.xid}::xid8 and (v.xid > ${from.xid}::xid8 or id > ${from.id})
        and (${copy.xid} = '0' or v.xid < pg_snapshot_xmax(pg_current_snapshot()))
      order by v.xid, id limit ${pageMax}`
    copy.vectors.put(rows.map(({ embedding, id }) => ({ id, vector: vectorOf(embedding) })))
    if (rows.length < pageMax) return
    from = rows.at(-1)!
    yield* Effect.yieldNow
  }
})

/** Brings the existing copy up to date. */
const read = Effect.fnUntraced(function* (vectorSet: VectorSet, previous: Copy | undefined) {
  const sql = yield* SqlClient.SqlClient
  const now = yield* monotonicMillis
  const [snapshot] = yield* sql<{ xid: string; next: string }>`select
    pg_snapshot_xmin(pg_current_snapshot())::text as xid, pg_snapshot_xmax(pg_current_snapshot())::text as next`
  const isOfThisCluster = previous !== undefined && BigInt(previous.xid) <= BigInt(snapshot!.next)
  const copy: Copy = isOfThisCluster
    ? previous
    : { vectors: new QuantizedVectors(vectorSet.dimension), xid: "0", observedAt: 0 }
  yield* readInto(copy, vectorSet)
  copy.xid = snapshot!.xid
  copy.observedAt = now
  return copy
})

export class VectorCopies extends Context.Service<
  VectorCopies,
  {
    /** The copy as of this time (`monotonicMillis`) or later. Concurrent callers share one query. */
    readonly asOf: (vectorSet: VectorSet, time: number) => Effect.Effect<QuantizedVectors, SqlError.SqlError>
    readonly forget: (vectorSet: VectorSet) => void
  }
>()("tollkeeper/search-semantic/VectorCopies") {
  static readonly layer = Layer.effect(
    VectorCopies,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Effect.scope
      const copies = new Map<bigint, Copy>()
      const reads = new Map<bigint, Deferred.Deferred<void, SqlError.SqlError>>()

      const renew = Effect.fnUntraced(function* (vectorSet: VectorSet) {
        const copy = yield* Effect.provideService(
          read(vectorSet, copies.get(vectorSet.generation)),
          SqlClient.SqlClient,
          sql
        )
        copies.set(vectorSet.generation, copy)
        // The replica that drops a generation's table is not always this one.
        for (const [generation, { observedAt: seenAt }] of copies)
          if (copy.observedAt - seenAt > forgottenAfterMillis) copies.delete(generation)
      })

      const startRead = (vectorSet: VectorSet) =>
        Effect.suspend(() => {
          const own = Deferred.makeUnsafe<void, SqlError.SqlError>()
          reads.set(vectorSet.generation, own)
          const reading = Effect.onExit(renew(vectorSet), (exit) => {
            reads.delete(vectorSet.generation)
            return Deferred.done(own, exit)
          })
          return Effect.as(Effect.forkIn(reading, scope), own)
        })

      const asOf = Effect.fnUntraced(function* (
        vectorSet: VectorSet,
        time: number
      ): Effect.fn.Return<QuantizedVectors, SqlError.SqlError> {
        while (true) {
          const copy = copies.get(vectorSet.generation)
          if (copy !== undefined && copy.observedAt >= time) return copy.vectors
          // One that is under way may have begun too early; then another follows.
          yield* Deferred.await(reads.get(vectorSet.generation) ?? (yield* startRead(vectorSet)))
        }
      })

      return VectorCopies.of({ asOf, forget: ({ generation }) => copies.delete(generation) })
    })
  )
}
