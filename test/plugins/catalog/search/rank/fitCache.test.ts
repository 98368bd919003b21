// The cache of how well a query is answered without filters: its key and its lifetime.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { fitOf, fitCache } from "../../../../../plugins/catalog/search/rank/fitCache.ts"
import type { Ranked } from "../../../../../plugins/catalog/search/rank/fuse.ts"

const words = (relevance: number): Ranked => ({
  mode: "lexical",
  weight: 1,
  hits: [{ id: 1n, score: 1, relevance }]
})
const meaning: Ranked = { mode: "semantic", weight: 1, hits: [] }

it("the fit is the relevance of each branch's best hit", () => {
  expect(fitOf([words(0.5), meaning], 0.3)).toEqual({
    bests: new Map([
      ["lexical", 0.5],
      ["semantic", 0]
    ]),
    isFitting: true
  })
})

it.effect("the fit is cached per query and answering branches for a minute", () =>
  Effect.gen(function* () {
    const fits = fitCache()
    const fit = fitOf([words(0.5)], 0.3)
    yield* fits.note("weather", [words(0.5)], fit)
    expect(yield* fits.known("weather", [words(0.1)])).toBe(fit)
    expect(yield* fits.known("weather", [words(0.1), meaning])).toBeUndefined()
    expect(yield* fits.known("rain", [words(0.1)])).toBeUndefined()
    yield* TestClock.adjust("59 seconds")
    expect(yield* fits.known("weather", [words(0.1)])).toBe(fit)
    yield* TestClock.adjust("1 second")
    expect(yield* fits.known("weather", [words(0.1)])).toBeUndefined()
  })
)

it.effect("the fit cache evicts its oldest entries beyond its capacity", () =>
  Effect.gen(function* () {
    const fits = fitCache()
    const fit = fitOf([words(0.5)], 0.3)
    for (let at = 0; at < 5_001; at++) yield* fits.note(`query ${at}`, [words(0.5)], fit)
    expect(yield* fits.known("query 0", [words(0.5)])).toBeUndefined()
    expect(yield* fits.known("query 1", [words(0.5)])).toBe(fit)
    expect(yield* fits.known("query 5000", [words(0.5)])).toBe(fit)
  })
)
