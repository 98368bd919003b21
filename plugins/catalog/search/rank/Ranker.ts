// One ranking: the branches that a mode asks for run side by side, each with its deadline; their ranks are fused,
// perhaps reranked, and weighed by the resources' own signals. A late or failed branch counts as missing; a branch that
// the caller's mode needs but that is off counts as unprovided. Either makes the answer partial; when all that were
// asked are missing or off, any other branch that is on answers instead (S128–S130, rules 5). A flood of claims that
// fills a branch's candidates cannot hide listings with evidence: the branch is asked once more, only for those.
import { Context, Effect, Fiber, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { withSpanIfSampled } from "../../../../kernel/effect/withSpanIfSampled.ts"
import {
  Catalog,
  confidentRelevance,
  type Filters,
  type Hit,
  isFiltered,
  Search,
  type SearchBranch,
  type SearchMode,
  type SearchRequest,
  SearchSettings
} from "../../contract.ts"
import { countWords, type Fused, fuse, isAnyFitting, hasConfidentBranch, type Ranked, scoredAmong } from "./fuse.ts"
import { type Fit, fitOf, fitCache } from "./fitCache.ts"
import { RareFilters } from "./RareFilters.ts"
import { Reranker } from "./Reranker.ts"
import { established, ResourceSignals } from "./ResourceSignals.ts"
import { consideredMax, type Weighed } from "./signals.ts"
import type { Intent } from "../readIntent.ts"
import { pageSize } from "./spreadSellers.ts"

export interface RankRequest {
  readonly query: string
  readonly mode: SearchMode
  readonly isModeAsked: boolean
  readonly filters: Filters
  readonly prefers: Intent["prefers"]
  readonly snapshot: bigint
  readonly window: number
}

export interface Ranking {
  /** Best first. */
  readonly hits: ReadonlyArray<Weighed>
  /** Some hit counts as an answer; otherwise the hits are merely the nearest, and few. */
  readonly isAnswered: boolean
  /** A branch returned as many hits as requested, so there may be more. */
  readonly more: boolean
  /** Branches that are on, that the mode asks for and that did not answer. */
  readonly missing: ReadonlyArray<SearchBranch["mode"]>
  /** Branches that the caller's mode needs and that are off. */
  readonly unprovided: ReadonlyArray<SearchBranch["mode"]>
  readonly reranking: "off" | "used" | "failed"
}

/** A request, with the one read of the resources that pass its filters; the branches share it. */
type Sought = RankRequest & Pick<SearchRequest, "few">

interface Answered {
  readonly branch: SearchBranch
  readonly asked: number
  readonly hits: ReadonlyArray<Hit>
}

/**
 * The branches that are on and answer a mode; if none of its own is on, all others. The provider's semantic branch is
 * preferred if there is one; a hybrid search also asks the embedded one.
 */
export const branchesOf = (
  mode: SearchMode,
  present: ReadonlyArray<Pick<SearchBranch, "mode">>
): ReadonlyArray<SearchBranch["mode"]> => {
  const on = present.map((branch) => branch.mode)
  const meaning = on.includes("semantic") ? "semantic" : "embedded"
  const own = { lexical: ["lexical"], semantic: [meaning], hybrid: ["lexical", "semantic", "embedded"] }[mode]
  const answering = on.filter((one) => own.includes(one))
  return answering.length > 0 ? answering : on
}

/** The branches that a mode promises. The built-in word vectors do not count as a model. */
const promised = { lexical: ["lexical"], semantic: ["semantic"], hybrid: ["lexical", "semantic"] } as const

/**
 * The branches that the caller's mode needs and that are off. The default mode uses the branches that are on, so it
 * needs none.
 */
const unprovidedOf = (
  { isModeAsked, mode }: Pick<RankRequest, "isModeAsked" | "mode">,
  present: ReadonlyArray<Pick<SearchBranch, "mode">>
): ReadonlyArray<SearchBranch["mode"]> =>
  isModeAsked ? promised[mode].filter((one) => !present.some((branch) => branch.mode === one)) : []

const askOne = (
  branch: SearchBranch,
  { few, filters, query, snapshot }: Sought,
  asked: number,
  isAlone: boolean
): Effect.Effect<Answered | undefined> =>
  branch.search({ query, filters, snapshot, few, limit: asked, isAlone }).pipe(
    Effect.timeout(branch.timeoutMillis),
    Effect.map((hits): Answered => ({ branch, asked, hits })),
    Effect.catchCause((cause) =>
      Effect.as(Effect.logWarning(`the ${branch.mode} branch of search did not answer`, cause), undefined)
    ),
    withSpanIfSampled(`search.${branch.mode}`)
  )

const foundBy = ({ hits }: Answered): number => hits.filter(({ isAside }) => isAside !== true).length

const toRanked = ({ branch, hits }: Answered): Ranked => ({
  mode: branch.mode,
  weight: Math.max(branch.weight, Number.EPSILON),
  hits
})

/** Hits that a first page ranks and its cursor carries; beyond it, a fused answer asks for more candidates. */
export const firstWindow = 60
/** Hits of one search that paging can reach. */
export const windowMax = 1_000

/** The branches' answers, asked concurrently. */
const askAll = Effect.fnUntraced(function* (branches: ReadonlyArray<SearchBranch>, request: Sought) {
  // A single branch returns the whole window; fused branches return their candidates each, or more if the first window
  // was not enough.
  const asked = (branch: SearchBranch) =>
    branches.length === 1
      ? request.window
      : Math.max(branch.candidates, request.window > firstWindow ? request.window : 0)
  const answers = yield* Effect.forEach(
    branches,
    (branch) => askOne(branch, request, asked(branch), branches.length === 1),
    {
      concurrency: "unbounded"
    }
  )
  return answers.filter((answer) => answer !== undefined)
})

/** The given resources that pass a request's filters. */
type Passing = (ids: ReadonlyArray<bigint>, request: Sought) => Effect.Effect<ReadonlySet<bigint>, SqlError.SqlError>

/** A branch with a full answer is asked again if fewer of its first hits have evidence. */
const evidencedMin = pageSize

interface Evidenced {
  readonly answered: ReadonlyArray<Answered>
  /** Hits with evidence, from the separate request for them. */
  readonly evidenced: ReadonlySet<bigint>
}

const withHits = (answer: Answered, added: ReadonlyArray<Hit>): Answered => {
  if (added.length === 0) return answer
  const found = new Set(answer.hits.map(({ id }) => id))
  const hits = [...answer.hits, ...added.filter(({ id }) => !found.has(id))]
  return { ...answer, hits: hits.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1)) }
}

/**
 * If at least this share of the first hits has young evidence, we search for hits with older evidence than this share
 * of them.
 */
const youngShare = 0.65
const seniorShare = 0.35
const turnsMax = 4

/**
 * The best hits with older evidence than the hits that fill an answer: dust payments, which cost next to nothing, could
 * keep them out of a branch's candidates. Empty unless young evidence fills the answer.
 */
const seniorsBehind = Effect.fnUntraced(function* (
  { branch, ...answer }: Answered,
  request: Sought,
  evidence: { readonly since: ReadonlyMap<bigint, Date>; readonly signals: ResourceSignals["Service"] },
  isAlone: boolean
): Effect.fn.Return<ReadonlyArray<Hit>, SqlError.SqlError> {
  let [hits, since] = [answer.hits, evidence.since]
  let isFull = foundBy({ branch, ...answer }) >= answer.asked
  let seniors: ReadonlyArray<Hit> = []
  for (let turn = 0; turn < turnsMax; turn++) {
    const young = hits
      .slice(0, consideredMax)
      .flatMap(({ id }) => since.get(id) ?? [])
      .filter((at) => at > established)
      .toSorted((a, b) => a.getTime() - b.getTime())
    if (young.length < youngShare * consideredMax) break
    const before = young[Math.floor(seniorShare * young.length)]!
    if (isFull) {
      const filters: Filters = { ...request.filters, evidence: before }
      const sought: Sought = { ...request, filters, few: Effect.undefined }
      const again = yield* askOne(branch, sought, branch.candidates, isAlone)
      if (again === undefined) break
      ;[hits, isFull] = [again.hits, foundBy(again) >= again.asked]
      since = yield* evidence.signals.evidenceSince(hits.map(({ id }) => id))
    } else hits = hits.filter(({ id }) => (since.get(id) ?? before) < before)
    seniors = hits
  }
  return seniors
})

/** The answers with the best hits that have evidence, which claims may have kept out of a branch's candidates. */
const withEvidenced = Effect.fnUntraced(function* (
  answered: ReadonlyArray<Answered>,
  request: Sought,
  { rare, signals }: { readonly rare: RareFilters["Service"]; readonly signals: ResourceSignals["Service"] }
): Effect.fn.Return<Evidenced, SqlError.SqlError> {
  const isFull = (answer: Answered): boolean => foundBy(answer) >= answer.asked
  const long = answered.filter((answer) => isFull(answer) || answer.hits.length > consideredMax)
  if (long.length === 0) return { answered, evidenced: new Set() }
  const filters: Filters = { ...request.filters, evidence: "any" }
  const passing = yield* rare.passing(filters, request.snapshot)
  if (passing?.length === 0) return { answered, evidenced: new Set() }
  const ids = [...new Set(long.flatMap(({ hits }) => hits.map(({ id }) => id)))]
  const since = yield* signals.evidenceSince(ids)
  const among = new Set(passing ?? since.keys())
  const enough = Math.min(evidencedMin, passing?.length ?? evidencedMin)
  const evidencedOf = (hits: ReadonlyArray<Hit>) => hits.filter(({ id }) => among.has(id))
  const short = long.filter(({ hits }) => evidencedOf(hits.slice(0, consideredMax)).length < enough)
  const sought: Sought = { ...request, filters, few: Effect.succeed(passing) }
  const again = yield* Effect.forEach(
    short.filter(isFull),
    ({ branch }) => askOne(branch, sought, branch.candidates, answered.length === 1),
    { concurrency: "unbounded" }
  )
  const added = new Map(again.flatMap((answer) => (answer === undefined ? [] : [[answer.branch, answer.hits]])))
  for (const answer of long) {
    const seniors = yield* seniorsBehind(answer, request, { since, signals }, answered.length === 1)
    if (seniors.length > 0) added.set(answer.branch, [...seniors, ...(added.get(answer.branch) ?? [])])
  }
  return {
    answered: answered.map((answer) => withHits(answer, added.get(answer.branch) ?? [])),
    evidenced: new Set(
      [...short.flatMap(({ hits }) => evidencedOf(hits)), ...[...added.values()].flat()].map(({ id }) => id)
    )
  }
})

interface FusedRanking extends Pick<Ranking, "isAnswered"> {
  readonly hits: ReadonlyArray<Fused>
  /** The list is short in any case: the nearest few, or the part of one list that passes the filters. */
  readonly isCut: boolean
}

/** Starts before the words are read, and not when their reading first waits. */
const immediately = { startImmediately: true } as const

const unfiltered: Pick<Sought, "few" | "filters"> = { filters: {}, few: Effect.undefined }

/**
 * Whether anything fits a query is decided for the query without its filters: the best of a filter's few is not
 * measured as if it were the best of all. If a filter seems to leave no fitting hit, the branches are asked without it,
 * unless the answer is cached. A branch that learns from its first hits learns less from the few that pass a filter. If
 * it then finds nothing, the answer is the unfiltered answer reduced to the hits that pass, because a filter may only
 * remove hits that do not pass it.
 */
const fusedOf = Effect.fnUntraced(function* (
  answered: ReadonlyArray<Answered>,
  request: Sought,
  settings: SearchSettings["Service"],
  { fits, passing }: { readonly fits: ReturnType<typeof fitCache>; readonly passing: Passing }
): Effect.fn.Return<FusedRanking, SqlError.SqlError> {
  const bestMin = confidentRelevance
  const { minimum_relevance_score: relevanceMin, rrf_k: k } = settings
  const cuts = { k, relevanceMin, bestMin }
  const branches = answered.map(toRanked)
  const words = countWords(request.query)
  const fit = fitOf(branches, bestMin, words)
  if (!isFiltered(request.filters)) yield* fits.note(request.query, branches, fit)
  if (!isFiltered(request.filters) || (fit.isFitting && hasConfidentBranch(fit.bests, bestMin)))
    return { hits: fuse(branches, { ...cuts, ...fit }), isAnswered: fit.isFitting, isCut: !fit.isFitting }
  const ofFiltered = (whole: Fit): FusedRanking => ({
    hits: fuse(branches, { ...cuts, ...whole }),
    // A fitting hit that does not pass the filter is not an answer.
    isAnswered: fit.isFitting && whole.isFitting,
    isCut: !whole.isFitting
  })
  const known = yield* fits.known(request.query, branches)
  const fused = known === undefined ? undefined : ofFiltered(known)
  if (fused !== undefined && fused.hits.length > 0) return fused
  const asked = answered.map(({ branch }) => branch)
  const all = (yield* askAll(asked, { ...request, ...unfiltered })).map(toRanked)
  const whole = fitOf(all, bestMin, words)
  yield* fits.note(request.query, all, whole)
  const again = ofFiltered(whole)
  if (again.hits.length > 0) return again
  const without = fuse(all, { ...cuts, ...whole })
  const passed = yield* passing(
    without.map(({ id }) => id),
    request
  )
  const left = all.map((branch) => ({ ...branch, hits: branch.hits.filter(({ id }) => passed.has(id)) }))
  return {
    hits: without.filter(({ id }) => passed.has(id)),
    isAnswered: whole.isFitting && isAnyFitting(left, whole.bests, bestMin),
    isCut: true
  }
})

/** The hits of the reranked top in its order, then those of the top that have disappeared since, then the rest. */
const inOrder = (hits: ReadonlyArray<Fused>, top: ReadonlyArray<Fused>, ids: ReadonlyArray<bigint>) => {
  const byId = new Map(top.map((hit) => [hit.id, hit]))
  // The reranker gives the order, and the fused scores are dealt out again in it: later steps weigh them as before.
  const first = ids.map((id, at) => ({ ...byId.get(id)!, score: top[at]!.score }))
  return [...first, ...top.filter(({ id }) => !ids.includes(id)), ...hits.slice(top.length)]
}

const passingOf = (sql: SqlClient.SqlClient, catalog: Catalog["Service"]): Passing =>
  Effect.fnUntraced(function* (ids, { few, filters, snapshot }) {
    if (ids.length === 0) return new Set()
    const passed = yield* few
    if (passed !== undefined) return new Set(passed)
    const rows = yield* sql<{ id: bigint }>`select v.id from unnest(${`{${ids.join(",")}}`}::int8[]) v (id)
      where ${catalog.condition(filters, { id: "v.id", snapshot })}`.unprepared
    return new Set(rows.map(({ id }) => id))
  })

export class Ranker extends Context.Service<
  Ranker,
  { readonly rank: (request: RankRequest) => Effect.Effect<Ranking, SqlError.SqlError> }
>()("tollkeeper/catalog/Ranker") {
  static readonly layer = Layer.effect(
    Ranker,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const catalog = yield* Catalog
      const search = yield* Search
      const settings = yield* SearchSettings
      const signals = yield* ResourceSignals
      const reranker = yield* Reranker
      const rare = yield* RareFilters
      const fits = fitCache()
      const passing = passingOf(sql, catalog)

      const reranked = Effect.fnUntraced(function* (
        query: string,
        hits: ReadonlyArray<Fused>
      ): Effect.fn.Return<Pick<Ranking, "hits" | "reranking">, SqlError.SqlError> {
        if (reranker.topK === 0 || hits.length < 2) return { hits, reranking: "off" }
        const top = hits.slice(0, reranker.topK)
        const documents = yield* catalog.documents(top.map(({ id }) => id))
        return yield* reranker.order(query, documents).pipe(
          Effect.map((order) => order.map((index) => documents[index]!.id)),
          Effect.map((ids) => ({ hits: inOrder(hits, top, ids), reranking: "used" as const })),
          Effect.catch((error) => Effect.as(Effect.logWarning(error.message), { hits, reranking: "failed" as const }))
        )
      })

      const rankSought = Effect.fnUntraced(function* (request: Sought): Effect.fn.Return<Ranking, SqlError.SqlError> {
        const present = search.branches()
        const required = branchesOf(request.mode, present)
        const asked = present.filter(({ mode }) => required.includes(mode))
        const others = present.filter(({ mode }) => !required.includes(mode))
        const first = yield* askAll(asked, request)
        const given = first.length > 0 ? first : yield* askAll(others, request)
        const { answered, evidenced } = yield* withEvidenced(given, request, { rare, signals })
        const { hits: among, isAnswered, isCut } = yield* fusedOf(answered, request, settings, { fits, passing })
        const fused = scoredAmong(among, answered.map(toRanked), evidenced, settings.rrf_k)
        const { hits, reranking } = yield* reranked(request.query, fused)
        const { hits: spread, isCrowded } = yield* signals.apply(hits, {
          isOfOneSeller: request.filters.payTo !== undefined,
          prefers: request.prefers,
          query: request.query,
          evidenced
        })
        const more =
          !isCut && (answered.some((answer) => foundBy(answer) >= answer.asked) || fused.length > request.window)
        // One seller's hits have crowded out other sellers: search deeper for those.
        if (isCrowded && more && request.window < windowMax) return yield* rankSought({ ...request, window: windowMax })
        return {
          hits: spread.slice(0, request.window),
          isAnswered,
          more,
          missing: required.filter((mode) => !answered.some(({ branch }) => branch.mode === mode)),
          unprovided: unprovidedOf(request, present),
          reranking
        }
      }, withSpanIfSampled("Catalog.rank"))

      const rank = Effect.fnUntraced(function* (request: RankRequest): Effect.fn.Return<Ranking, SqlError.SqlError> {
        if (!isFiltered(request.filters)) return yield* rankSought({ ...request, ...unfiltered })
        const probing = yield* Effect.forkChild(rare.passing(request.filters, request.snapshot), immediately)
        return yield* rankSought({ ...request, few: Fiber.join(probing) })
      })

      return Ranker.of({ rank })
    })
  )
}
