// Reads the bodies of public resources for many requests in one batch; requests that arrive while a statement runs go
// into the next one. A statement costs this process as much as twenty bodies do, and concurrent requests mostly ask for
// the same ones. Each request's bodies come from a statement that began after the request, so a resource that was
// hidden before is not shown. They come from the request's own read target, the replica or the primary.
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { ReadTarget } from "../../../kernel/database/ReadReplica.ts"
import { batched } from "../../../kernel/database/batched.ts"
import { perReadTarget } from "../../../kernel/database/perReadTarget.ts"
import { withSpanIfSampled } from "../../../kernel/effect/withSpanIfSampled.ts"
import { Config } from "../Config.ts"
import { serveBody, volatileText } from "../store/ResourceWire.ts"
import { conditionOf } from "./conditions.ts"

/**
 * Maximum requests of one batch, and maximum resources of one batched request; a larger request runs its own statement.
 */
const callsMax = 8
const batchedMax = 50
/** Resources of one request. */
const idsMax = 1_000

export interface Body {
  readonly id: bigint
  /** The public body as JSON. */
  readonly json: string
}

export interface BodyRow {
  readonly id: bigint
  readonly document: string
  readonly volatile: string
}

export const bodyColumns = `r.id, r.document, ${volatileText} as volatile`

export const bodyFrom = "catalog_resources r left join catalog_activity a on a.resource_id = r.id"

export const toBody = ({ document, id, volatile }: BodyRow): Body => ({ id, json: serveBody(document, volatile) })

type Ids = ReadonlyArray<bigint>
type Bodies = ReadonlyMap<bigint, Body>

/** The visible ones of these, in their order. */
export const batchBodies = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const config = yield* Config
  const [columns, from] = [sql.literal(bodyColumns), sql.literal(bodyFrom)]

  const ask = (ids: Ids): Effect.Effect<Bodies, SqlError.SqlError> =>
    Effect.map(
      sql<BodyRow>`select ${columns} from ${from} where r.id = any(${`{${ids.join(",")}}`}::int8[])
        and ${conditionOf(sql, config, {})}`,
      (rows) => new Map(rows.map((row) => [row.id, toBody(row)]))
    )

  const gathering = yield* perReadTarget((source) =>
    batched({
      maxBatchSize: callsMax,
      runBatch: (calls: ReadonlyArray<Ids>) =>
        ask([...new Set(calls.flat())]).pipe(
          Effect.map((bodies) => calls.map(() => bodies)),
          Effect.provideService(ReadTarget, source)
        )
    })
  )

  return Effect.fnUntraced(function* (asked: Ids) {
    const ids = asked.slice(0, idsMax)
    if (ids.length === 0) return []
    const bodies = ids.length > batchedMax ? yield* ask(ids) : yield* (yield* gathering)(ids)
    return ids.flatMap((id) => bodies.get(id) ?? [])
  }, withSpanIfSampled("Catalog.bodies"))
})
