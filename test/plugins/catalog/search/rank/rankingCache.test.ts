// Which rankings are computed anew and which are cached, with a counting ranker.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SqlError } from "effect/sql"
import { TestClock } from "effect/testing"
import { Catalog, Search, type SearchBranch } from "../../../../../plugins/catalog/contract.ts"
import { rankingCache } from "../../../../../plugins/catalog/search/rank/rankingCache.ts"
import { Ranker, type Ranking, type RankRequest } from "../../../../../plugins/catalog/search/rank/Ranker.ts"

type Edition = NonNullable<SearchBranch["edition"]>

const request: RankRequest = {
  query: "weather",
  mode: "hybrid",
  isModeAsked: false,
  filters: {},
  prefers: [],
  snapshot: 7n,
  window: 100
}

/** The ranker returns the number of its calls as its only id. */
const makeKeeper = Effect.gen(function* () {
  const state = {
    made: 0n,
    catalog: Effect.succeed("1") as Effect.Effect<string, SqlError.SqlError>,
    branches: new Map<SearchBranch["mode"], Edition | undefined>([["lexical", Effect.succeed("1")]]),
    ranking: {} as Partial<Ranking>
  }
  const rank = () =>
    Effect.sync((): Ranking => {
      state.made += 1n
      const hits = [{ id: state.made, score: 1, ranks: {} }]
      return { hits, isAnswered: true, more: false, missing: [], unprovided: [], reranking: "off", ...state.ranking }
    })
  const branches = () => [...state.branches].map(([mode, edition]) => ({ mode, edition }))
  const kept = yield* rankingCache.pipe(
    Effect.provide(
      Layer.mergeAll(
        Layer.succeed(Ranker, { rank }),
        Layer.succeed(Catalog, { edition: Effect.suspend(() => state.catalog) } as unknown as Catalog["Service"]),
        Layer.succeed(Search, { branches } as unknown as Search["Service"])
      )
    )
  )
  const ask = (more: Partial<RankRequest> = {}) =>
    Effect.map(kept({ ...request, ...more }), ({ ids }) => Number(ids[0]))
  return { state, ask, kept }
})

it.effect("a ranking is cached after two requests for half a minute", () =>
  Effect.gen(function* () {
    const { ask } = yield* makeKeeper
    expect([yield* ask(), yield* ask(), yield* ask()]).toEqual([1, 2, 2])
    yield* TestClock.adjust("29999 millis")
    expect(yield* ask()).toBe(2)
    yield* TestClock.adjust("1 milli")
    expect([yield* ask(), yield* ask(), yield* ask()]).toEqual([3, 4, 4])
  })
)

it.effect("a cached ranking is never shared between different requests", () =>
  Effect.gen(function* () {
    const { ask } = yield* makeKeeper
    const others: ReadonlyArray<Partial<RankRequest>> = [
      {},
      { query: "rain" },
      { mode: "lexical" },
      { mode: "lexical", isModeAsked: true },
      { filters: { asset: "C", maxPrice: 5n } },
      { filters: { asset: "C", maxPrice: 6n } },
      { prefers: ["cheap"] as const },
      { window: 200 }
    ]
    for (const again of [1, 2, 2])
      for (const [at, other] of others.entries())
        expect(yield* ask(other), JSON.stringify([again, at])).toBe(at + 1 + (again - 1) * others.length)
  })
)

it.effect("a ranking expires when the catalog, its snapshot or a branch changes", () =>
  Effect.gen(function* () {
    const { ask, state } = yield* makeKeeper
    const asked = Effect.all([ask(), ask(), ask()])
    expect(yield* asked).toEqual([1, 2, 2])
    state.catalog = Effect.succeed("2")
    expect(yield* asked).toEqual([3, 4, 4])
    state.branches.set("lexical", Effect.succeed("2"))
    expect(yield* asked).toEqual([5, 6, 6])
    state.branches.set("embedded", Effect.succeed("1"))
    expect(yield* asked).toEqual([7, 8, 8])
    expect(yield* ask({ snapshot: 8n })).toBe(9)
    // A branch that the mode does not query does not matter.
    const words = ask({ mode: "lexical", isModeAsked: true })
    expect([yield* words, yield* words, yield* words]).toEqual([10, 11, 11])
    state.branches.set("embedded", Effect.succeed("2"))
    expect(yield* words).toBe(11)
  })
)

it.effect("a partial ranking or an unknown or slow edition is not cached", () =>
  Effect.gen(function* () {
    const { ask, kept, state } = yield* makeKeeper
    const asked = Effect.all([ask(), ask(), ask()])
    state.ranking = { missing: ["embedded"] }
    expect(yield* asked).toEqual([1, 2, 3])
    state.ranking = { reranking: "failed" }
    expect(yield* asked).toEqual([4, 5, 6])
    state.ranking = { reranking: "used" }
    expect(yield* asked).toEqual([7, 7, 7])
    expect((yield* kept(request)).reranking).toBe("used")
    state.branches.set("semantic", undefined)
    expect(yield* asked).toEqual([8, 9, 10])
    state.branches.set("semantic", Effect.undefined)
    expect(yield* asked).toEqual([11, 12, 13])
    state.branches.delete("semantic")
    state.catalog = Effect.fail(new SqlError.SqlError({ reason: new SqlError.UnknownError({ cause: "gone" }) }))
    expect(yield* asked).toEqual([14, 15, 16])
    state.catalog = Effect.never
    const waiting = yield* Effect.forkChild(ask(), { startImmediately: true })
    yield* TestClock.adjust("99 millis")
    expect(waiting.pollUnsafe()).toBeUndefined()
    yield* TestClock.adjust("1 milli")
    expect(yield* Fiber.join(waiting)).toBe(17)
  })
)

it.effect("the ranking cache evicts its least recently used entries beyond its capacity", () =>
  Effect.gen(function* () {
    const { ask, state } = yield* makeKeeper
    for (const at of [0, 0, ...Array.from({ length: 1_999 }, (_, at) => at + 1)]) yield* ask({ query: `query ${at}` })
    const made = Number(state.made)
    expect(yield* ask({ query: "query 0" })).toBe(2)
    for (const at of [1_000, 1_001]) yield* ask({ query: `one more ${at}` })
    expect(yield* ask({ query: "query 0" })).toBe(2)
    yield* ask({ query: "query 1999" })
    expect(yield* ask({ query: "query 1999" })).toBe(made + 3)
    // Evicted, so this is its first time again.
    yield* ask({ query: "query 1" })
    expect(yield* ask({ query: "query 1" })).toBe(made + 5)
    expect(yield* ask({ query: "query 1" })).toBe(made + 5)
  })
)
