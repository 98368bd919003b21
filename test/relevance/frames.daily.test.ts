// An agent's frame changes no ranking by more than noise: over a whole set, frame by frame. All sets together are
// `npm run relevance -- frames`.
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { costMax, framed, frames, rightByFrame } from "./frames.ts"
import { type OwnSet, ownSet } from "./judged.ts"
import { measure, type Measured } from "./measure.ts"

/** Each set is asked in every other frame. */
const framesOf = (parity: number) => frames.filter((_, at) => at % 2 === parity)

/** In one set two questions are worth more than the bound over all sets. */
const noise = 1.5

describe("agents' frames", () => {
  it.each([
    ["third", 0],
    ["fourth", 1]
  ] as ReadonlyArray<[OwnSet, number]>)(
    "cost no more than noise on %s",
    async (name, parity) => {
      const [set, used] = [ownSet(name), framesOf(parity)]
      const measured = await Effect.runPromise(
        measure(framed(set, used)) as Effect.Effect<ReadonlyArray<Measured>, unknown>
      )
      const [bare, ...each] = rightByFrame(set, measured, used)
      for (const [at, { first, questions, three }] of each.entries()) {
        const cost = (right: number, of: number) => (100 * (of - right)) / questions
        expect(cost(first, bare!.first), used[at]).toBeLessThanOrEqual(costMax + noise)
        expect(cost(three, bare!.three), used[at]).toBeLessThanOrEqual(costMax + noise)
      }
    },
    240_000
  )
})
