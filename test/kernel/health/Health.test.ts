// Reports of several parts of the program under one name, as readiness shows them.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { Health } from "../../../kernel/health/Health.ts"

it.effect("merges reports under one name while their scopes live", () =>
  Effect.gen(function* () {
    const health = yield* Health
    yield* health.register("ledger", Effect.succeed({ state: "ready", figures: { sequence: 7 } }))
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* health.register(
          "ledger",
          Effect.succeed({ state: "degraded", detail: "y".repeat(300), figures: { channels: 2 } })
        )
        yield* health.register("ledger", Effect.die(new Error("a defect of the check")))
        const { ledger } = yield* health.reports
        expect(ledger).toMatchObject({ state: "degraded", sequence: 7, channels: 2 })
        expect(ledger?.detail).toHaveLength(200)
      })
    )
    expect(yield* health.reports).toEqual({ ledger: { state: "ready", sequence: 7 } })
  }).pipe(Effect.scoped, Effect.provide(Health.layer))
)
