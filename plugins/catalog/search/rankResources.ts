// One ranking: the branches that a mode asks for run side by side, each with its deadline; their ranks are fused,
// perhaps reranked, and weighed by the resources' own signals. A branch that is off, late or failed is missing, and its
// absence is told; when all that were asked are missing, whatever else is on answers instead (S128–S130, decisions 5).
import { Effect, Option, type Redacted } from "effect"
import type { HttpClient } from "effect/http"
import type { SqlClient, SqlError } from "effect/sql"
import type { Catalog, Filters, Hit, Search, SearchBranch, SearchMode } from "../contract.ts"
import { type Fused, fuse, type Ranked } from "./fuse.ts"
import { rerank } from "./rerank.ts"
import type { SearchValues } from "./searchSection.ts"
import { makeApplySignals, type Weighed } from "./signals.ts"

export interface RankRequest {
  readonly query: string
  readonly mode: SearchMode
  readonly filters: Filters
  readonly snapshot: bigint
  /** Hits wanted at most. */
  readonly window: number
}

export interface Ranking {
  /** Best first. */
  readonly hits: ReadonlyArray<Weighed>
  /** Some branch gave as many hits as it was asked for: there may be more. */
  readonly more: boolean
  /** Branches that the mode asks for and that did not answer. */
  readonly missing: ReadonlyArray<SearchBranch["mode"]>
  readonly reranking: "off" | "used" | "failed"
}

export interface RankParts {
  readonly sql: SqlClient.SqlClient
  readonly catalog: Catalog["Service"]
  readonly registry: Search["Service"]
  readonly settings: SearchValues
  readonly client: HttpClient.HttpClient
  readonly rerankingKey: Option.Option<Redacted.Redacted>
}

interface Answered {
  readonly branch: SearchBranch
  readonly asked: number
  readonly hits: ReadonlyArray<Hit>
}

const wantedBy = (mode: SearchMode): ReadonlyArray<SearchBranch["mode"]> =>
  mode === "hybrid" ? ["lexical", "semantic"] : [mode]

export const makeRankResources = ({ catalog, client, registry, rerankingKey, settings, sql }: RankParts) => {
  const applySignals = makeApplySignals(sql, settings)

  const askOne = (branch: SearchBranch, request: RankRequest, asked: number): Effect.Effect<Answered | undefined> =>
    branch.search({ query: request.query, filters: request.filters, snapshot: request.snapshot, limit: asked }).pipe(
      Effect.timeout(branch.timeoutMillis),
      Effect.map((hits): Answered => ({ branch, asked, hits })),
      Effect.catchCause((cause) =>
        Effect.as(Effect.logWarning(`the ${branch.mode} branch of search did not answer`, cause), undefined)
      ),
      Effect.withSpan(`search.${branch.mode}`)
    )

  const ask = Effect.fnUntraced(function* (branches: ReadonlyArray<SearchBranch>, request: RankRequest) {
    // Alone, a branch gives the whole window; fused, each gives its candidates, or more when the first window was not
    // enough.
    const asked = (branch: SearchBranch) =>
      branches.length === 1
        ? request.window
        : Math.max(branch.candidates, request.window > settings.first_window ? request.window : 0)
    const answers = yield* Effect.forEach(branches, (branch) => askOne(branch, request, asked(branch)), {
      concurrency: "unbounded"
    })
    return answers.filter((answer) => answer !== undefined)
  })

  const reranked = Effect.fnUntraced(function* (
    query: string,
    hits: ReadonlyArray<Fused>
  ): Effect.fn.Return<Pick<Ranking, "hits" | "reranking">, SqlError.SqlError> {
    if (settings.reranking.provider === "none" || hits.length < 2) return { hits, reranking: "off" }
    const top = hits.slice(0, settings.reranking.top_k)
    const byId = new Map(top.map((hit) => [hit.id, hit]))
    const documents = yield* catalog.documents(top.map(({ id }) => id))
    return yield* rerank(client, settings.reranking, rerankingKey, query, documents).pipe(
      Effect.map((order) => {
        const ids = order.map((index) => documents[index]!.id)
        const scores = top.map(({ score }) => score)
        // The reranker gives the order, and the fused scores are dealt out again in it: what follows weighs them as
        // before.
        const first = ids.map((id, at) => ({ ...byId.get(id)!, score: scores[at]! }))
        const gone = top.filter(({ id }) => !ids.includes(id))
        return { hits: [...first, ...gone, ...hits.slice(top.length)], reranking: "used" as const }
      }),
      Effect.catch((error) => Effect.as(Effect.logWarning(error.message), { hits, reranking: "failed" as const }))
    )
  })

  return Effect.fn("Catalog.rank")(function* (request: RankRequest): Effect.fn.Return<Ranking, SqlError.SqlError> {
    const present = registry.branches()
    const wanted = wantedBy(request.mode)
    const asked = present.filter(({ mode }) => wanted.includes(mode))
    const first = yield* ask(asked, request)
    const answered =
      first.length > 0
        ? first
        : yield* ask(
            present.filter(({ mode }) => !wanted.includes(mode)),
            request
          )
    const branches = answered.map(({ branch, hits }): Ranked => ({
      mode: branch.mode,
      weight: Math.max(branch.weight, Number.EPSILON),
      hits
    }))
    const fused = fuse(branches, { k: settings.rrf_k, relevanceMin: settings.minimum_relevance_score })
    const { hits, reranking } = yield* reranked(request.query, fused)
    return {
      hits: (yield* applySignals(hits)).slice(0, request.window),
      more: answered.some(({ asked, hits }) => hits.length >= asked) || fused.length > request.window,
      missing: wanted.filter((mode) => !answered.some(({ branch }) => branch.mode === mode)),
      reranking
    }
  })
}
