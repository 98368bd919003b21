// Effects with a deadline: the result in time, and the fate of a fiber that exceeds it.
import { describe, expect, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { shutdownFrom, withDeadline } from "../../../kernel/effect/withDeadline.ts"

const onTimeout = Effect.succeed("onTimeout")

describe("withDeadline", () => {
  it.effect("returns the effect's result, failure or defect within the deadline", () =>
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const patience = { timeout: "1 second", scope, onTimeout } as const
      expect(yield* withDeadline(Effect.succeed("now"), patience)).toBe("now")
      const gate = yield* Deferred.make<string>()
      const waiting = yield* Effect.forkChild(withDeadline(Deferred.await(gate), patience))
      yield* TestClock.adjust("900 millis")
      yield* Deferred.succeed(gate, "then")
      expect(yield* Fiber.join(waiting)).toBe("then")
      expect(yield* Effect.flip(withDeadline(Effect.fail("no"), patience))).toBe("no")
      expect(Exit.hasDies(yield* Effect.exit(withDeadline(Effect.die("odd"), patience)))).toBe(true)
    }).pipe(Effect.scoped)
  )

  it.effect("on timeout, continues while the abandoned fiber is interrupted in the background", () =>
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const reported: Array<string> = []
      const stuck = Effect.onInterrupt(Effect.never, () =>
        Effect.andThen(
          Effect.sync(() => reported.push("asked to stop")),
          Effect.sleep("1 hour")
        )
      )
      const waiting = yield* Effect.forkChild(
        withDeadline(stuck, {
          timeout: "1 second",
          scope: scope,
          onTimeout: onTimeout,
          onAbandon: () => void reported.push("left")
        })
      )
      yield* TestClock.adjust("999 millis")
      expect(waiting.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("1 millis")
      expect(yield* Fiber.join(waiting)).toBe("onTimeout")
      expect(reported).toEqual(["left", "asked to stop"])
      yield* TestClock.adjust("2 hours")
    }).pipe(Effect.scoped)
  )

  it.effect("each deadline fires at its own time beside other deadlines", () =>
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const patience = { timeout: "1 second", scope, onTimeout } as const
      const gate = yield* Deferred.make<string>()
      const begin = <A>(effect: Effect.Effect<A>) =>
        Effect.forkChild(withDeadline<A | string, never, never>(effect, patience), { startImmediately: true })
      const first = yield* begin(Effect.never)
      yield* TestClock.adjust("300 millis")
      const [second, gone] = [yield* begin(Effect.never), yield* begin(Deferred.await(gate))]
      yield* TestClock.adjust("300 millis")
      const third = yield* begin(Effect.never)
      yield* Deferred.succeed(gate, "done")
      expect(yield* Fiber.join(gone)).toBe("done")
      const over = () => [first, second, third].map((fiber) => fiber.pollUnsafe() !== undefined)
      for (const [millis, found] of [
        [399, [false, false, false]],
        [1, [true, false, false]],
        [299, [true, false, false]],
        [1, [true, true, false]],
        [299, [true, true, false]],
        [1, [true, true, true]]
      ] as const) {
        yield* TestClock.adjust(millis)
        expect(over()).toEqual(found)
      }
      // Once no waiter was left, the next one is served by a new timer.
      const last = yield* begin(Effect.never)
      yield* TestClock.adjust("1 second")
      expect(yield* Fiber.join(last)).toBe("onTimeout")
    }).pipe(Effect.scoped)
  )

  it.effect("each deadline follows its caller's clock", () =>
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const other = yield* TestClock.make()
      yield* other.setTime(3_600_000)
      const wait = withDeadline(Effect.never, { timeout: "1 second", scope: scope, onTimeout: onTimeout })
      const begin = (effect: Effect.Effect<string>) => Effect.forkChild(effect, { startImmediately: true })
      const others = yield* begin(Effect.provideService(wait, Clock.Clock, other))
      const own = yield* begin(wait)
      yield* TestClock.adjust("999 millis")
      expect([others.pollUnsafe(), own.pollUnsafe()]).toEqual([undefined, undefined])
      yield* other.adjust("1 second")
      expect(yield* Fiber.join(others)).toBe("onTimeout")
      expect(own.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("1 millis")
      expect(yield* Fiber.join(own)).toBe("onTimeout")
    }).pipe(Effect.scoped)
  )

  it.effect("a deadline may be infinite", () =>
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const gate = yield* Deferred.make<string>()
      const waiting = yield* Effect.forkChild(
        withDeadline(Deferred.await(gate), { timeout: "Infinity", scope: scope, onTimeout: onTimeout })
      )
      yield* TestClock.adjust("400 days")
      expect(waiting.pollUnsafe()).toBeUndefined()
      yield* Deferred.succeed(gate, "then")
      expect(yield* Fiber.join(waiting)).toBe("then")
    }).pipe(Effect.scoped)
  )

  it.effect("a deadline fires inside an uninterruptible region", () =>
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const waiting = yield* Effect.forkChild(
        Effect.uninterruptible(withDeadline(Effect.never, { timeout: "1 second", scope: scope, onTimeout: onTimeout }))
      )
      yield* TestClock.adjust("1 second")
      expect(yield* Fiber.join(waiting)).toBe("onTimeout")
    }).pipe(Effect.scoped)
  )

  it.effect("interrupting the caller interrupts the effect", () =>
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const stopped = yield* Deferred.make<void>()
      const work = Effect.onInterrupt(Effect.never, () => Deferred.succeed(stopped, undefined))
      const waiting = yield* Effect.forkChild(
        withDeadline(work, { timeout: "1 second", scope: scope, onTimeout: onTimeout })
      )
      yield* Effect.yieldNow
      yield* Fiber.interrupt(waiting)
      for (let turns = 0; turns < 10; turns++) yield* Effect.yieldNow
      const isStopped = yield* Deferred.isDone(stopped)
      // In either case no timer is left when the test ends.
      yield* TestClock.adjust("1 second")
      expect(isStopped).toBe(true)
    }).pipe(Effect.scoped)
  )

  it.effect("a shared cancellation ends every wait, also when it already happened", () =>
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const stop = yield* Deferred.make<void>()
      const cancelOn = yield* shutdownFrom(Deferred.await(stop))
      const patience = { timeout: "1 hour", scope, onTimeout, cancelOn } as const
      const waiting = yield* Effect.forkChild(
        Effect.all([withDeadline(Effect.never, patience), withDeadline(Effect.never, patience)], { concurrency: 2 })
      )
      yield* Effect.yieldNow
      expect(yield* withDeadline(Effect.succeed("now"), patience)).toBe("now")
      expect(waiting.pollUnsafe()).toBeUndefined()
      yield* Deferred.succeed(stop, undefined)
      expect(yield* Fiber.join(waiting)).toEqual(["onTimeout", "onTimeout"])
      expect(yield* withDeadline(Effect.never, patience)).toBe("onTimeout")
    }).pipe(Effect.scoped)
  )

  it.effect("closing the scope ends waits and starts no new effect", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const ended = yield* Deferred.make<void>()
      let isStopping = false
      const stuck = Effect.onInterrupt(Effect.never, () => {
        isStopping = true
        return Deferred.await(ended)
      })
      const patience = { timeout: "1 hour", scope, onTimeout } as const
      const waiting = yield* Effect.forkChild(withDeadline(stuck, patience), { startImmediately: true })
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      expect([isStopping, closing.pollUnsafe()]).toEqual([true, undefined])
      yield* Deferred.succeed(ended, undefined)
      yield* Fiber.join(closing)
      expect(yield* Fiber.join(waiting)).toBe("onTimeout")
      let isBegun = false
      const after = Effect.sync(() => (isBegun = true))
      expect(yield* withDeadline<boolean | string, never, never>(after, patience)).toBe("onTimeout")
      expect(isBegun).toBe(false)
    })
  )

  it.effect("maps foreign interruption to onTimeout", () =>
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const patience = { timeout: "1 hour", scope, onTimeout } as const
      expect(yield* withDeadline(Effect.interrupt, patience)).toBe("onTimeout")
      const gate = yield* Deferred.make<string>()
      const waiting = yield* Effect.forkChild(withDeadline(Deferred.await(gate), patience), { startImmediately: true })
      yield* Deferred.interrupt(gate)
      expect(yield* Fiber.join(waiting)).toBe("onTimeout")
    }).pipe(Effect.scoped)
  )
})
