// Caches by name: hits, misses and entries, summed over all caches with the same name.
import { expect, it } from "@effect/vitest"
import { LruCache, readCaches } from "../../../kernel/cache/LruCache.ts"

const reading = (name: string) => readCaches().find((one) => one.name === name)

it("counts hits and misses, and an expired value as a miss", () => {
  const cache = new LruCache<string, number>({ name: "counted", capacity: 2 })
  expect(cache.get("a")).toBeUndefined()
  cache.set("a", 1)
  expect(cache.get("a")).toBe(1)
  expect(cache.get("a", (value) => value > 1)).toBeUndefined()
  expect(cache.get("a", (value) => value === 1)).toBe(1)
  expect(cache.peek("a")).toBe(1)
  expect(reading("counted")).toEqual({ name: "counted", hits: 2, misses: 2, entries: 1 })
})

it("counts caches of one name together", () => {
  const [one, other] = [1, 2].map(() => new LruCache<string, number>({ name: "shared", capacity: 2 }))
  for (const [at, key] of ["a", "b", "c"].entries()) one!.set(key, at)
  other!.set("a", 0)
  one!.get("a")
  other!.get("a")
  expect(reading("shared")).toEqual({ name: "shared", hits: 1, misses: 1, entries: 3 })
})
