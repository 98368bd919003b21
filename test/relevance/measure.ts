// Measures search as a client sees it: a whole facilitator, the set's resources in its catalog, and each query over
// HTTP with its filters in each mode. In the default configuration, or with the recorded dense ranking behind an
// embeddings endpoint.
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { embeddingText } from "../../plugins/search-semantic/embeddingText.ts"
import type { DatabaseKind } from "../support/databases.ts"
import { startFacilitator } from "../support/facilitator.ts"
import type { Dataset, RelevanceQuery } from "./dataset.ts"
import { recordedVectors, startEmbeddings } from "./embeddings.ts"
import { ingest, listingsOf } from "./ingest.ts"
import { untilIndexed } from "./untilIndexed.ts"

/** `offline`: the default mode without a provider. */
export type Mode = "lexical" | "offline" | "semantic" | "hybrid"

export interface Measured {
  readonly query: RelevanceQuery
  /** Without a provider: no resource clearly answers the query. */
  readonly isNearestOnly?: boolean
  readonly rankings: Readonly<Partial<Record<Mode, ReadonlyArray<string>>>>
}

export const providerSettings = (set: Dataset) =>
  Effect.gen(function* () {
    const byText = new Map(set.resources.map(({ document, name }) => [embeddingText(document), name]))
    const recorded = recordedVectors(set, (text) => byText.get(text))
    const endpoint = yield* startEmbeddings(recorded.embed)
    return [
      "search.semantic.provider=openai",
      "search.semantic.hybrid_wait_ms=5000",
      `search.semantic.url=${endpoint.url}`,
      "search.semantic.model=recorded",
      `search.semantic.dimension=${recorded.dimension}`
    ]
  })

export interface MeasureOptions {
  readonly database?: DatabaseKind
  readonly set?: ReadonlyArray<string>
  /** With the recorded ranking as a provider. */
  readonly provided?: boolean
}

export const measure = (set: Dataset, options: MeasureOptions = {}) =>
  Effect.scoped(
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({
        database: options.database ?? "pglite",
        channels: 1,
        set: [...(options.provided === true ? yield* providerSettings(set) : []), ...(options.set ?? [])]
      })
      yield* facilitator.publishedBy(ingest(facilitator.sql, listingsOf(set)))
      yield* untilIndexed(facilitator, set.resources.length)
      const rank = Effect.fnUntraced(function* (query: RelevanceQuery, mode: Mode) {
        const asked = mode === "offline" ? {} : { mode }
        const parameters = new URLSearchParams({ query: query.query, ...asked, limit: "50", ...query.filters })
        // A branch that is late on a busy machine makes an answer partial; such a query is repeated.
        const { json, status, text } = yield* facilitator.ask(`/discovery/search?${parameters}`).pipe(
          Effect.filterOrFail(
            ({ json }) => json.partialResults === false,
            (answer) => answer
          ),
          Effect.retry({ times: 3 }),
          Effect.catch((answer) => Effect.succeed(answer))
        )
        if (status !== 200 || json.partialResults !== false)
          return yield* Effect.die(new Error(`${query.id} ${mode}: ${status} ${text.slice(0, 200)}`))
        const ranking = (json.resources as ReadonlyArray<{ name: string }>).map(({ name }) => name)
        return { ranking, isNearestOnly: json.nearestOnly === true || ranking.length === 0 }
      })
      const modes: ReadonlyArray<Mode> = options.provided === true ? ["lexical", "semantic", "hybrid"] : ["offline"]
      return yield* Effect.forEach(set.queries, (query): Effect.Effect<Measured> =>
        Effect.map(
          Effect.forEach(modes, (mode) => Effect.map(rank(query, mode), (found) => [mode, found] as const)),
          (found) => ({
            query,
            rankings: Object.fromEntries(found.map(([mode, { ranking }]) => [mode, ranking])),
            isNearestOnly: found.some(([mode, { isNearestOnly }]) => mode === "offline" && isNearestOnly)
          })
        )
      )
    })
  ).pipe(Effect.provide(NodeServices.layer))
