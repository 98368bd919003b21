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
import { Config, documentBytesMax } from "../Config.ts"
import { serveBody, volatileText } from "../store/ResourceWire.ts"
import { conditionOf } from "./conditions.ts"

/** Maximum requests of one batch; a request for more resources than are read whole runs its own statement. */
const callsMax = 8
const idsMax = 1_000

/** A page ends after this many bytes of documents; its cursor continues it. */
const pageBytesMax = 8_388_608

/** Number of resources that are read without a count of their bytes: the largest documents do not exceed a page. */
export const wholeMax = (config: Parameters<typeof documentBytesMax>[0]): number =>
  Math.floor(pageBytesMax / documentBytesMax(config))

export interface Body {
  readonly id: bigint
  /** The public body as JSON; empty beyond the bytes of a page. */
  readonly json: string
}

export interface BodyRow {
  readonly id: bigint
  readonly document: string
  readonly volatile: string
}

export const bodyColumns = `r.id, r.document, ${volatileText} as volatile`

/** The same of a page with the bytes of the documents before each. */
export const bodyColumnsWithin = `r.id, case when page.before < ${pageBytesMax} then r.document else '' end as document,
  ${volatileText} as volatile`

export const bodyFrom = "catalog_resources r left join catalog_activity a on a.resource_id = r.id"

export const toBody = ({ document, id, volatile }: BodyRow): Body => ({
  id,
  json: document === "" ? "" : serveBody(document, volatile)
})

/** The bodies before the end of the page by bytes. */
export const withinPage = <A extends Body>(bodies: ReadonlyArray<A>): ReadonlyArray<A> => {
  const end = bodies.findIndex(({ json }) => json === "")
  return end === -1 ? bodies : bodies.slice(0, end)
}

type Ids = ReadonlyArray<bigint>
type Bodies = ReadonlyMap<bigint, Body>

/** The visible ones of these, in their order. */
export const batchBodies = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const config = yield* Config
  const [columns, columnsWithin, from] = [bodyColumns, bodyColumnsWithin, bodyFrom].map((text) => sql.literal(text))

  /** A large request: documents beyond the page's bytes are not read. */
  const askPage = (ids: Ids): Effect.Effect<Bodies, SqlError.SqlError> =>
    Effect.map(
      sql<BodyRow>`select ${columnsWithin} from ${from} join (
          select id, sum(bytes) over (order by place) - bytes as before from (
            select v.id, v.place, octet_length(d.document) as bytes
            from unnest(${`{${ids.join(",")}}`}::int8[]) with ordinality v (id, place)
            join catalog_resources d on d.id = v.id) sized
        ) page on page.id = r.id where ${conditionOf(sql, config, {})}`.unprepared,
      (rows) => new Map(rows.map((row) => [row.id, toBody(row)]))
    )

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
    const bodies = ids.length > wholeMax(config) ? yield* askPage(ids) : yield* (yield* gathering)(ids)
    return ids.flatMap((id) => bodies.get(id) ?? [])
  }, withSpanIfSampled("Catalog.bodies"))
})
