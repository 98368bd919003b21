// A change of model under load, on one database with two replicas: the old generation answers completely until the new
// one does.
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { randomUUID } from "node:crypto"
import { describe, expect, inject, it } from "vitest"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import { databaseKinds } from "../../support/databases.ts"
import type { Facilitator } from "../../support/facilitator.ts"
import { startEmbeddings } from "../../relevance/embeddings.ts"
import { ingest } from "../../relevance/ingest.ts"
import { embedTopic, topicResource } from "../../relevance/topics.ts"
import { eventually } from "../../support/eventually.ts"
import { replicaOf } from "./replicaOf.ts"

/** A server database that several facilitators may open. */
const sharedDatabase = Effect.gen(function* () {
  const url = new URL(inject("postgresUrl"))
  const admin = (use: (sql: SqlClient.SqlClient) => Effect.Effect<unknown, unknown>) =>
    Effect.orDie(
      Effect.scoped(
        Effect.flatMap(SqlClient.SqlClient, use).pipe(
          Effect.provide(PgClient.layer({ url: Redacted.make(url.href), maxConnections: 1 }))
        )
      )
    )
  const name = `test_${randomUUID().replaceAll("-", "")}`
  yield* Effect.acquireRelease(
    admin((sql) => sql`create database ${sql(name)}`.unprepared),
    () => admin((sql) => sql`drop database ${sql(name)} with (force)`.unprepared)
  )
  const own = new URL(url)
  own.pathname = `/${name}`
  return Layer.succeed(DatabaseSource, {
    open: Effect.succeed({ kind: "server" as const, url: Redacted.make(own.href) })
  })
})

const statuses = (facilitator: Facilitator) =>
  Effect.map(
    facilitator.sql<{
      model: string
      status: string
    }>`select model, status from search_semantic_generations order by id`,
    (rows) => rows.map(({ model, status }) => `${model} ${status}`)
  )

describe.skipIf(!databaseKinds.includes("postgres"))("a new model on postgres", () => {
  it(
    "a new model is embedded beside the old one and switches atomically [S319]",
    () =>
      Effect.runPromise(
        Effect.scoped(
          Effect.gen(function* () {
            const endpoint = yield* startEmbeddings(embedTopic)
            const database = yield* sharedDatabase
            const started = replicaOf(database, endpoint)
            const replica = (model: string, ledgerUrl?: string) =>
              started([`search.semantic.model=${model}`], ledgerUrl)
            // The names rotate the space of the artificial models; the same rotation would hide a mixture.
            expect(embedTopic("climate", "one").indexOf(1)).not.toBe(embedTopic("climate", "next").indexOf(1))
            const old = yield* replica("one")
            const count = 160
            yield* old.publishedBy(
              ingest(
                old.sql,
                Array.from({ length: count }, (_, at) => topicResource(at))
              )
            )
            const filled = (generation: string) =>
              Effect.map(
                old.sql<{
                  count: number
                }>`select count(*)::int as count from ${old.sql(`search_semantic_vectors_${generation}`)}`,
                ([row]) => row!.count === count
              )
            yield* eventually(filled("1"))
            const wrong: Array<unknown> = []
            let asked = 0
            /** Queries one replica the whole time, with cached and with new queries. */
            const load = (replica: Facilitator) =>
              Effect.forever(
                Effect.gen(function* () {
                  asked += 1
                  // In letters, because numbers are words that resources contain.
                  const query =
                    asked % 2 === 0
                      ? "climate"
                      : `climate zz${[...String(asked)].map((digit) => "abcdefghij"[Number(digit)]).join("")}`
                  const mode = asked % 3 === 0 ? "hybrid" : "semantic"
                  const { json, status } = yield* replica.ask(
                    `/discovery/search?query=${encodeURIComponent(query)}&mode=${mode}&limit=30`
                  )
                  // Vectors of one model against a query of the other return another topic.
                  const found = ((json?.resources ?? []) as ReadonlyArray<{ name: string }>).map(({ name }) =>
                    Number(name.split("-")[1])
                  )
                  const isWhole =
                    status === 200 &&
                    json.partialResults === false &&
                    found.filter((at) => at < count).length === count / 8 &&
                    found.every((at) => at % 8 === 0)
                  if (!isWhole) wrong.push([query, mode, status, json?.partialResults, found])
                })
              )
            yield* eventually(
              Effect.map(
                old.ask("/discovery/search?query=climate&mode=semantic"),
                ({ json }) => json.resources.length === count / 8 && json.partialResults === false
              )
            )
            yield* Effect.forEach([0, 1, 2], () => Effect.forkScoped(load(old)))
            const next = yield* replica("next", old.ledgerUrl)
            yield* Effect.forEach([0, 1], () => Effect.forkScoped(load(next)))
            // Listed while the new generation is built: both must index it.
            yield* old.publishedBy(ingest(old.sql, [topicResource(8 * count)]))
            yield* eventually(Effect.map(statuses(old), (all) => all.join() === "one retired,next active"))
            yield* eventually(
              Effect.map(
                Effect.all(
                  [old, next].map((replica) => replica.ask("/discovery/search?query=climate&mode=semantic&limit=30"))
                ),
                (answers) => answers.every(({ json }) => json.resources.length === count / 8 + 1)
              )
            )
            yield* Effect.sleep("1500 millis")
            expect(wrong).toEqual([])
            expect(asked).toBeGreaterThan(50)
            expect([...endpoint.models].toSorted()).toEqual(["next", "one"])
            // The replica with the old settings does not start its generation again.
            yield* Effect.sleep("2500 millis")
            expect(yield* statuses(old)).toEqual(["one retired", "next active"])
          })
        ) as Effect.Effect<void>
      ),
    240_000
  )
})
