// Operators' reports on search: status, generations, conversion. None of them is public.
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { startEmbeddings } from "../../relevance/embeddings.ts"
import { ingest } from "../../relevance/ingest.ts"
import { embedTopic, topicResource } from "../../relevance/topics.ts"
import { eventually } from "../../support/eventually.ts"

const key = "0123456789abcdef"

describe.each(databaseKinds)("reports on search on %s", (database) => {
  it(
    "search reports show the index state, every generation and conversions [S168–S177, S321]",
    () =>
      Effect.runPromise(
        Effect.scoped(
          Effect.gen(function* () {
            const endpoint = yield* startEmbeddings(embedTopic)
            const facilitator = yield* startFacilitator({
              database,
              channels: 1,
              environment: { FACILITATOR_API_KEYS: key },
              set: [
                "search.embedded.provider=none",
                "search.semantic.provider=openai",
                "search.semantic.hybrid_wait_ms=5000",
                `search.semantic.url=${endpoint.url}`,
                "search.semantic.model=one",
                "search.semantic.dimension=16"
              ]
            })
            const read = (path: string) =>
              facilitator.ask(`/analytics/v1/search/${path}`, { headers: { authorization: `Bearer ${key}` } })
            for (const path of ["status", "generations", "conversion"])
              expect((yield* facilitator.ask(`/analytics/v1/search/${path}`)).status).toBe(401)
            yield* facilitator.publishedBy(
              ingest(
                facilitator.sql,
                Array.from({ length: 24 }, (_, at) => topicResource(at))
              )
            )
            yield* eventually(
              Effect.map(
                read("status"),
                ({ json }) =>
                  json.index_coverage.semantic.indexed === 24 &&
                  json.index_coverage.lexical.indexed === 24 &&
                  json.worker.queue_depth === 0
              )
            )
            const status = (yield* read("status")).json
            expect(status).toMatchObject({
              lexical: {
                provider: "postgresql",
                language: "english",
                weight: 0.2,
                candidate_count: 60,
                ranking: "postgresql_fts_ts_rank_cd"
              },
              semantic: {
                provider: "openai",
                model: "one",
                revision: "1",
                dimension: 16,
                weight: 0.8,
                vector_support: database === "pglite",
                health: "ready",
                candidate_count: 60
              },
              reranking: { provider: "none", model: null, top_k: 30, fallback: "fused_order" },
              rrf_k: 5,
              minimum_relevance_score: 0.05,
              active_generation: { model: "one", status: "active" },
              index_coverage: {
                resources: 24,
                lexical: { indexed: 24, share: 1 },
                semantic: { indexed: 24, share: 1 }
              },
              worker: { status: "idle", queue_depth: 0, dead_letters: 0 }
            })
            expect((yield* read("generations")).json).toMatchObject({
              items: [
                {
                  provider: "openai",
                  model: "one",
                  revision: "1",
                  dimension: 16,
                  pooling: "model",
                  normalization: "l2",
                  status: "active",
                  retired_at: null
                }
              ],
              pagination: { limit: 50, offset: 0, total: 1 }
            })

            // Every generation, retired ones too.
            yield* facilitator.sql`insert into search_semantic_generations (fingerprint, provider, url, model, revision,
                dimension, pooling, normalization, query_prefix, document_prefix, method, status, created_at,
                retired_at)
              select 'before', provider, url, 'before', revision, dimension, pooling, normalization, query_prefix,
                document_prefix, method, 'retired', created_at - interval '1 day', created_at
              from search_semantic_generations`
            expect(
              (yield* read("generations")).json.items.map(({ model, status }: any) => `${model} ${status}`).sort()
            ).toEqual(["before retired", "one active"])

            // A branch that has only some of the listings.
            yield* facilitator.sql`update search_lexical_documents set language = 'other'
              where id in (select id from search_lexical_documents order by id limit 6)`
            expect((yield* read("status")).json.index_coverage.lexical).toEqual({ indexed: 18, share: 0.75 })
            yield* facilitator.sql`update search_lexical_documents set language = 'english'`

            // Each branch separately: a fused answer is there as soon as one of them has it.
            let asked = 0
            for (const parameters of ["weather", "weather&mode=lexical", "weather&mode=semantic"])
              yield* eventually(
                Effect.map(facilitator.ask(`/discovery/search?query=${parameters}`), ({ json }) => {
                  asked += 1
                  return json.resources.length === 3
                })
              )
            // Impressions are written asynchronously: pending ones are let in before they are removed.
            yield* eventually(Effect.map(read("conversion"), ({ json }) => json.impressions === String(asked)))
            yield* facilitator.sql`delete from catalog_impressions`
            const shown = (yield* facilitator.ask("/discovery/search?query=weather")).json.resources as ReadonlyArray<{
              resource: string
            }>
            yield* facilitator.ask("/discovery/search?query=music&mode=lexical")
            endpoint.fault.current = "status"
            yield* facilitator.ask("/discovery/search?query=maps")
            yield* eventually(Effect.map(read("conversion"), ({ json }) => json.impressions === "3"))
            expect((yield* read("conversion")).json).toMatchObject({
              impressions_without_results: "0",
              sessions: "1",
              settled_impressions: "0",
              settlements_at_5: "0"
            })
            // As the catalog counts a settlement of the second resource shown.
            yield* facilitator.sql`insert into catalog_sales (transaction, resource_id, at, payer)
              select 'one', id, now(), 'G' from catalog_resources where resource = ${shown[1]!.resource} limit 1`
            expect((yield* read("conversion?hours=1")).json).toMatchObject({
              hours: 1,
              attribution: "resource_within_window",
              impressions: "3",
              sessions: "1",
              verified_impressions: "1",
              settled_impressions: "1",
              settlements_at_1: "0",
              settlements_at_3: "1",
              settlements_at_5: "1",
              byMode: {
                hybrid: {
                  impressions: "2",
                  semantic_fallbacks: "1",
                  reranker_fallbacks: "0",
                  latency_ms: { p50: expect.any(Number) }
                },
                lexical: { impressions: "1", semantic_fallbacks: "0" }
              }
            })
            // The same resources, shown in another day's session, before the attribution window: shown, nothing more.
            yield* facilitator.sql`insert into catalog_impressions (at, session, mode, first_position, resource_ids,
                milliseconds, missing, reranking)
              select at - interval '25 hours', reverse(session), mode, first_position, resource_ids, milliseconds,
                missing, reranking from catalog_impressions`
            expect((yield* read("conversion?hours=720")).json).toMatchObject({
              impressions: "6",
              verified_impressions: "1",
              settled_impressions: "1"
            })
            for (const hours of ["0", "721", "x"])
              expect((yield* read(`conversion?hours=${hours}`)).json.error).toBe("invalid_parameter")
          })
        ) as Effect.Effect<void>
      ),
    240_000
  )
})
