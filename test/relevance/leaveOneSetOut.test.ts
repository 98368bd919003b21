// The settings for a set are chosen without it.
import { expect, it } from "vitest"
import { bestWithout } from "./leaveOneSetOut.ts"

const shares = (first: number) => ({ first, three: first })

it("chooses by the other sets, and prefers the default among equals", () => {
  const bySet = [
    [shares(0.5), shares(0.9)],
    [shares(0.8), shares(0.7)],
    [shares(0.8), shares(0.7)]
  ]
  expect(bestWithout(0, bySet)).toBe(0)
  expect(bestWithout(1, bySet)).toBe(1)
  expect(bestWithout(0, [[shares(0.1)], [shares(0.5)]])).toBe(0)
})
