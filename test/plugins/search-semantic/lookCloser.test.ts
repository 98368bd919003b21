// The number and the extent of searches for nearest vectors; no search loses a result of an earlier one.
import { Effect } from "effect"
import { expect, it } from "vitest"
import type { Hit } from "../../../plugins/catalog/contract.ts"
import { refineSearch } from "../../../plugins/search-semantic/index/VectorIndex.ts"

const hit = (id: number): Hit => ({ id: BigInt(id), score: 1 / id, relevance: 1 / id })

const ids = (
  observed: ReadonlyArray<number>,
  exact: ReadonlyArray<number>,
  { filtered = true, limit = 40 }: { readonly filtered?: boolean; readonly limit?: number } = {}
) =>
  Effect.runPromise(
    Effect.map(
      refineSearch(
        { filtered, limit },
        () => Effect.succeed({ hits: observed.map(hit), isAll: false }),
        () => Effect.succeed(exact.map(hit))
      ),
      (hits) => hits.map(({ id }) => Number(id))
    )
  )

const many = Array.from({ length: 20 }, (_, at) => at + 1)

it("a refined search keeps earlier hits when the exact ranking is full", async () => {
  expect(await ids([2], [3, 5])).toEqual([2, 3, 5])
  expect(await ids([1, 2, 4, 6], [2, 3, 5])).toEqual([1, 2, 3, 4, 5, 6])
  expect(await ids([2, 7], [3, 5, 6], { limit: 3 })).toEqual([2, 3, 5])
})

it("known matches of a filter are ranked without any other search", async () => {
  const known = (filtered: boolean) =>
    Effect.runPromise(
      refineSearch(
        { few: Effect.succeed([9n]), filtered, limit: 40 },
        () => Effect.succeed({ hits: many.map(hit), isAll: true }),
        (among) => Effect.succeed((among ?? []).map((id) => hit(Number(id))))
      )
    )
  expect(await known(true)).toEqual([hit(9)])
  expect(await known(false)).toEqual(many.map(hit))
})

it("a filter's matches rank exactly only if the nearest hold too few", async () => {
  expect(await ids(many, [30])).toEqual(many)
  expect(await ids([2], [30], { filtered: false })).toEqual([2])
})

it("a filtered search reads twice its share, and everything for rare filters", async () => {
  const reads = (found: number, filtered: boolean) => {
    const asked: Array<number> = []
    const reading = refineSearch(
      { filtered, limit: 60 },
      (far) => {
        asked.push(far)
        return Effect.succeed({ hits: many.slice(0, asked.length === 1 ? found : 20).map(hit), isAll: false })
      },
      () => Effect.succeed([])
    )
    return Effect.runPromise(Effect.as(reading, asked))
  }
  expect(await reads(10, true)).toEqual([180, 720])
  expect(await reads(3, true)).toEqual([180, 1_000])
  expect(await reads(1, true)).toEqual([180])
  expect(await reads(10, false)).toEqual([80, 1_000])
})
