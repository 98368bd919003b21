// Query vectors, their circuit breaker, and the validation of a provider's response.
import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { CircuitBreaker } from "../../../plugins/search-semantic/provider/CircuitBreaker.ts"
import {
  checkVector,
  Embedder,
  EmbeddingFailed,
  type EmbeddingRequest
} from "../../../plugins/search-semantic/provider/Embedder.ts"
import { QueryVectors } from "../../../plugins/search-semantic/provider/QueryVectors.ts"

const request: EmbeddingRequest = { url: "", model: "one", dimension: 2, texts: ["x"], timeoutMillis: 1_000 }
const broken = (perhapsTheTexts = false) => Effect.fail(new EmbeddingFailed({ message: "no", perhapsTheTexts }))

/** Query vectors over a provider that responds as configured; counts its requests. */
const made = Effect.fnUntraced(function* (
  answer: Effect.Effect<ReadonlyArray<Float32Array>, EmbeddingFailed>,
  entriesMax = 10
) {
  let asked = 0
  const counting = Effect.sync(() => asked++)
  const parts = yield* QueryVectors.layer({ entriesMax, patienceMillis: 300 }).pipe(
    Layer.provideMerge(CircuitBreaker.layer({ failures: 2, millis: 1_000 })),
    Layer.provide(Layer.succeed(Embedder, { embed: () => Effect.andThen(counting, answer) })),
    Layer.build
  )
  return {
    vector: Context.get(parts, QueryVectors).vector,
    breaker: Context.get(parts, CircuitBreaker),
    asked: () => asked
  }
})

describe("a provider's answer", () => {
  it("a provider's vector must be finite, nonzero and of the configured length [S296]", () => {
    expect(checkVector([3, 4], 2)).toEqual(Float32Array.of(0.6, 0.8))
    for (const lie of [[1], [1, 2, 3], [], [Number.NaN, 1], [1, Infinity], [0, 0], [1e200, 1e200]])
      expect(typeof checkVector(lie, 2)).toBe("string")
  })
})

describe("query vectors", () => {
  it.effect("concurrent requests for one query share one embedding, then cached", () =>
    Effect.gen(function* () {
      const { asked, vector } = yield* made(Effect.delay(Effect.succeed([Float32Array.of(1, 0)]), "10 millis"), 2)
      const many = yield* Effect.forkChild(
        Effect.all(
          Array.from({ length: 5 }, () => vector("a", request)),
          { concurrency: "unbounded" }
        )
      )
      yield* TestClock.adjust("10 millis")
      yield* Fiber.join(many)
      expect(asked()).toBe(1)
      for (const key of ["b", "a", "c", "a"]) {
        const one = yield* Effect.forkChild(vector(key, request))
        yield* TestClock.adjust("10 millis")
        yield* Fiber.join(one)
      }
      expect(asked()).toBe(3)
      const again = yield* Effect.forkChild(vector("b", request))
      yield* TestClock.adjust("10 millis")
      yield* Fiber.join(again)
      expect(asked()).toBe(4)
    })
  )

  it.effect("waiters get their vector when the first search is canceled", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { asked, vector } = yield* made(Effect.as(Deferred.await(gate), [Float32Array.of(1, 0)]))
      const first = yield* Effect.forkChild(vector("a", request), { startImmediately: true })
      const second = yield* Effect.forkChild(vector("a", request), { startImmediately: true })
      yield* Fiber.interrupt(first)
      yield* Deferred.succeed(gate, undefined)
      expect(yield* Fiber.join(second)).toEqual(Float32Array.of(1, 0))
      expect(asked()).toBe(1)
    })
  )

  it.effect("a failing provider's circuit opens, probes once and closes on success [S128, S296]", () =>
    Effect.gen(function* () {
      let isBroken = true
      const { asked, breaker, vector } = yield* made(
        Effect.suspend(() => (isBroken ? broken() : Effect.succeed([Float32Array.of(1, 0)])))
      )
      for (const key of ["a", "b", "c", "d"]) yield* Effect.flip(vector(key, request))
      expect([asked(), yield* breaker.isOpen, breaker.trouble()]).toEqual([2, true, "no"])
      yield* TestClock.adjust("1 second")
      yield* Effect.flip(vector("e", request))
      yield* Effect.flip(vector("f", request))
      expect(asked()).toBe(3)
      yield* TestClock.adjust("1 second")
      isBroken = false
      yield* vector("g", request)
      yield* vector("h", request)
      expect([asked(), yield* breaker.isOpen, breaker.trouble()]).toEqual([5, false, undefined])
    })
  )

  it.effect("a slow provider delays search once by 300 ms, then not again [S128, S296]", () =>
    Effect.gen(function* () {
      let takes = 60_000
      const { asked, breaker, vector } = yield* made(
        Effect.suspend(() => Effect.delay(Effect.succeed([Float32Array.of(1, 0)]), takes))
      )
      const hurried = (key: string) => Effect.exit(vector(key, request, true))
      const first = yield* Effect.forkChild(hurried("a"), { startImmediately: true })
      yield* TestClock.adjust("299 millis")
      expect(first.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("1 millis")
      expect((yield* Fiber.join(first))._tag).toBe("Failure")
      // No clock moves from here on: these do not wait, and the provider is not called again.
      for (const key of ["b", "c"]) expect((yield* hurried(key))._tag).toBe("Failure")
      expect([asked(), breaker.trouble()]).toEqual([1, "the endpoint is slow"])
      // After a second one search probes in the background, without waiting; slow again, the circuit stays open.
      takes = 400
      yield* TestClock.adjust("1 second")
      expect((yield* hurried("d"))._tag).toBe("Failure")
      expect((yield* hurried("e"))._tag).toBe("Failure")
      yield* TestClock.adjust("400 millis")
      expect(asked()).toBe(2)
      expect((yield* hurried("e"))._tag).toBe("Failure")
      // Its vector is cached nevertheless.
      expect((yield* hurried("d"))._tag).toBe("Success")
      takes = 10
      yield* TestClock.adjust("1 second")
      expect((yield* hurried("f"))._tag).toBe("Failure")
      yield* TestClock.adjust("10 millis")
      expect(breaker.trouble()).toBeUndefined()
      const forgiven = yield* Effect.forkChild(hurried("g"), { startImmediately: true })
      yield* TestClock.adjust("10 millis")
      expect((yield* Fiber.join(forgiven))._tag).toBe("Success")
      // A search without another branch waits as long as configured.
      takes = 400
      const alone = yield* Effect.forkChild(vector("h", request), { startImmediately: true })
      yield* TestClock.adjust("400 millis")
      expect(yield* Fiber.join(alone)).toEqual(Float32Array.of(1, 0))
    })
  )

  it.effect("texts that cannot be embedded do not open the circuit", () =>
    Effect.gen(function* () {
      const { asked, breaker, vector } = yield* made(broken(true))
      for (const key of ["a", "b", "c", "d"]) yield* Effect.flip(vector(key, request))
      expect([asked(), yield* breaker.isOpen]).toEqual([4, false])
    })
  )
})
