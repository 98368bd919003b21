// Words that an agent puts around a question do not change a ranking by more than noise: over whole sets, frame by
// frame.
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { type OwnSet, ownSet } from "./judged.ts"
import { measure, type Measured } from "./measure.ts"

const frames: ReadonlyArray<(question: string) => string> = [
  (question) => question,
  (question) => `find me an API to ${question}`,
  (question) => `I need a tool that can ${question} please`,
  (question) => `paid endpoint for ${question} in JSON`,
  (question) => `best ${question} service`
]

/** Maximum percentage points that a frame may cost. */
const costMax = 2

describe("agents' frames", () => {
  it.each(["second", "third", "fourth"] as ReadonlyArray<OwnSet>)(
    "cost no more than noise on %s",
    async (name) => {
      const all = ownSet(name)
      // A frame in English about a question in another language is not realistic.
      const bare = all.queries.filter((query) => query.class !== "language" && !query.expects_no_result)
      const queries = frames.flatMap((frame, at) =>
        bare.map((query) => ({ ...query, id: `${query.id} ${at}`, query: frame(query.query) }))
      )
      const measured = await Effect.runPromise(
        measure({ ...all, queries }) as Effect.Effect<ReadonlyArray<Measured>, unknown>
      )
      const shares = (at: number, among: number) => {
        const some = measured.filter(({ query }) => query.id.endsWith(` ${at}`))
        const right = some.filter(({ query, rankings }) => {
          const grades = all.grades.get(query.id.split(" ")[0]!)!
          return rankings.offline!.slice(0, among).some((hit) => (grades.get(hit) ?? 0) >= 2)
        })
        return (100 * right.length) / some.length
      }
      for (let at = 1; at < frames.length; at++) {
        expect(shares(at, 1), frames[at]!("…")).toBeGreaterThanOrEqual(shares(0, 1) - costMax)
        expect(shares(at, 3), frames[at]!("…")).toBeGreaterThanOrEqual(shares(0, 3) - costMax)
      }
    },
    120_000
  )
})
