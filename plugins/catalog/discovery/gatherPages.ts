// The pages of browsing without filters that are asked for in one moment, read as one statement, as bodies are
// (`gatherBodies.ts`): each of a statement that began after it was asked for, and from where its request reads.
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { ReadFrom } from "../../../kernel/database/ReadReplica.ts"
import { gathered } from "../../../kernel/database/gathered.ts"
import { perSource } from "../../../kernel/database/perSource.ts"
import { Config } from "../Config.ts"
import type { Place } from "./browsePlace.ts"
import { type Behind, following } from "./conditions.ts"
import { type Body, bodyColumns, bodyFrom, type BodyRow, toBody } from "./gatherBodies.ts"

const callsMax = 8

/** What follows a place, among those that somebody stands for or among the others. */
export interface PageAsked {
  readonly stands: boolean
  readonly place: Place
  readonly count: number
}

type Bodies = ReadonlyArray<Body>

const writtenOf = (calls: ReadonlyArray<PageAsked>): string =>
  JSON.stringify(
    calls.map(({ place: { asOf, below, first } }, at) => ({
      at,
      as_of: new Date(asOf).toISOString(),
      below: String(below),
      first: first.map(String)
    }))
  )

export const gatherPages = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const config = yield* Config
  const [columns, from] = [sql.literal(bodyColumns), sql.literal(bodyFrom)]
  const behind: Behind = { asOf: sql`asked.as_of`, below: sql`asked.below`, first: sql`asked.first` }

  /** Of pages that are alike but for their places: their size is part of the text, which is planned for it. */
  const ask = (calls: ReadonlyArray<PageAsked>): Effect.Effect<ReadonlyArray<Bodies>, SqlError.SqlError> => {
    const { count, stands } = calls[0]!
    return Effect.map(
      sql<BodyRow & { readonly at: number }>`select asked.at, ${columns}
        from jsonb_to_recordset(${writtenOf(calls)}::jsonb)
          as asked (at int, as_of timestamptz, below int8, first int8[])
        cross join lateral (
          select r.id from catalog_resources r where ${following(sql, config, stands, behind, {})}
          order by r.id desc limit ${sql.literal(String(count))}
        ) page join ${from} on r.id = page.id order by r.id desc`,
      (rows) => {
        const bodies = calls.map((): Array<Body> => [])
        for (const row of rows) bodies[row.at]!.push(toBody(row))
        return bodies
      }
    )
  }

  const askAll = Effect.fnUntraced(function* (calls: ReadonlyArray<PageAsked>) {
    const found = new Map<PageAsked, Bodies>()
    const kinds = Map.groupBy(calls, ({ count, stands }) => `${stands} ${count}`)
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

  const gathering = yield* perSource((source) =>
    gathered({
      callsMax,
      run: (calls: ReadonlyArray<PageAsked>) => Effect.provideService(askAll(calls), ReadFrom, source)
    })
  )

  return (asked: PageAsked): Effect.Effect<Bodies, SqlError.SqlError> => Effect.flatMap(gathering, (ask) => ask(asked))
})
