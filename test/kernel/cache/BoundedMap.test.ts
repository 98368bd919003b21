// Maps with a maximum size: the least recently used entry is evicted.
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

it("evicts as a list in order of use would, over any sequence of operations", () => {
  const map = new BoundedMap<number, number>(5)
  let listed: ReadonlyArray<number> = []
  const used = (key: number) => [...listed.filter((one) => one !== key), key]
  let seed = 7
  const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
  for (let turn = 0; turn < 5_000; turn++) {
    const key = random(9)
    const operation = random(12)
    if (operation < 6) {
      map.set(key, turn)
      listed = used(key).slice(-5)
    } else if (operation < 9) {
      if (map.get(key) !== undefined) listed = used(key)
    } else if (operation < 11) {
      map.delete(key)
      listed = listed.filter((one) => one !== key)
    } else if (random(40) === 0) {
      map.clear()
      listed = []
    }
    expect([...map.entries()].map(([one]) => one)).toEqual(listed)
  }
})
