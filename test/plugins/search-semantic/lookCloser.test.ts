// How often and how far the nearest are looked for, and that no look loses what an earlier one found.
import { Effect } from "effect"
import { expect, it } from "vitest"
import type { Hit } from "../../../plugins/catalog/contract.ts"
import { lookCloser } from "../../../plugins/search-semantic/VectorIndex.ts"

const hit = (id: number): Hit => ({ id: BigInt(id), score: 1 / id, relevance: 1 / id })

const ids = (
  looked: ReadonlyArray<number>,
  exact: ReadonlyArray<number>,
  { filtered = true, limit = 40 }: { readonly filtered?: boolean; readonly limit?: number } = {}
) =>
  Effect.runPromise(
    Effect.map(
      lookCloser(
        { filtered, limit },
        () => Effect.succeed({ hits: looked.map(hit), isAll: false }),
        () => Effect.succeed(exact.map(hit))
      ),
      (hits) => hits.map(({ id }) => Number(id))
    )
  )

const many = Array.from({ length: 20 }, (_, at) => at + 1)

it("keeps what a look found where the exact ranking holds no more than it may", async () => {
  expect(await ids([2], [3, 5])).toEqual([2, 3, 5])
  expect(await ids([1, 2, 4, 6], [2, 3, 5])).toEqual([1, 2, 3, 4, 5, 6])
  expect(await ids([2, 7], [3, 5, 6], { limit: 3 })).toEqual([2, 3, 5])
})

it("ranks those that are known to pass a filter, and looks at nothing else", async () => {
  const known = (filtered: boolean) =>
    Effect.runPromise(
      lookCloser(
        { few: Effect.succeed([9n]), filtered, limit: 40 },
        () => Effect.succeed({ hits: many.map(hit), isAll: true }),
        (among) => Effect.succeed((among ?? []).map((id) => hit(Number(id))))
      )
    )
  expect(await known(true)).toEqual([hit(9)])
  expect(await known(false)).toEqual(many.map(hit))
})

it("ranks exactly what a filter leaves only where the nearest hold too few of it", async () => {
  expect(await ids(many, [30])).toEqual(many)
  expect(await ids([2], [30], { filtered: false })).toEqual([2])
})
