// The simulation's in-memory repository keeps the promises of the SQL one: the same random histories, the same answers,
// the same tables. Each difference is reported with its seed.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../support/databases.ts"
import { firstDifference, sqlLayer } from "./twin.ts"

const seeds = Array.from({ length: 40 }, (_, index) => index + 1)

describe.each(databaseKinds)("on %s", (kind) => {
  it.live(
    "40 histories end alike on the SQL repository and on its twin",
    () =>
      Effect.gen(function* () {
        for (const seed of seeds) expect(yield* firstDifference(seed)).toBeUndefined()
      }).pipe(Effect.scoped, Effect.provide(sqlLayer(kind)) as never) as Effect.Effect<void>,
    240_000
  )
})
