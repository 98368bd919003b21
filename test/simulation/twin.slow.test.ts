// The same as `twin.daily.test.ts`, over more histories: 300 on the embedded database, 100 on a server.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { firstDifference, sqlLayer } from "./twin.ts"

it.live.each([
  ["pglite", 300],
  ["postgres", 100]
] as const)(
  "on %s, %i histories end alike on the SQL repository and on its twin",
  ([kind, runs]) =>
    Effect.gen(function* () {
      for (let seed = 1_001; seed <= 1_000 + runs; seed++) expect(yield* firstDifference(seed)).toBeUndefined()
    }).pipe(Effect.scoped, Effect.provide(sqlLayer(kind)) as never) as Effect.Effect<void>,
  300_000
)
