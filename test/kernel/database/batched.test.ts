import { expect, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Latch, Scope } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { batched } from "../../../kernel/database/batched.ts"

/** Statements that wait until they are released, with the contents of each. */
const makeStatements = Effect.fnUntraced(function* (callsMax: number) {
  const gate = yield* Latch.make()
  const held: Array<ReadonlyArray<string>> = []
  const call = yield* batched({
    maxBatchSize: callsMax,
    keyOf: (word: string) => word[0]!,
    runBatch: Effect.fnUntraced(function* (words: ReadonlyArray<string>) {
      held.push(words)
      yield* gate.await
      if (words.includes("bad")) return yield* Effect.fail("refused" as const)
      return words.map((word) => word.toUpperCase())
    })
  })
  /** Waits until `count` statements have begun. */
  const begun = (count: number) =>
    Effect.whileLoop({ while: () => held.length < count, body: () => Effect.yieldNow, step: () => undefined })
  return { begun, gate, held, call }
})

const ask = (call: (word: string) => Effect.Effect<string, string>, words: ReadonlyArray<string>) =>
  Effect.forEach(words, (word) => Effect.forkChild(Effect.exit(call(word)), { startImmediately: true }))

describe("batched calls", () => {
  it.effect("concurrent calls share a statement; later ones share the next", () =>
    Effect.gen(function* () {
      const { begun, call, gate, held } = yield* makeStatements(10)
      const first = yield* ask(call, ["a", "b"])
      yield* begun(1)
      const second = yield* ask(call, ["c", "d", "e"])
      yield* gate.open
      const answers = yield* Effect.forEach([...first, ...second], Fiber.join)
      expect(answers).toEqual(["A", "B", "C", "D", "E"].map((word) => Exit.succeed(word)))
      expect(held).toEqual([
        ["a", "b"],
        ["c", "d", "e"]
      ])
      // And again, once no statement was running.
      expect(yield* call("f")).toBe("F")
    })
  )

  it.effect("a batch has one call per key and a maximum size", () =>
    Effect.gen(function* () {
      const { call, gate, held } = yield* makeStatements(2)
      yield* gate.open
      const calls = yield* ask(call, ["a1", "a2", "b1", "a3", "c1"])
      expect(yield* Effect.forEach(calls, Fiber.join)).toEqual(
        ["A1", "A2", "B1", "A3", "C1"].map((word) => Exit.succeed(word))
      )
      expect(held).toEqual([["a1", "b1"], ["a2", "c1"], ["a3"]])
    })
  )

  it.effect("any batched calls share a statement unless keys are set", () =>
    Effect.gen(function* () {
      const held: Array<ReadonlyArray<string>> = []
      const call = yield* batched({
        maxBatchSize: 2,
        runBatch: (words: ReadonlyArray<string>) =>
          Effect.sync(() => {
            held.push(words)
            return words
          })
      })
      const calls = yield* ask(call, ["same", "same", "same"])
      expect(yield* Effect.forEach(calls, Fiber.join)).toEqual(
        ["same", "same", "same"].map((word) => Exit.succeed(word))
      )
      expect(held).toEqual([["same", "same"], ["same"]])
    })
  )

  it.effect("batches keep the minimum interval; the first runs immediately", () =>
    Effect.gen(function* () {
      const held: Array<{ readonly words: ReadonlyArray<string>; readonly at: number }> = []
      const call = yield* batched({
        maxBatchSize: 10,
        minIntervalMillis: 25,
        runBatch: Effect.fnUntraced(function* (words: ReadonlyArray<string>) {
          held.push({ words, at: yield* Clock.currentTimeMillis })
          return words
        })
      })
      const from = yield* Clock.currentTimeMillis
      const begun = () => held.map(({ at, words }) => [words.join(""), at - from])
      expect(yield* call("a")).toBe("a")
      yield* TestClock.adjust("10 millis")
      const second = yield* ask(call, ["b"])
      yield* TestClock.adjust("10 millis")
      const third = yield* ask(call, ["c"])
      yield* TestClock.adjust("4 millis")
      expect(begun()).toEqual([["a", 0]])
      yield* TestClock.adjust("1 millis")
      yield* Effect.forEach([...second, ...third], Fiber.join)
      yield* TestClock.adjust("100 millis")
      expect(yield* call("d")).toBe("d")
      expect(begun()).toEqual([
        ["a", 0],
        ["bc", 25],
        ["d", 125]
      ])
    })
  )

  it.effect("a clock set back does not prolong a batch's wait", () =>
    Effect.gen(function* () {
      let elapsed = 1_000_000n
      const clock: Clock.Clock = Object.assign(Object.create(yield* Clock.Clock), {
        monotonicTimeNanos: Effect.sync(() => elapsed * 1_000_000n)
      })
      const test = Effect.gen(function* () {
        const call = yield* batched({
          maxBatchSize: 10,
          minIntervalMillis: 25,
          runBatch: (words: ReadonlyArray<string>) => Effect.succeed(words)
        })
        yield* call("a")
        elapsed = 1_000n
        const [second] = yield* ask(call, ["b"])
        yield* TestClock.adjust("1 millis")
        expect(second!.pollUnsafe()).toEqual(Exit.succeed(Exit.succeed("b")))
      })
      yield* Effect.provideService(test, Clock.Clock, clock)
    })
  )

  it.effect("orders batched calls by key and returns each its own answer", () =>
    Effect.gen(function* () {
      const { call, gate, held } = yield* makeStatements(10)
      yield* gate.open
      const calls = yield* ask(call, ["c", "a", "d", "b"])
      expect(yield* Effect.forEach(calls, Fiber.join)).toEqual(["C", "A", "D", "B"].map((word) => Exit.succeed(word)))
      expect(held).toEqual([["a", "b", "c", "d"]])
    })
  )

  it.effect("a failed statement fails its own batch only", () =>
    Effect.gen(function* () {
      const { call, gate } = yield* makeStatements(2)
      yield* gate.open
      const calls = yield* ask(call, ["a", "bad", "c"])
      expect(yield* Effect.forEach(calls, Fiber.join)).toEqual([
        Exit.fail("refused"),
        Exit.fail("refused"),
        Exit.succeed("C")
      ])
    })
  )

  it.effect("a call interrupted before its statement leaves the batch", () =>
    Effect.gen(function* () {
      const { begun, call, gate, held } = yield* makeStatements(1)
      const [first, second, third] = yield* ask(call, ["a", "b", "c"])
      yield* begun(1)
      yield* Fiber.interrupt(second!)
      yield* gate.open
      yield* Effect.forEach([first!, third!], Fiber.join)
      expect(held).toEqual([["a"], ["c"]])
    })
  )

  it.effect("other batched calls survive an interrupted caller and end with the Scope", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { begun, call, gate } = yield* Scope.provide(makeStatements(1), scope)
      const [gone, other, last] = yield* ask(call, ["a", "b", "c"])
      yield* begun(1)
      yield* Fiber.interrupt(gone!)
      yield* gate.release
      yield* begun(2)
      yield* gate.release
      expect(yield* Fiber.join(other!)).toEqual(Exit.succeed("B"))
      yield* Scope.close(scope, Exit.void)
      expect(Exit.hasInterrupts(yield* Fiber.join(last!))).toBe(true)
      // Later calls do not wait forever.
      for (const word of ["d", "e"]) expect(Exit.hasInterrupts(yield* Effect.exit(call(word)))).toBe(true)
    })
  )

  it.effect("does not propagate interruption to other batches", () =>
    Effect.gen(function* () {
      const call = yield* batched({
        maxBatchSize: 1,
        runBatch: (words: ReadonlyArray<string>) => (words[0] === "cut" ? Effect.interrupt : Effect.succeed(words))
      })
      const [cut, other] = yield* ask(call, ["cut", "other"])
      expect(Exit.hasInterrupts(yield* Fiber.join(cut!))).toBe(true)
      expect(yield* Fiber.join(other!)).toEqual(Exit.succeed("other"))
    })
  )
})
