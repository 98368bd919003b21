// Maps of a maximum size: the entry that was not used for the longest time is evicted.
import { expect, it } from "@effect/vitest"
import { BoundedMap } from "../../../kernel/cache/BoundedMap.ts"

it("keeps up to its capacity and evicts the least recently used entry", () => {
  const map = new BoundedMap<string, number>(3)
  for (const [at, key] of ["a", "b", "a", "c"].entries()) map.set(key, at)
  expect(map.get("b")).toBe(1)
  map.set("d", 4)
  expect([...map.entries()]).toEqual([
    ["c", 3],
    ["b", 1],
    ["d", 4]
  ])
})

it("does not use an entry that is peeked at, and forgets what is deleted", () => {
  const map = new BoundedMap<string, number>(2)
  for (const [at, key] of ["a", "b"].entries()) map.set(key, at)
  expect(map.peek("a")).toBe(0)
  map.set("c", 2)
  expect([map.get("a"), map.get("b"), map.size]).toEqual([undefined, 1, 2])
  expect([map.delete("b"), map.get("b")]).toEqual([true, undefined])
  map.clear()
  expect(map.size).toBe(0)
})
