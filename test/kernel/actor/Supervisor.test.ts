import { expect, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Logger, Queue, Ref } from "effect"
import { TestClock } from "effect/testing"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { Supervisor } from "../../../kernel/actor/Supervisor.ts"

const supervised = <A, E>(effect: Effect.Effect<A, E, Supervisor | import("effect").Scope.Scope>) =>
  Effect.scoped(effect).pipe(Effect.provide(Supervisor.layer as Layer.Layer<Supervisor>))

it.effect("restarts a dying permanent actor up to its restart intensity [S340, S341]", () =>
  supervised(
    Effect.gen(function* () {
      const supervisor = yield* Supervisor
      const lives = yield* Ref.make(0)
      yield* supervisor.start({
        id: "fragile",
        restart: "permanent",
        restartsMax: 3,
        restartsWindow: "1 minute",
        run: Effect.andThen(
          Ref.update(lives, (n) => n + 1),
          Effect.die("broken")
        )
      })
      const escalation = yield* Effect.forkChild(Effect.flip(supervisor.escalated))
      yield* TestClock.adjust("30 seconds")
      expect(yield* Fiber.join(escalation)).toMatchObject({ _tag: "ActorGaveUp", actor: "kernel/fragile", restarts: 3 })
      expect(yield* Ref.get(lives)).toBe(4)
      expect(yield* supervisor.actors).toEqual([{ actor: "kernel/fragile", state: "gave-up", restarts: 3 }])
    })
  )
)

it.effect("restarts a permanent actor interrupted by anything but its scope", () =>
  supervised(
    Effect.gen(function* () {
      const supervisor = yield* Supervisor
      let lives = 0
      const run = Effect.suspend(() => ((lives += 1) === 1 ? Effect.interrupt : Effect.never))
      yield* supervisor.start({ id: "cut", restart: "permanent", run })
      yield* TestClock.adjust("1 second")
      expect(lives).toBe(2)
      expect(yield* supervisor.actors).toEqual([{ actor: "kernel/cut", state: "running", restarts: 1 }])
    })
  )
)

it.effect("restarts a transient actor only after a defect, a temporary one never", () =>
  supervised(
    Effect.gen(function* () {
      const supervisor = yield* Supervisor
      const lives: Record<string, number> = {}
      const live = (id: string, after: Effect.Effect<void>) =>
        Effect.andThen(
          Effect.sync(() => (lives[id] = (lives[id] ?? 0) + 1)),
          after
        )
      yield* supervisor.start({ id: "temporary", restart: "temporary", run: live("temporary", Effect.die("x")) })
      yield* supervisor.start({ id: "transient", restart: "transient", run: live("transient", Effect.void) })
      yield* supervisor.start({
        id: "dying",
        restart: "transient",
        run: Effect.suspend(() => live("dying", (lives["dying"] ?? 0) === 0 ? Effect.die("once") : Effect.void))
      })
      yield* TestClock.adjust("1 minute")
      expect(lives).toEqual({ temporary: 1, transient: 1, dying: 2 })
    })
  )
)

it.effect("an actor ends with its scope, which frees its name", () =>
  supervised(
    Effect.gen(function* () {
      const supervisor = yield* Supervisor
      const ended = yield* Ref.make(false)
      const run = Effect.onInterrupt(Effect.never, () => Ref.set(ended, true))
      yield* Effect.scoped(Effect.andThen(supervisor.start({ id: "a", restart: "permanent", run }), Effect.yieldNow))
      expect(yield* Ref.get(ended)).toBe(true)
      expect(yield* supervisor.actors).toEqual([])
      yield* supervisor.start({ id: "a", restart: "permanent", run })
      expect(yield* supervisor.actors).toHaveLength(1)
    })
  )
)

it.effect("a reconciler runs immediately, on each tick, and again after wake-ups mid-turn", () =>
  supervised(
    Effect.gen(function* () {
      const turns = yield* Ref.make(0)
      const gate = yield* Queue.unbounded<void>()
      const actor = yield* reconciler({
        id: "r",
        every: "10 seconds",
        turn: Effect.andThen(
          Ref.update(turns, (n) => n + 1),
          Queue.take(gate)
        )
      })
      yield* Effect.yieldNow
      yield* TestClock.adjust(Duration.zero)
      expect(yield* Ref.get(turns)).toBe(1)
      yield* actor.wake
      yield* actor.wake
      yield* Queue.offerAll(gate, [undefined, undefined])
      yield* TestClock.adjust("1 second")
      expect(yield* Ref.get(turns)).toBe(2)
      yield* TestClock.adjust("10 seconds")
      expect(yield* Ref.get(turns)).toBe(3)
    })
  )
)

it.effect("a reconciler with `gather` batches wake-ups into one turn and keeps its tick", () =>
  supervised(
    Effect.gen(function* () {
      const turns = yield* Ref.make(0)
      const turn = Ref.update(turns, (n) => n + 1)
      const actor = yield* reconciler({ id: "r", every: "1 minute", gather: "1 second", turn })
      yield* TestClock.adjust("1 millis")
      expect(yield* Ref.get(turns)).toBe(1)
      yield* actor.wake
      yield* TestClock.adjust("400 millis")
      yield* actor.wake
      yield* TestClock.adjust("400 millis")
      expect(yield* Ref.get(turns)).toBe(1)
      yield* TestClock.adjust("200 millis")
      expect(yield* Ref.get(turns)).toBe(2)
      yield* TestClock.adjust("50 seconds")
      expect(yield* Ref.get(turns)).toBe(2)
      yield* TestClock.adjust("10 seconds")
      expect(yield* Ref.get(turns)).toBe(3)
    })
  )
)

it.effect("aligns wake-ups of reconcilers with long intervals, never later than declared", () =>
  supervised(
    Effect.gen(function* () {
      const turns = new Map<string, Array<number>>()
      const start = (id: string, every: Duration.Input) => {
        const times: Array<number> = []
        turns.set(id, times)
        return reconciler({ id, every, turn: Effect.map(monotonicMillis, (now) => void times.push(now / 1_000)) })
      }
      yield* start("first", "10 seconds")
      yield* TestClock.adjust("3 seconds")
      yield* start("second", "15 seconds")
      yield* start("third", "9 seconds")
      yield* start("waits to be woken", Duration.infinity)
      yield* TestClock.adjust("32 seconds")
      expect(Object.fromEntries(turns)).toEqual({
        first: [0, 10, 20, 30],
        second: [3, 15, 30],
        third: [3, 12, 21, 30],
        "waits to be woken": [3]
      })
    })
  )
)

it.effect("a turn's typed failure retries on the next tick without counting restarts", () =>
  supervised(
    Effect.gen(function* () {
      const turns = yield* Ref.make(0)
      yield* reconciler({
        id: "r",
        every: "1 second",
        turn: Effect.andThen(
          Ref.update(turns, (n) => n + 1),
          Effect.fail("database away")
        )
      })
      yield* TestClock.adjust("1 minute")
      expect(yield* Ref.get(turns)).toBe(61)
      expect(yield* (yield* Supervisor).actors).toMatchObject([{ actor: "kernel/r", state: "running", restarts: 0 }])
    })
  )
)

it.effect("publishes a reconciler's last run: when, why, how long, outcome", () =>
  supervised(
    Effect.gen(function* () {
      const { actors } = yield* Supervisor
      let isUnavailable = false
      const turn = Effect.andThen(
        Effect.sleep("200 millis"),
        Effect.suspend(() => (isUnavailable ? Effect.fail("the ledger is silent") : Effect.void))
      )
      const { wake } = yield* reconciler({ id: "r", every: "5 seconds", turn })
      const lastRun = Effect.map(actors, ([one]) => {
        if (one?.lastRun === undefined) return undefined
        const { cause, durationMillis, endedAtMillis, outcome } = one.lastRun
        return [endedAtMillis, cause, durationMillis, outcome]
      })
      yield* TestClock.adjust("199 millis")
      expect(yield* lastRun).toBeUndefined()
      yield* TestClock.adjust("1 millis")
      expect(yield* lastRun).toEqual([200, "start", 200, "succeeded"])
      isUnavailable = true
      yield* TestClock.adjust("5200 millis")
      expect(yield* lastRun).toEqual([5_400, "timer", 200, "failed"])
      isUnavailable = false
      yield* wake
      yield* TestClock.adjust("200 millis")
      expect(yield* lastRun).toEqual([5_600, "wake", 200, "succeeded"])
    })
  )
)

it.effect("a turn that dies is published as failed", () =>
  supervised(
    Effect.gen(function* () {
      yield* reconciler({ id: "r", every: "1 minute", turn: Effect.die("a bug") })
      yield* TestClock.adjust("1 millis")
      expect(yield* (yield* Supervisor).actors).toMatchObject([{ lastRun: { cause: "start", outcome: "failed" } }])
    })
  )
)

it.effect("logs a failing turn once a minute, and its recovery", () => {
  const said: Array<string> = []
  const received = Logger.layer([
    Logger.make<unknown, void>(({ message }) => void said.push(String([message].flat()[0])))
  ])
  let isUnavailable = true
  return supervised(
    Effect.gen(function* () {
      yield* reconciler({
        id: "follower",
        every: "250 millis",
        turn: Effect.suspend(() => (isUnavailable ? Effect.fail(new Error("the ledger is silent")) : Effect.void))
      })
      yield* TestClock.adjust("150 seconds")
      expect(said).toEqual(Array.from({ length: 3 }, () => "turn of follower failed; the next one retries"))
      isUnavailable = false
      yield* TestClock.adjust("1 second")
      expect(said.slice(3)).toEqual(["turn of follower succeeds again"])
    })
  ).pipe(Effect.provide(received))
})
