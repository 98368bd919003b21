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
        const { ledger } = yield* health.reports(true)
        expect(ledger).toMatchObject({ state: "degraded", sequence: 7, channels: 2 })
        expect(ledger?.detail).toHaveLength(200)
      })
    )
    expect(yield* health.reports(true)).toEqual({ ledger: { state: "ready", sequence: 7 } })
  }).pipe(Effect.scoped, Effect.provide(Health.layer))
)

it.effect("hides balances and details with callers' names from strangers", () =>
  Effect.gen(function* () {
    const health = yield* Health
    const report = {
      state: "degraded" as const,
      detail: "1 receiver is not reached",
      operatorDetail: "shop is not reached",
      figures: { sponsorBalanceStroops: "7", receivers: 1 }
    }
    yield* health.register("webhooks", Effect.succeed(report))
    yield* health.register("webhooks", Effect.succeed({ state: "ready", detail: "another report" }))
    expect(yield* health.reports(false)).toEqual({
      webhooks: { state: "degraded", detail: "1 receiver is not reached; another report", receivers: 1 }
    })
    expect(yield* health.reports(true)).toEqual({
      webhooks: {
        state: "degraded",
        detail: "shop is not reached; another report",
        sponsorBalanceStroops: "7",
        receivers: 1
      }
    })
  }).pipe(Effect.scoped, Effect.provide(Health.layer))
)
