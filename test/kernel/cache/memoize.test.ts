// Memoized reads of a text: a text that was evicted or is long is read again, and texts are never mixed up.
import { expect, it } from "@effect/vitest"
import { memoize } from "../../../kernel/cache/memoize.ts"

const counted = (max: number) => {
  const read: Array<string> = []
  return {
    read,
    length: memoize({ name: "texts", capacity: max }, (text) => {
      read.push(text)
      return text.length === 0 ? undefined : text.length
    })
  }
}

it("computes a value once, undefined included", () => {
  const { length, read } = counted(4)
  expect(["a", "bb", "a", "", "", "bb"].map(length)).toEqual([1, 2, 1, undefined, undefined, 2])
  expect(read).toEqual(["a", "bb", ""])
})

it("caches a bounded number of texts and no long ones", () => {
  const { length, read } = counted(2)
  for (const text of ["a", "bb", "a", "ccc", "a", "bb"]) length(text)
  expect(read).toEqual(["a", "bb", "ccc", "bb"])
  const long = "x".repeat(257)
  expect([length(long), length(long)]).toEqual([257, 257])
  expect(read.slice(4)).toEqual([long, long])
})
