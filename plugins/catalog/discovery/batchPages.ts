// Batches concurrent requests for pages of browsing without filters, like `batchBodies.ts`: each page comes from a
// statement that began after its request, on the request's own read target.
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { ReadTarget } from "../../../kernel/database/ReadReplica.ts"
import { batched } from "../../../kernel/database/batched.ts"
import { perReadTarget } from "../../../kernel/database/perReadTarget.ts"
import { Config } from "../Config.ts"
import type { BrowsePosition } from "./BrowsePosition.ts"
import { type Behind, following } from "./conditions.ts"
import { volatileText } from "../store/ResourceWire.ts"
import { type Body, bodyFrom, toBody } from "./batchBodies.ts"

const callsMax = 8

/** Asks for the rows after a position, either among the resources with evidence or among the others. */
export interface PageAsked {
  readonly hasEvidence: boolean
  readonly place: BrowsePosition
  readonly count: number
}

type Bodies = ReadonlyArray<Body>

/** A page as one row: twenty rows of three columns take this process as long as the rest of a page. */
interface PageRow {
  readonly at: number
  readonly ids: string
  readonly documents: string
  readonly volatiles: string
}

/** A separator that occurs in no JSON text. */
const separator = "\u001e"

const bodiesOf = ({ documents, ids, volatiles }: PageRow): Bodies => {
  const [document, volatile] = [documents.split(separator), volatiles.split(separator)]
  return ids.split(",").map((id, at) => toBody({ id: BigInt(id), document: document[at]!, volatile: volatile[at]! }))
}

const writtenOf = (calls: ReadonlyArray<PageAsked>): string =>
  JSON.stringify(
    calls.map(({ place: { asOf, below, first } }, at) => ({
      at,
      as_of: new Date(asOf).toISOString(),
      below: String(below),
      first: first.map(String)
    }))
  )

export const batchPages = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const config = yield* Config
  const [volatile, from] = [sql.literal(volatileText), sql.literal(bodyFrom)]
  const between = sql.literal("E'\\x1e'")
  const behind: Behind = { asOf: sql`asked.as_of`, below: sql`asked.below`, first: sql`asked.first` }

  /** Of pages of one size and tier: the size is part of the text, which is planned for it. */
  const ask = (calls: ReadonlyArray<PageAsked>): Effect.Effect<ReadonlyArray<Bodies>, SqlError.SqlError> => {
    const { count, hasEvidence } = calls[0]!
    return Effect.map(
      sql<PageRow>`select asked.at, string_agg(r.id::text, ',' order by r.id desc) as ids,
          string_agg(r.document, ${between} order by r.id desc) as documents,
          string_agg(${volatile}, ${between} order by r.id desc) as volatiles
        from jsonb_to_recordset(${writtenOf(calls)}::jsonb)
          as asked (at int, as_of timestamptz, below int8, first int8[])
        cross join lateral (
          select r.id from catalog_resources r where ${following(sql, config, hasEvidence, behind, {})}
          order by r.id desc limit ${sql.literal(String(count))}
        ) page join ${from} on r.id = page.id group by asked.at`,
      (rows) => {
        const pages = calls.map((): Bodies => [])
        for (const row of rows) pages[row.at] = bodiesOf(row)
        return pages
      }
    )
  }

  const askAll = Effect.fnUntraced(function* (calls: ReadonlyArray<PageAsked>) {
    const found = new Map<PageAsked, Bodies>()
    const kinds = Map.groupBy(calls, ({ count, hasEvidence }) => `${hasEvidence} ${count}`)
    yield* Effect.forEach(
      kinds.values(),
      (alike) =>
        Effect.map(ask(alike), (bodies) => {
          for (const [at, call] of alike.entries()) found.set(call, bodies[at]!)
        }),
      { concurrency: "unbounded" }
    )
    return calls.map((call) => found.get(call)!)
  })

  const gathering = yield* perReadTarget((source) =>
    batched({
      maxBatchSize: callsMax,
      runBatch: (calls: ReadonlyArray<PageAsked>) => Effect.provideService(askAll(calls), ReadTarget, source)
    })
  )

  return (asked: PageAsked): Effect.Effect<Bodies, SqlError.SqlError> => Effect.flatMap(gathering, (ask) => ask(asked))
})
