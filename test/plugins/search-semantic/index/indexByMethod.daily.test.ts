// The method that finds the nearest vectors. Changing it changes the generation: the current generation keeps its
// method until the new one is complete.
import { Context, Effect, Layer } from "effect"
import { describe, expect, it } from "vitest"
import { DatabaseSource } from "../../../../kernel/database/DatabaseSource.ts"
import { newMethod } from "../../../../plugins/search-semantic/index/indexByMethod.ts"
import { startEmbeddings } from "../../../relevance/embeddings.ts"
import { ingest } from "../../../relevance/ingest.ts"
import { embedTopic, topicResource } from "../../../relevance/topics.ts"
import { databaseKinds, migratedSourceLayer } from "../../../support/databases.ts"
import { eventually } from "../../../support/eventually.ts"
import type { Facilitator } from "../../../support/facilitator.ts"
import { plugins, replicaOf } from "../replicaOf.ts"

const count = 160

it.each([
  ["auto", "server", true, "hnsw"],
  ["auto", "server", false, "scan"],
  ["auto", "embedded", true, "scan"],
  ["hnsw", "embedded", true, "hnsw"],
  ["hnsw", "server", false, "scan"],
  ["scan", "server", true, "scan"]
] as const)("%s on a database that is %s (pgvector: %s) selects %s", (asked, database, hasPgvector, method) => {
  expect(newMethod(asked, database, hasPgvector)).toBe(method)
})

/** An embedded database that several facilitators may open. */
const sharedDatabase = Effect.gen(function* () {
  const source = Context.get(yield* Layer.build(migratedSourceLayer("pglite", plugins)), DatabaseSource)
  return Layer.succeed(DatabaseSource, { open: Effect.succeed(yield* source.open) })
})

const generations = ({ sql }: Facilitator) =>
  Effect.map(
    sql<{ method: string; status: string }>`select method, status from search_semantic_generations order by id`,
    (rows) => rows.map(({ method, status }) => `${method} ${status}`).join()
  )

const typeOf = ({ sql }: Facilitator, generation: number) =>
  Effect.map(
    sql<{ type: string }>`select format_type(atttypid, atttypmod) as type from pg_attribute
      where attrelid = ${`search_semantic_vectors_${generation}`}::regclass and attname = 'embedding'`,
    ([column]) => column?.type
  )

/** Errors of a response: vectors indexed by one method cannot be found by the other. */
const askedOf = (facilitator: Facilitator) =>
  Effect.map(facilitator.ask("/discovery/search?query=climate&mode=semantic&limit=30"), ({ json, status }) => {
    const found = ((json?.resources ?? []) as ReadonlyArray<{ name: string }>).map(({ name }) =>
      Number(name.split("-")[1])
    )
    const isWhole = status === 200 && json.partialResults === false && found.length === count / 8
    return isWhole && found.every((at) => at % 8 === 0) ? undefined : [status, json?.partialResults, found]
  })

describe.skipIf(!databaseKinds.includes("pglite"))("a change of the vector index method, on pglite", () => {
  it(
    "a method change embeds everything again and switches when complete [S319]",
    () =>
      Effect.runPromise(
        Effect.scoped(
          Effect.gen(function* () {
            const endpoint = yield* startEmbeddings(embedTopic)
            const database = yield* sharedDatabase
            const started = replicaOf(database, endpoint)
            const replica = (index: string, ledgerUrl?: string) =>
              started(["search.semantic.model=one", `search.semantic.index=${index}`], ledgerUrl)
            const old = yield* replica("hnsw")
            yield* old.publishedBy(
              ingest(
                old.sql,
                Array.from({ length: count }, (_, at) => topicResource(at))
              )
            )
            yield* eventually(Effect.map(askedOf(old), (wrong) => wrong === undefined))
            expect(yield* generations(old)).toBe("hnsw active")
            expect(yield* typeOf(old, 1)).toBe("vector(16)")

            endpoint.fault.current = "status"
            const next = yield* replica("auto", old.ledgerUrl)
            yield* eventually(Effect.map(generations(old), (all) => all === "hnsw active,scan building"))
            // The provider is unavailable: this replica has the query cached.
            expect(yield* askedOf(old)).toBeUndefined()
            endpoint.fault.current = "none"

            const wrong: Array<unknown> = []
            const load = (facilitator: Facilitator) =>
              Effect.forever(
                Effect.tap(askedOf(facilitator), (one) =>
                  Effect.sync(() => {
                    if (one !== undefined) wrong.push(one)
                  })
                )
              )
            yield* eventually(Effect.map(askedOf(next), (one) => one === undefined))
            yield* Effect.forEach([old, next], (facilitator) => Effect.forkScoped(load(facilitator)))
            yield* eventually(Effect.map(generations(old), (all) => all === "hnsw retired,scan active"))
            yield* Effect.sleep("1500 millis")
            expect(wrong).toEqual([])
            expect(yield* typeOf(old, 2)).toBe("bytea")
          })
        ) as Effect.Effect<void>
      ),
    240_000
  )
})
