// The routes on search for operators: how each branch stands, which generations of embeddings there were, and which
// searches led to payments. Keyed like all of analytics; nothing of it is in public answers (S168–S177).
import { Effect, Option } from "effect"
import { HttpRouter, type HttpServerRequest } from "effect/http"
import type { SqlClient } from "effect/sql"
import type { Callers } from "../../../kernel/http/Callers.ts"
import { json } from "../../../kernel/http/Guard.ts"
import type { BranchStatus, Search, SearchBranch } from "../contract.ts"
import { readPaging } from "../discovery/filters.ts"
import { queryOf } from "../discovery/publicAnswer.ts"
import { conversion } from "./conversion.ts"
import type { SearchValues } from "./searchSection.ts"

export interface ReportParts {
  readonly sql: SqlClient.SqlClient
  readonly callers: Callers["Service"]
  readonly search: Search["Service"]
  readonly settings: SearchValues
}

const hoursMax = 720
const off: BranchStatus = { health: "disabled", indexed: 0, generations: [] }
const share = (part: number, whole: number): number =>
  whole === 0 ? 1 : Math.min(1, Math.round((part / whole) * 10_000) / 10_000)

export const addSearchReports = Effect.fnUntraced(function* ({ callers, search, settings, sql }: ReportParts) {
  const router = yield* HttpRouter.HttpRouter
  const branch = (mode: SearchBranch["mode"]) =>
    search.branches().find((one) => one.mode === mode)?.status ?? Effect.succeed(off)

  const status = Effect.gen(function* () {
    const lexical = yield* branch("lexical")
    const semantic = yield* branch("semantic")
    const [row] = yield* sql<{ count: number }>`select count(*)::int as count from catalog_resources`
    const resources = row?.count ?? 0
    const provided = settings.semantic.provider !== "none"
    const reranked = settings.reranking.provider !== "none"
    return json({
      lexical: {
        provider: "postgresql",
        language: settings.lexical.language,
        weight: settings.lexical.weight,
        candidate_count: settings.lexical.candidate_count,
        ranking: "postgresql_fts_ts_rank_cd",
        health: lexical.health
      },
      semantic: {
        provider: settings.semantic.provider,
        model: provided ? settings.semantic.model : null,
        revision: provided ? settings.semantic.revision : null,
        dimension: provided ? settings.semantic.dimension : null,
        weight: settings.semantic.weight,
        vector_support: semantic.vectorSupport ?? false,
        health: semantic.health,
        candidate_count: settings.semantic.candidate_count,
        detail: semantic.detail ?? null
      },
      reranking: {
        provider: settings.reranking.provider,
        model: reranked ? settings.reranking.model : null,
        top_k: settings.reranking.top_k,
        fallback: "fused_order"
      },
      rrf_k: settings.rrf_k,
      minimum_relevance_score: settings.minimum_relevance_score,
      active_generation: semantic.generations.find(({ status }) => status === "active") ?? null,
      index_coverage: {
        resources,
        lexical: { indexed: lexical.indexed, share: share(lexical.indexed, resources) },
        semantic: {
          indexed: semantic.indexed,
          share: semantic.health === "disabled" ? 0 : share(semantic.indexed, resources)
        }
      },
      worker: semantic.worker ?? { status: "disabled", queue_depth: 0, dead_letters: 0 }
    })
  })

  const generations = (request: HttpServerRequest.HttpServerRequest) =>
    Effect.gen(function* () {
      const { limit, offset } = readPaging(queryOf(request), { limitDefault: 50, limitMax: 200, clamp: true })
      const all = (yield* branch("semantic")).generations
      return json({ items: all.slice(offset, offset + limit), pagination: { limit, offset, total: all.length } })
    })

  const converted = (request: HttpServerRequest.HttpServerRequest) =>
    Effect.gen(function* () {
      const given = queryOf(request).get("hours") ?? "24"
      const hours = /^\d{1,3}$/.test(given) ? Number(given) : 0
      if (hours < 1 || hours > hoursMax)
        return json({ error: "invalid_parameter", details: [`hours: 1 to ${hoursMax}`] }, { status: 400 })
      return json(yield* conversion(sql, hours))
    })

  const keyed =
    <E, R>(answer: (request: HttpServerRequest.HttpServerRequest) => Effect.Effect<ReturnType<typeof json>, E, R>) =>
    (request: HttpServerRequest.HttpServerRequest) =>
      Option.isNone(callers.identify(request))
        ? Effect.succeed(json({ error: "unauthorized" }, { status: 401, headers: { "www-authenticate": "Bearer" } }))
        : Effect.catch(answer(request), (error) =>
            Effect.as(
              Effect.logError("a report on search failed", error),
              json({ error: "temporarily_unavailable" }, { status: 503, headers: { "retry-after": "1" } })
            )
          )

  yield* router.add(
    "GET",
    "/analytics/v1/search/status",
    keyed(() => status)
  )
  yield* router.add("GET", "/analytics/v1/search/generations", keyed(generations))
  yield* router.add("GET", "/analytics/v1/search/conversion", keyed(converted))
})
