import { expect, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { Limits } from "../../../../kernel/config/Limits.ts"
import { LedgerClock } from "../../../../kernel/ledger/LedgerClock.ts"
import { LedgerUnavailable } from "../../../../kernel/ledger/LedgerUnavailable.ts"
import { ChannelPool } from "../../../../kernel/settlement/channels/ChannelPool.ts"
import { type ChannelLease, ChannelStore } from "../../../../kernel/settlement/channels/ChannelStore.ts"
import { limitValues } from "../store.ts"

const leaseOf = (number: number): ChannelLease => ({
  address: `channel-${number}`,
  fence: BigInt(number),
  sequence: 1n
})

/** A store that gives what is put into it; taking takes as long as `delay`. */
const makeStore = (delay = Duration.zero) => {
  const free: Array<ChannelLease> = []
  const released: Array<string> = []
  const asked = { times: 0 }
  const store = ChannelStore.of({
    take: Effect.andThen(
      Effect.sleep(delay),
      Effect.sync(() => {
        asked.times += 1
        return Option.fromUndefinedOr(free.shift())
      })
    ),
    release: (lease) => Effect.sync(() => void released.push(lease.address)),
    learn: () => Effect.void,
    correct: () => Effect.succeed(false),
    counts: Effect.succeed({ ready: 0, free: 0 })
  })
  return { free, released, asked, store }
}

const poolOf = (
  store: ChannelStore["Service"],
  options: { readonly wait?: Duration.Duration; readonly secondsPerLedger?: number } = {}
) =>
  ChannelPool.layer.pipe(
    Layer.provide(
      Layer.mergeAll(
        Layer.succeed(ChannelStore, store),
        Layer.succeed(Limits, { ...limitValues, channelWait: options.wait }),
        Layer.succeed(LedgerClock, {
          now:
            options.secondsPerLedger === undefined
              ? Effect.fail(new LedgerUnavailable({ operation: "getLatestLedger", message: "away" }))
              : Effect.succeed({ sequence: 1_000, closedAtSeconds: 0, secondsPerLedger: options.secondsPerLedger })
        } as never)
      )
    )
  )

describe("the channel pool", () => {
  it.effect("serves those who wait in order of arrival, as channels come free [S84, S340]", () => {
    const { free, store } = makeStore()
    return Effect.gen(function* () {
      const pool = yield* ChannelPool
      const served: Array<string> = []
      const waiters = yield* Effect.forEach([1, 2, 3, 4, 5], (caller) =>
        pool.lease.pipe(
          Effect.tap((lease) => Effect.sync(() => served.push(`${caller} ${Option.getOrThrow(lease).address}`))),
          Effect.forkChild({ startImmediately: true })
        )
      )
      for (const number of [1, 2, 3, 4, 5]) {
        free.push(leaseOf(number))
        yield* pool.freed
        yield* TestClock.adjust("10 millis")
      }
      yield* Effect.forEach(waiters, Fiber.join)
      expect(served).toEqual([1, 2, 3, 4, 5].map((number) => `${number} channel-${number}`))
    }).pipe(Effect.provide(poolOf(store, { wait: Duration.seconds(5) })))
  })

  it.effect("looks again without being told: another replica may have freed a channel", () => {
    const { free, store } = makeStore()
    return Effect.gen(function* () {
      const waiter = yield* Effect.forkChild((yield* ChannelPool).lease)
      yield* TestClock.adjust("1 second")
      free.push(leaseOf(1))
      yield* TestClock.adjust("250 millis")
      expect(yield* Fiber.join(waiter)).toEqual(Option.some(leaseOf(1)))
    }).pipe(Effect.provide(poolOf(store, { wait: Duration.seconds(5) })))
  })

  it.effect("gives up after its wait, and lets only the head of the queue ask [S84]", () => {
    const { asked, store } = makeStore()
    return Effect.gen(function* () {
      const pool = yield* ChannelPool
      const waiters = yield* Effect.forEach(Array.from({ length: 50 }), () => Effect.forkChild(pool.lease))
      yield* TestClock.adjust("999 millis")
      expect(waiters.every((waiter) => waiter.pollUnsafe() === undefined)).toBe(true)
      expect(asked.times).toBeLessThanOrEqual(5)
      yield* TestClock.adjust("1 millis")
      expect(yield* Effect.forEach(waiters, Fiber.join)).toEqual(waiters.map(() => Option.none()))
    }).pipe(Effect.provide(poolOf(store, { wait: Duration.seconds(1) })))
  })

  it.effect(
    "waits one close interval and three seconds when nothing else is set, eight when the ledger is silent",
    () =>
      Effect.gen(function* () {
        for (const [secondsPerLedger, millis] of [
          [5, 8_000],
          [1, 4_000],
          [undefined, 8_000]
        ] as const) {
          const layer = poolOf(makeStore().store, secondsPerLedger === undefined ? {} : { secondsPerLedger })
          yield* Effect.gen(function* () {
            const waiter = yield* Effect.forkChild((yield* ChannelPool).lease)
            yield* TestClock.adjust(millis - 1)
            expect(waiter.pollUnsafe()).toBeUndefined()
            yield* TestClock.adjust(1)
            expect(yield* Fiber.join(waiter)).toEqual(Option.none())
          }).pipe(Effect.provide(layer))
        }
      })
  )

  it.effect("answers at once when two thousand wait already", () => {
    const { store } = makeStore()
    return Effect.gen(function* () {
      const pool = yield* ChannelPool
      const waiters = yield* Effect.forEach(Array.from({ length: 2_000 }), () =>
        Effect.forkChild(pool.lease, { startImmediately: true })
      )
      expect(yield* pool.lease).toEqual(Option.none())
      yield* Effect.forEach(waiters, Fiber.interrupt, { concurrency: "unbounded" })
      const again = yield* Effect.forkChild(pool.lease)
      yield* TestClock.adjust("1 second")
      expect(again.pollUnsafe()).toBeUndefined()
    }).pipe(Effect.provide(poolOf(store, { wait: Duration.seconds(5) })))
  })

  it.effect("hands over a lease that was being taken when the wait ended", () => {
    const { free, store } = makeStore(Duration.millis(100))
    return Effect.gen(function* () {
      free.push(leaseOf(1))
      const waiter = yield* Effect.forkChild((yield* ChannelPool).lease)
      yield* TestClock.adjust("100 millis")
      expect(yield* Fiber.join(waiter)).toEqual(Option.some(leaseOf(1)))
    }).pipe(Effect.provide(poolOf(store, { wait: Duration.millis(50) })))
  })

  it.effect("gives a lease back whose taker was interrupted meanwhile", () => {
    const { free, released, store } = makeStore(Duration.millis(100))
    return Effect.gen(function* () {
      free.push(leaseOf(1))
      const waiter = yield* Effect.forkChild((yield* ChannelPool).lease)
      yield* TestClock.adjust("50 millis")
      const interrupting = yield* Effect.forkChild(Fiber.interrupt(waiter))
      yield* TestClock.adjust("50 millis")
      yield* Fiber.join(interrupting)
      expect(released).toEqual(["channel-1"])
    }).pipe(Effect.provide(poolOf(store, { wait: Duration.seconds(5) })))
  })
})
