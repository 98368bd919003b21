// The limit on writes by searches without a key: an hour of them does not fill a disk.
import { expect, it } from "@effect/vitest"
import {
  anonymousDayMax,
  makeSample,
  sessionDayMax,
  sessionWholeMax
} from "../../../../plugins/catalog/search/report/recordImpressions.ts"

const day = 86_400_000
const keptOf = (isKept: ReturnType<typeof makeSample>, sessions: number, each: number, at: number) => {
  let kept = 0
  for (let session = 0; session < sessions; session++)
    for (let n = 0; n < each; n++) if (isKept(`s${session}`, at)) kept += 1
  return kept
}

it("a session's searches are kept, then sampled, then left out until the next day", () => {
  const isKept = makeSample()
  expect(keptOf(isKept, 1, sessionWholeMax, day)).toBe(sessionWholeMax)
  expect(keptOf(isKept, 1, 10, day)).toBe(1)
  expect(keptOf(isKept, 1, 100_000, day)).toBe(sessionDayMax - sessionWholeMax - 1)
  expect(keptOf(isKept, 1, 100, day)).toBe(0)
  expect(keptOf(isKept, 1, 10, 2 * day)).toBe(10)
})

it("a hundred thousand sessions keep no more than a day's bound", () => {
  expect(keptOf(makeSample(), 100_000, 3, day)).toBe(anonymousDayMax)
})
