// Readiness has each reconciler's last run, bounded, and no text of a failure.
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { reconciler } from "../../../../kernel/actor/Actor.ts"
import { Supervisor } from "../../../../kernel/actor/Supervisor.ts"
import { Health } from "../../../../kernel/health/Health.ts"
import { reportReconcilers } from "../../../../kernel/payment/report/reportReconcilers.ts"

const services = Layer.merge(Supervisor.layer, Health.layer)

it.effect("readiness names failing reconcilers and each one's last run", () =>
  Effect.gen(function* () {
    yield* reportReconcilers
    yield* reconciler({ id: "sweep", every: "1 minute", turn: Effect.void })
    yield* reconciler({ id: "follower", every: "1 minute", turn: Effect.fail("a secret of the database") })
    yield* TestClock.adjust("2 seconds")
    expect((yield* (yield* Health).reports(true))["reconcilers"]).toEqual({
      state: "degraded",
      detail: "the last run failed: kernel/follower",
      "kernel/follower": "failed 2 s ago by start in 0 ms",
      "kernel/sweep": "succeeded 2 s ago by start in 0 ms"
    })
  }).pipe(Effect.provide(services), Effect.scoped)
)

it.effect("readiness shows at most 64 reconcilers, failing ones first", () =>
  Effect.gen(function* () {
    yield* reportReconcilers
    for (let at = 0; at < 80; at++) yield* reconciler({ id: `a-${at}`, every: "1 minute", turn: Effect.void })
    yield* reconciler({ id: "z", every: "1 minute", turn: Effect.fail("away") })
    yield* TestClock.adjust("1 millis")
    const { detail, state, ...runs } = (yield* (yield* Health).reports(true))["reconcilers"]!
    expect([state, detail]).toEqual(["degraded", "the last run failed: kernel/z"])
    expect([Object.keys(runs).length, Object.keys(runs)[0]]).toEqual([64, "kernel/z"])
  }).pipe(Effect.provide(services), Effect.scoped)
)
