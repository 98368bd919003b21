// The relevance gate: search over HTTP, with everything between, is as good as it was measured to be.
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { databaseKinds } from "../support/databases.ts"
import { isPresent, loadDataset } from "./dataset.ts"
import { headlineOf, mean, ndcg10, recall20, reciprocalRank } from "./figures.ts"
import { measure, type Measured, type Mode } from "./measure.ts"

describe("the figures", () => {
  const grades = new Map([
    ["a", 3],
    ["b", 2],
    ["c", 1]
  ])

  it("are 1 for an ideal ranking and 0 for one without a relevant hit", () => {
    expect(ndcg10(["a", "b", "c"], grades)).toBe(1)
    expect(ndcg10(["x", "y"], grades)).toBe(0)
    expect(reciprocalRank(["x", "b"], grades)).toBe(0.5)
    expect(recall20(["a"], grades)).toBe(0.5)
  })
})

if (!isPresent) console.log("the relevance gate is skipped: ../shared/data/search-relevance is not there")

describe.skipIf(!isPresent)("search on ../shared/data/search-relevance", () => {
  it.each(databaseKinds)(
    "ranks as well as measured, and no fusion falls below its dense branch, on %s [S129, S130]",
    async (database) => {
      const set = loadDataset()
      const measured = await Effect.runPromise(
        measure(set, { database }) as Effect.Effect<ReadonlyArray<Measured>, unknown>
      )
      const of = (mode: Mode) =>
        mean(
          measured
            .filter(({ query }) => headlineOf(query))
            .map(({ query, rankings }) => ndcg10(rankings[mode], set.grades.get(query.id)!))
        )
      expect(of("lexical")).toBeGreaterThanOrEqual(0.775)
      expect(of("hybrid")).toBeGreaterThanOrEqual(0.882)
      expect(of("hybrid")).toBeGreaterThanOrEqual(of("semantic"))
    },
    120_000
  )
})
