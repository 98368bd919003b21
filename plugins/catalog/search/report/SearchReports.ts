// The routes on search for operators: the state of each branch, which generations of embeddings there were, and which
// searches led to payments. Keyed like all of analytics; nothing of it is in public answers (S168–S177). Queries
// without a result are other callers' words, so only operators see them; conversion covers the payments of all keys.
import { Effect, Option } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import { SqlClient } from "effect/sql"
import { Authentication } from "../../../../kernel/http/Authentication.ts"
import { listed } from "../../../../kernel/http/csv.ts"
import { json, temporarilyUnavailable, unauthorized } from "../../../../kernel/http/httpMiddleware.ts"
import { queryOf, readQuery } from "../../../../kernel/http/readQuery.ts"
import { addRoutes, type Documented, route } from "../../../../kernel/http/Route.ts"
import { type BranchStatus, Search, type SearchBranch, SearchSettings } from "../../contract.ts"
import * as routes from "../../description.ts"
import { readPaging } from "../../discovery/filters.ts"
import { missedSearches } from "./missedSearches.ts"
import { conversion } from "./conversion.ts"
import { staleWhileRevalidate } from "../rank/staleWhileRevalidate.ts"
import type { SearchGenerations, SearchStatus } from "./SearchReportWire.ts"
import type { SearchValues } from "../searchSection.ts"

type Request = HttpServerRequest.HttpServerRequest

/** Facts and impressions that a report on conversion may scan each time it is asked. */
const examinedMax = 100_000n
const off: BranchStatus = { health: "disabled", indexed: 0, generations: [] }
const pagingBounds = { limitDefault: 50, limitMax: 200, clamp: true }
const invalid = (details: ReadonlyArray<string>) => json({ error: "invalid_parameter", details }, { status: 400 })
const share = (part: number, whole: number): number =>
  whole === 0 ? 1 : Math.min(1, Math.round((part / whole) * 10_000) / 10_000)

const statusOf = Effect.fnUntraced(function* (mode: SearchBranch["mode"]) {
  const search = yield* Search
  return yield* search.branches().find((one) => one.mode === mode)?.status ?? Effect.succeed(off)
})

const lexicalOf = ({ lexical }: SearchValues, { health }: BranchStatus) => ({
  provider: "postgresql",
  language: lexical.language,
  weight: lexical.weight,
  candidate_count: lexical.candidate_count,
  ranking: "postgresql_fts_ts_rank_cd",
  health
})

const semanticOf = ({ semantic }: SearchValues, { detail, health, vectorSupport }: BranchStatus) => {
  const isProvided = semantic.provider !== "none"
  return {
    provider: semantic.provider,
    model: isProvided ? semantic.model : null,
    revision: isProvided ? semantic.revision : null,
    dimension: isProvided ? semantic.dimension : null,
    weight: semantic.weight,
    vector_support: vectorSupport ?? false,
    health,
    candidate_count: semantic.candidate_count,
    detail: detail ?? null
  }
}

const embeddedOf = ({ embedded }: SearchValues, { health, indexed }: BranchStatus) => ({
  provider: embedded.provider,
  weight: embedded.weight,
  candidate_count: embedded.candidate_count,
  health,
  indexed
})

const rerankingOf = ({ reranking }: SearchValues) => ({
  provider: reranking.provider,
  model: reranking.provider === "none" ? null : reranking.model,
  top_k: reranking.top_k,
  fallback: "fused_order"
})

const status = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const settings = yield* SearchSettings
  const lexical = yield* statusOf("lexical")
  const semantic = yield* statusOf("semantic")
  const [row] = yield* sql<{ count: number }>`select count(*)::int as count from catalog_resources`
  const resources = row?.count ?? 0
  return json({
    lexical: lexicalOf(settings, lexical),
    embedded: embeddedOf(settings, yield* statusOf("embedded")),
    semantic: semanticOf(settings, semantic),
    reranking: rerankingOf(settings),
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
  } satisfies typeof SearchStatus.Type)
})

const generations = Effect.fnUntraced(function* (request: Request) {
  const { issues: errors, limit, offset } = readPaging(queryOf(request), pagingBounds)
  if (errors.length > 0) return invalid(errors)
  const all = (yield* statusOf("semantic")).generations
  return listed(request, {
    items: all.slice(offset, offset + limit),
    pagination: { limit, offset, total: all.length }
  } satisfies typeof SearchGenerations.Type)
})

/** Hours back from now that a request names; undefined when they are out of bounds. */
const hoursIn = (request: Request): number | undefined => {
  const given = readQuery(routes.conversion.query, queryOf(request)).raw("hours") ?? "24"
  const hours = /^\d{1,3}$/.test(given) ? Number(given) : 0
  return hours < 1 || hours > routes.hoursMax ? undefined : hours
}

const wrongHours = invalid([`hours: 1 to ${routes.hoursMax}`])

const makeMissed = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const read = yield* staleWhileRevalidate(
    "search-reports",
    (key: string) => {
      const [hours, limit, offset] = key.split(" ").map(Number) as [number, number, number]
      return missedSearches(sql, { hours, limit, offset })
    },
    ({ examined }) => examined >= examinedMax
  )
  return Effect.fnUntraced(function* (request: Request) {
    const hours = hoursIn(request)
    if (hours === undefined) return wrongHours
    const { issues: errors, limit, offset } = readPaging(queryOf(request), pagingBounds)
    return errors.length > 0 ? invalid(errors) : listed(request, (yield* read(`${hours} ${limit} ${offset}`)).report)
  })
})

const makeConverted = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const converted = yield* staleWhileRevalidate(
    "conversion-reports",
    (hours: number) => conversion(sql, hours),
    ({ examined }) => examined >= examinedMax
  )
  return Effect.fnUntraced(function* (request: Request) {
    const hours = hoursIn(request)
    return hours === undefined ? wrongHours : json((yield* converted(hours)).report)
  })
})

/** Conversion counts the payments of every key. */
const notOfAll = json(
  { error: "forbidden", details: ["an operator's key, or a key with the scope analytics:all"] },
  { status: 403 }
)

export const addSearchReports = Effect.gen(function* () {
  const callers = yield* Authentication
  const services = yield* Effect.context<Search | SearchSettings | SqlClient.SqlClient>()

  const reported = <E>(
    declared: Documented,
    report: (
      request: Request
    ) => Effect.Effect<HttpServerResponse.HttpServerResponse, E, Search | SearchSettings | SqlClient.SqlClient>
  ) => {
    const refused = (request: Request) => {
      if (declared.callers === "operators") return callers.mayOperate(request) ? undefined : unauthorized
      const reader = callers.reader(request)
      if (Option.isNone(reader)) return unauthorized
      return declared === routes.conversion && reader.value.only !== undefined ? notOfAll : undefined
    }
    return route(declared, (request) => {
      const answer = refused(request)
      if (answer !== undefined) return Effect.succeed(answer)
      return report(request).pipe(
        Effect.provideContext(services),
        Effect.catch((error) => Effect.as(Effect.logError("a report on search failed", error), temporarilyUnavailable))
      )
    })
  }

  yield* addRoutes(routes.reports, [
    reported(routes.status, () => status),
    reported(routes.generations, generations),
    reported(routes.conversion, yield* makeConverted),
    reported(routes.missed, yield* makeMissed)
  ])
})
