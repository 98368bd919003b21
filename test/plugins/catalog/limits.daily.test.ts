// The rate limit of discovery's public routes: one shared limit per unkeyed caller, none for a key or this machine.
import { NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { startFacilitator } from "../../support/facilitator.ts"

const url = encodeURIComponent("https://unlisted.example/")
const paths = [
  "/discovery/resources",
  `/discovery/resource?type=http&url=${url}`,
  `/discovery/history?resource=${url}`
] as const

describe.each(databaseKinds)("the rate limit of discovery on %s", (database) => {
  it("discovery rate limits one unkeyed address, but not loopback or a key", () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const facilitator = yield* startFacilitator({
            database,
            channels: 1,
            set: ["discovery.reads_per_second=1"],
            environment: { FACILITATOR_API_KEYS: "0123456789abcdef" }
          })
          const ask = (at: number, headers: Record<string, string>) => facilitator.ask(paths[at % 3]!, { headers })
          const asAway = (address: string) =>
            // One token returns each second: of many concurrent requests some must wait, however slow the machine is.
            Effect.forEach(
              Array.from({ length: 60 }, (_, at) => at),
              (at) => ask(at, { "x-forwarded-for": address }),
              { concurrency: 20 }
            )
          const answers = yield* asAway("203.0.113.7")
          const refused = answers.filter(({ status }) => status === 429)
          expect(answers.slice(0, 2).map(({ status }) => status)).toEqual([200, 404])
          // At most two tokens plus one per elapsed second pass.
          expect(refused.length).toBeGreaterThan(20)
          for (const { headers, json } of refused) {
            expect(json).toEqual({ error: "too_many_requests", details: ["reads of one caller"] })
            expect(headers.get("retry-after")).toBe("1")
          }
          const refusedOn = answers.flatMap(({ status }, at) => (status === 429 ? [at % 3] : []))
          expect(new Set(refusedOn)).toEqual(new Set([0, 1, 2]))
          const keyed = { "x-forwarded-for": "203.0.113.7", authorization: "Bearer 0123456789abcdef" }
          for (const headers of [{}, keyed]) {
            const free = yield* Effect.forEach(
              Array.from({ length: 10 }, (_, at) => at),
              () => ask(0, headers)
            )
            expect(free.every(({ status }) => status === 200)).toBe(true)
          }
        })
      ).pipe(Effect.provide(NodeServices.layer)) as Effect.Effect<void>
    ))
})
