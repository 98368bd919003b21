// The default search branch by meaning: from the table of words, without a key, a provider or a download. It is kept in
// step like the lexical index: a first run over the catalog, resumed where it stopped, and then the catalog's facts.
// Until the first run is complete it does not answer. It provides similar words to the other branches.
import { Effect, Exit, Layer } from "effect"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Health } from "../../../kernel/health/Health.ts"
import {
  Catalog,
  changedResources,
  type Hit,
  isFiltered,
  Search,
  type SearchRequest,
  SearchSettings
} from "../../catalog/contract.ts"
import { VectorIndex } from "../index/VectorIndex.ts"
import { queryMeaning } from "./textVector.ts"
import { wordVectorSet, WordVectors } from "./WordVectors.ts"
import { LoadedWordTable } from "./WordTable.ts"

const batchMax = 500
/** Mean word vectors are never orthogonal: similarity up to this is not evidence. */
const likenessMin = 0.2
/** Hits below this share of the best hit's relevance share only the similarity of any two texts. */
const relevanceMin = 0.4

const startIndexing = Effect.gen(function* () {
  const catalog = yield* Catalog
  const facts = yield* Facts
  const vectors = yield* WordVectors

  const build = Effect.gen(function* () {
    let { complete, scanned } = yield* vectors.state
    while (!complete) {
      const documents = yield* catalog.scan({ after: scanned, limit: batchMax })
      yield* vectors.write(documents)
      scanned = documents.at(-1)?.id ?? scanned
      complete = documents.length < batchMax
      yield* vectors.scannedTo(scanned, complete)
      if (!complete) continue
      yield* Effect.logInfo("search_ready").pipe(Effect.annotateLogs({ event: "search_ready", branch: "embedded" }))
    }
  })

  yield* reconciler({ id: "search-embedded-index", every: "30 seconds", turn: build })
  yield* facts.consume({
    consumer: "search-embedded",
    batchMax,
    handle: Effect.fnUntraced(function* (batch) {
      const ids = changedResources(batch)
      if (ids.length > 0) yield* vectors.write(yield* catalog.documents(ids))
    })
  })
})

/**
 * Similarity as relevance; words of the query outside of the table count as missing. Also reports hits that do not
 * answer, if their prominence is known.
 */
const relevant = (hits: ReadonlyArray<Hit>, known: number): ReadonlyArray<Hit> => {
  const verified = hits.map((hit) => ({
    ...hit,
    relevance: Math.max(0, (known * hit.score - likenessMin) / (1 - likenessMin))
  }))
  const least = relevanceMin * Math.max(0, ...verified.map(({ relevance }) => relevance))
  return verified.flatMap((hit) => {
    if (hit.relevance > 0 && hit.relevance >= least) return [hit]
    return hit.prominence === undefined ? [] : [{ ...hit, relevance: 0, isAside: true }]
  })
}

const makeSearch = Effect.gen(function* () {
  const catalog = yield* Catalog
  const index = yield* VectorIndex
  const { table } = yield* LoadedWordTable
  const { state } = yield* WordVectors
  // Whether all resources have been read moves once: one question a second.
  const isComplete = yield* Effect.cachedWithTTL(
    Effect.map(state, ({ complete }) => complete),
    (exit) => (Exit.isSuccess(exit) && exit.value ? "1 second" : 0)
  )
  return Effect.fnUntraced(
    function* ({ few, filters, limit, query, snapshot }: SearchRequest) {
      const meaning = queryMeaning(yield* table, query)
      if (meaning === undefined) return []
      if (!(yield* isComplete)) return yield* Effect.fail({ message: "the vectors of words are not complete yet" })
      const hits = yield* index.nearest(wordVectorSet, {
        vector: meaning.vector,
        distinguishing: true,
        limit,
        few,
        filtered: isFiltered(filters),
        visible: (ids) => catalog.visible(ids, snapshot),
        condition: (id) => catalog.condition(filters, { ...(id === undefined ? {} : { id }), snapshot })
      })
      return relevant(hits, meaning.known)
    },
    Effect.mapError(({ message }) => ({ _tag: "BranchFailed" as const, message }))
  )
})

const report = Effect.gen(function* () {
  const { state } = yield* WordVectors
  return yield* Effect.match(state, {
    onFailure: () => ({ state: "degraded" as const, detail: "the vectors cannot be read" }),
    onSuccess: ({ complete, scanned }) =>
      complete
        ? { state: "ready" as const }
        : { state: "degraded" as const, detail: `the word vectors are being built, ${scanned} so far` }
  })
})

const registered = Effect.gen(function* () {
  const { table } = yield* LoadedWordTable
  const services = yield* Effect.context<WordVectors>()
  const search = yield* Search
  const health = yield* Health
  const vectors = yield* WordVectors
  const { embedded } = yield* SearchSettings
  yield* startIndexing
  yield* search.registerSimilarTerms((word, likenessMin) =>
    Effect.map(table, (words) => words.alike(word, likenessMin))
  )
  yield* search.register({
    mode: "embedded",
    weight: embedded.weight,
    candidates: embedded.candidate_count,
    timeoutMillis: embedded.timeout_ms,
    search: yield* makeSearch,
    edition: (yield* VectorIndex).edition(wordVectorSet, 0n),
    status: Effect.gen(function* () {
      const { state, ...detail } = yield* Effect.provideContext(report, services)
      return { health: state, ...detail, indexed: yield* vectors.count, generations: [] }
    })
  })
  yield* health.registerSearch("embedded", Effect.provideContext(report, services))
})

/** Over an index that scans vectors in this process's memory. */
export const embeddedBranch = Layer.effectDiscard(registered).pipe(
  Layer.provide(WordVectors.layer),
  Layer.provide(LoadedWordTable.layer)
)
