// Maps of the last few: the oldest goes, and what is put in again is the newest.
import { expect, it } from "@effect/vitest"
import { setBounded } from "../../../kernel/cache/setBounded.ts"

it("keeps up to its capacity and evicts the oldest entry", () => {
  const map = new Map<string, number>()
  for (const [at, key] of ["a", "b", "a", "c", "d"].entries()) setBounded(map, 3, key, at)
  expect([...map]).toEqual([
    ["a", 2],
    ["c", 3],
    ["d", 4]
  ])
})
