// The queue of embeddings: a text that cannot be embedded is skipped and does not delay others.
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { startEmbeddings } from "../../relevance/embeddings.ts"
import { ingest } from "../../relevance/ingest.ts"
import { embedTopic, topicResource } from "../../relevance/topics.ts"
import { eventually } from "../../support/eventually.ts"

describe.each(databaseKinds)("the queue of embeddings on %s", (database) => {
  it(
    "a text that cannot be embedded is set aside after its attempts",
    () =>
      Effect.runPromise(
        Effect.scoped(
          Effect.gen(function* () {
            const endpoint = yield* startEmbeddings((text, model) =>
              text.includes("poison") ? Array.from({ length: 16 }, () => 0) : embedTopic(text, model)
            )
            const facilitator = yield* startFacilitator({
              database,
              channels: 1,
              set: [
                "search.semantic.provider=openai",
                "search.semantic.hybrid_wait_ms=5000",
                `search.semantic.url=${endpoint.url}`,
                "search.semantic.model=one",
                "search.semantic.dimension=16",
                "search.semantic.attempts=2"
              ]
            })
            yield* facilitator.publishedBy(
              ingest(facilitator.sql, [topicResource(0), topicResource(1, { description: "poison" }), topicResource(2)])
            )
            yield* eventually(
              Effect.map(
                facilitator.sql<{
                  id: bigint
                  state: string
                  attempts: number
                }>`select id, state, attempts from search_semantic_jobs`,
                (jobs) =>
                  jobs.length === 1 && jobs[0]!.id === 2n && jobs[0]!.state === "dead" && jobs[0]!.attempts === 2
              )
            )
            const found = Effect.map(
              facilitator.ask("/discovery/search?query=climate&mode=semantic"),
              ({ json }) => json.resources.map(({ name }: { name: string }) => name) as ReadonlyArray<string>
            )
            yield* eventually(Effect.map(found, (names) => names.join() === "resource-0"))
            // Cached rankings expire when vectors are stored, in whatever index they are.
            const stored = Effect.map(
              facilitator.sql<{ stored: bigint }>`select stored from search_semantic_generations`,
              ([row]) => row!.stored
            )
            const before = yield* stored
            expect(before).toBeGreaterThan(0n)
            // A change of the resource gives it another attempt.
            yield* facilitator.sql`update catalog_resources set declaration = jsonb_set(declaration,
              '{about,description}', '"weather"'), version = 2 where id = 2`
            yield* facilitator.publishedBy(facilitator.sql`insert into kernel_facts (type, version, subject, data)
              values ('catalog.changed', 1, '2', '{}')`)
            yield* eventually(
              Effect.map(facilitator.sql`select 1 from search_semantic_jobs`, (jobs) => jobs.length === 0)
            )
            expect(yield* stored).toBe(before + 1n)
            yield* eventually(Effect.map(found, (names) => names.includes("resource-1")))
          })
        ) as Effect.Effect<void>
      ),
    240_000
  )
})
