// The relevance gate: search over HTTP, with everything in between, reaches its measured quality.
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { databaseKinds } from "../support/databases.ts"
import { isPresent, loadDataset } from "./dataset.ts"
import { headlineOf, interval, mean, ndcg10, recall20, reciprocalRank } from "./figures.ts"
import { halfOf, languageSets, ownSet } from "./judged.ts"
import { measure, type Measured, type Mode } from "./measure.ts"

describe("the project's own sets", () => {
  it.each([
    ["judged", 200, 80],
    ["trial", 60, 64],
    ["second", 60, 86],
    ["third", 60, 85],
    ["fourth", 60, 84]
  ] as const)("%s grades existing listings, and splits its queries in two", (name, listings, queries) => {
    const set = ownSet(name)
    const names = new Set(set.resources.map(({ name }) => name))
    expect(names.size).toBe(listings)
    expect(set.queries).toHaveLength(queries)
    const halves = Map.groupBy(set.queries, ({ id }) => halfOf(id))
    expect([...halves.values()].every((half) => half.length > 25)).toBe(true)
    for (const [, grades] of set.grades)
      for (const [name, grade] of grades) {
        expect(names.has(name) || /^res-\d{4}$/.test(name), name).toBe(true)
        expect([1, 2, 3]).toContain(grade)
      }
  })
})

describe("the sets in other languages", () => {
  it.each(languageSets)("%s grades existing listings", (name) => {
    const set = ownSet(name)
    const names = new Set(set.resources.map(({ name }) => name))
    expect(names.size).toBe(440)
    expect(set.queries).toHaveLength(42)
    expect(set.queries.filter(({ expects_no_result: none }) => none)).toHaveLength(4)
    for (const grades of set.grades.values())
      for (const name of grades.keys()) expect(names.has(name) || /^res-\d{4}$/.test(name), name).toBe(true)
  })
})

describe("the figures", () => {
  const grades = new Map([
    ["a", 3],
    ["b", 2],
    ["c", 1]
  ])

  it("are 1 for an ideal ranking and 0 without a relevant hit", () => {
    expect(ndcg10(["a", "b", "c"], grades)).toBe(1)
    expect(ndcg10(["x", "y"], grades)).toBe(0)
    expect(reciprocalRank(["x", "b"], grades)).toBe(0.5)
    expect(recall20(["a"], grades)).toBe(0.5)
    const [low, high] = interval([0, 0, 1, 1, 1, 0, 1, 0])
    expect(low).toBeGreaterThan(0.05)
    expect(low).toBeLessThan(0.3)
    expect(high).toBeGreaterThan(0.7)
  })
})

if (!isPresent) console.log("the relevance gate is skipped: ../shared/data/search-relevance is not there")

describe.skipIf(!isPresent)("search on ../shared/data/search-relevance", () => {
  it.each(databaseKinds)(
    "ranks as well as measured, with and without a provider, and no fusion falls below its dense branch, on %s [S129, S130]",
    async (database) => {
      const set = loadDataset()
      const run = (provided: boolean) =>
        Effect.runPromise(measure(set, { database, provided }) as Effect.Effect<ReadonlyArray<Measured>, unknown>)
      const measured = [...(await run(true)), ...(await run(false))].filter(({ query }) => headlineOf(query))
      const of = (mode: Mode) =>
        mean(
          measured.flatMap(({ query, rankings: { [mode]: ranking } }) =>
            ranking === undefined ? [] : [ndcg10(ranking, set.grades.get(query.id)!)]
          )
        )
      expect(of("lexical")).toBeGreaterThanOrEqual(0.8)
      expect(of("offline")).toBeGreaterThanOrEqual(0.82)
      expect(of("hybrid")).toBeGreaterThanOrEqual(of("semantic"))
    },
    300_000
  )
})
