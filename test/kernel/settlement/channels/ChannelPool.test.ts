import { expect, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import { Limits } from "../../../../kernel/config/Limits.ts"
import { LedgerClock } from "../../../../kernel/ledger/LedgerClock.ts"
import { LedgerUnavailable } from "../../../../kernel/ledger/LedgerRpc.ts"
import { ChannelCount } from "../../../../kernel/settlement/channels/ChannelCount.ts"
import { ChannelPool } from "../../../../kernel/settlement/channels/ChannelPool.ts"
import { type ChannelLease, ChannelStore } from "../../../../kernel/settlement/channels/ChannelStore.ts"
import { limitValues } from "../store.ts"
import { layerTest } from "../../../support/layerTest.ts"

const leaseOf = (number: number): ChannelLease => ({
  address: `channel-${number}`,
  fence: BigInt(number),
  sequence: 1n
})

/**
 * A store that leases the channels put into it, after `delay`. Leasing and releasing are interruptible, as database
 * statements are.
 */
const makeStore = (delay = Duration.zero) => {
  const free: Array<ChannelLease> = []
  const released: Array<string> = []
  const asked = { times: 0 }
  const store = ChannelStore.of({
    distrust: () => Effect.void,
    onDistrusted: () => Effect.void,
    take: (count) =>
      Effect.andThen(
        Effect.interruptible(Effect.sleep(delay)),
        Effect.sync(() => {
          asked.times += 1
          return free.splice(0, count)
        })
      ),
    release: (lease) =>
      Effect.andThen(
        Effect.interruptible(Effect.yieldNow),
        Effect.sync(() => void released.push(lease.address))
      ),
    learn: () => Effect.void,
    correct: () => Effect.succeed(false),
    counts: Effect.succeed({ ready: 0, free: 0 })
  })
  return { free, released, asked, store }
}

const poolOf = (
  store: ChannelStore["Service"],
  options: {
    readonly wait?: Duration.Duration
    readonly secondsPerLedger?: number
    /** Number of channels; by default enough that none is refused a place for lack of channels. */
    readonly channels?: number
  } = {}
) =>
  ChannelPool.layer.pipe(
    Layer.provide(
      Layer.mergeAll(
        Layer.succeed(ChannelStore, store),
        Layer.succeed(Limits, { ...limitValues, channelWait: options.wait }),
        Layer.succeed(ChannelCount, {
          known: () => options.channels ?? 10_000,
          heed: () => options.channels ?? 10_000,
          read: Effect.succeed(options.channels ?? 10_000)
        }),
        layerTest(LedgerClock, {
          now:
            options.secondsPerLedger === undefined
              ? Effect.fail(new LedgerUnavailable({ operation: "getLatestLedger", message: "away" }))
              : Effect.succeed({
                  sequence: 1_000,
                  closedAtSeconds: 0,
                  secondsPerLedger: options.secondsPerLedger,
                  fastestSecondsPerLedger: options.secondsPerLedger,
                  isFirstWord: false
                })
        })
      )
    )
  )

/** A place and, once its turn has come, a channel; refused immediately if there is no place. */
const leaseAs = (principal: string) =>
  Effect.gen(function* () {
    const place = yield* (yield* ChannelPool).enter(principal, Duration.seconds(25))
    return place._tag === "Full" ? place : yield* place.lease
  })
const lease = leaseAs("key:a")
/** Begins to wait, and records its turn when it gets a channel. */
const asking = (served: Array<string>) => (principal: string) =>
  leaseAs(principal).pipe(
    Effect.tap(() => Effect.sync(() => served.push(principal))),
    Effect.forkChild({ startImmediately: true })
  )

describe("the channel pool", () => {
  it.effect("serves waiters in order of arrival as channels become free [S84, S340]", () => {
    const { free, store } = makeStore()
    return Effect.gen(function* () {
      const pool = yield* ChannelPool
      const served: Array<string> = []
      const waiters = yield* Effect.forEach([1, 2, 3, 4, 5], (caller) =>
        lease.pipe(
          Effect.map((given) => given as Option.Option<ChannelLease>),
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

  it.effect("polls without notification, as another replica may have freed a channel", () => {
    const { free, store } = makeStore()
    return Effect.gen(function* () {
      const waiter = yield* Effect.forkChild(lease)
      yield* TestClock.adjust("1 second")
      free.push(leaseOf(1))
      yield* TestClock.adjust("250 millis")
      expect(yield* Fiber.join(waiter)).toEqual(Option.some(leaseOf(1)))
    }).pipe(Effect.provide(poolOf(store, { wait: Duration.seconds(5) })))
  })

  it.effect("times out after its wait; only the queue's head asks the store [S84]", () => {
    const { asked, store } = makeStore()
    return Effect.gen(function* () {
      const waiters = yield* Effect.forEach(Array.from({ length: 50 }), () => Effect.forkChild(lease))
      yield* TestClock.adjust("999 millis")
      expect(waiters.every((waiter) => waiter.pollUnsafe() === undefined)).toBe(true)
      expect(asked.times).toBeLessThanOrEqual(5)
      yield* TestClock.adjust("1 millis")
      expect(yield* Effect.forEach(waiters, Fiber.join)).toEqual(waiters.map(() => Option.none()))
    }).pipe(Effect.provide(poolOf(store, { wait: Duration.seconds(1) })))
  })

  it.effect("waits one close interval plus three seconds by default, eight without a ledger", () =>
    Effect.gen(function* () {
      for (const [secondsPerLedger, millis] of [
        [5, 8_000],
        [1, 4_000],
        [undefined, 8_000]
      ] as const) {
        const layer = poolOf(makeStore().store, secondsPerLedger === undefined ? {} : { secondsPerLedger })
        yield* Effect.gen(function* () {
          const waiter = yield* Effect.forkChild(lease)
          yield* TestClock.adjust(millis - 1)
          expect(waiter.pollUnsafe()).toBeUndefined()
          yield* TestClock.adjust(1)
          expect(yield* Fiber.join(waiter)).toEqual(Option.none())
        }).pipe(Effect.provide(layer))
      }
    })
  )

  it.effect("admits 250 places per principal and 2,000 in total [S84]", () =>
    Effect.gen(function* () {
      const pool = yield* ChannelPool
      const enter = (principal: string) => pool.enter(principal, Duration.seconds(25))
      const places = yield* Effect.forEach(Array.from({ length: 250 }), () => enter("key:a"))
      expect(places.every(({ _tag }) => _tag === "Place")).toBe(true)
      expect(yield* enter("key:a")).toMatchObject({ _tag: "Full", retryAfterMillis: 1_000 })
      const others = yield* Effect.forEach(Array.from({ length: 1_750 }), (_, i) => enter(`key:b${i % 7}`))
      expect(others.every(({ _tag }) => _tag === "Place")).toBe(true)
      expect((yield* enter("key:c"))._tag).toBe("Full")
      const [first] = places
      if (first?._tag === "Place") yield* Effect.andThen(first.leave, first.leave)
      expect((yield* enter("key:c"))._tag).toBe("Place")
      expect((yield* enter("key:c"))._tag).toBe("Full")
    }).pipe(Effect.provide(poolOf(makeStore().store)))
  )

  it.effect("serves principals round-robin: five requests pass among another's two hundred", () => {
    const { free, store } = makeStore()
    return Effect.gen(function* () {
      const pool = yield* ChannelPool
      const served: Array<string> = []
      const ask = asking(served)
      const flood = yield* Effect.forEach(Array.from({ length: 200 }), () => ask("key:flood"))
      const calm = yield* Effect.forEach(Array.from({ length: 5 }), () => ask("key:calm"))
      for (let number = 1; number <= 11; number++) {
        free.push(leaseOf(number))
        yield* pool.freed
        yield* TestClock.adjust("10 millis")
      }
      expect(calm.every((fiber) => fiber.pollUnsafe() !== undefined)).toBe(true)
      // Only the flood was there when its first request became head, and its next one was queued before the calm.
      expect(served).toEqual(["key:flood", ...Array.from({ length: 5 }, () => ["key:flood", "key:calm"]).flat()])
      yield* Effect.forEach(flood, Fiber.interrupt, { concurrency: "unbounded" })
    }).pipe(Effect.provide(poolOf(store, { wait: Duration.seconds(20) })))
  })

  it.effect("refuses a hopeless wait immediately with a retry time, per caller's turn", () =>
    Effect.gen(function* () {
      // Two channels are released in 1.2 ledgers of 5 s each: a wait of 8 s is enough for one ledger, so for one more
      // request.
      const pool = yield* ChannelPool
      const enter = (principal: string) => pool.enter(principal, Duration.seconds(25))
      const tags = yield* Effect.forEach(Array.from({ length: 6 }), () => enter("key:flood"))
      expect(tags.map(({ _tag }) => _tag)).toEqual(["Place", "Place", "Place", "Full", "Full", "Full"])
      expect(tags.at(-1)).toEqual({ _tag: "Full", retryAfterMillis: 2_250 })
      // Its turn comes after one of the others, not after three.
      expect((yield* enter("key:calm"))._tag).toBe("Place")
      // A caller with less time left is refused sooner.
      expect((yield* pool.enter("key:late", Duration.seconds(1)))._tag).toBe("Full")
    }).pipe(Effect.provide(poolOf(makeStore().store, { secondsPerLedger: 5, channels: 2 })))
  )

  it.effect("refuses by the observed release rate, and retries once the queue is empty", () => {
    const { free, store } = makeStore()
    return Effect.gen(function* () {
      const enter = Effect.flatMap(ChannelPool, (pool) => pool.enter("key:a", Duration.seconds(25)))
      const waiter = yield* Effect.forkChild(lease, { startImmediately: true })
      yield* TestClock.adjust("1 second")
      expect((yield* enter)._tag).toBe("Place")
      yield* TestClock.adjust("2 seconds")
      // Two are queued before it, and no channel came in three seconds: three more seconds for each, of which it may
      // wait four.
      expect(yield* enter).toEqual({ _tag: "Full", retryAfterMillis: 5_250 })
      yield* TestClock.adjust("1 seconds")
      expect(yield* Fiber.join(waiter)).toEqual(Option.none())
      free.push(leaseOf(1))
      expect(yield* lease).toEqual(Option.some(leaseOf(1)))
    }).pipe(Effect.provide(poolOf(store, { secondsPerLedger: 1, channels: 20 })))
  })

  it.effect("leases channels freed by a ledger in one query, in turns [S84]", () => {
    const { asked, free, released, store } = makeStore()
    return Effect.gen(function* () {
      const pool = yield* ChannelPool
      const served: Array<string> = []
      const ask = asking(served)
      const waiters = yield* Effect.forEach(
        [...Array.from({ length: 30 }, () => "key:flood"), ...Array.from({ length: 5 }, () => "key:calm")],
        ask
      )
      const before = asked.times
      for (let number = 1; number <= 20; number++) free.push(leaseOf(number))
      yield* pool.freed
      yield* TestClock.adjust("10 millis")
      // One query for the twenty, and one by the next head, which finds none.
      expect(asked.times - before).toBe(2)
      expect(served).toHaveLength(20)
      expect(served.filter((principal) => principal === "key:calm")).toHaveLength(5)
      yield* Effect.forEach(waiters, Fiber.interrupt, { concurrency: "unbounded" })
      expect(released).toEqual([])
    }).pipe(Effect.provide(poolOf(store, { wait: Duration.seconds(20) })))
  })

  it.effect("releases leases of waiters that timed out during the query", () => {
    const { free, released, store } = makeStore(Duration.millis(100))
    return Effect.gen(function* () {
      const head = yield* Effect.forkChild(lease, { startImmediately: true })
      const others = yield* Effect.forEach([1, 2], () => Effect.forkChild(lease, { startImmediately: true }))
      // The head only asked for itself and found none; now it asks for three.
      yield* TestClock.adjust("150 millis")
      for (const number of [1, 2, 3]) free.push(leaseOf(number))
      yield* (yield* ChannelPool).freed
      yield* TestClock.adjust("50 millis")
      yield* Effect.forEach(others, Fiber.interrupt)
      yield* TestClock.adjust("50 millis")
      expect(yield* Fiber.join(head)).toEqual(Option.some(leaseOf(1)))
      expect(released).toEqual(["channel-2", "channel-3"])
    }).pipe(Effect.provide(poolOf(store, { wait: Duration.seconds(5) })))
  })

  it.effect("counts channels freed by a close for callers that return immediately [S84]", () => {
    const { free, store } = makeStore()
    return Effect.gen(function* () {
      const pool = yield* ChannelPool
      const enter = pool.enter("key:a", Duration.seconds(25))
      // Twenty are leased, and 44 wait for them: more than two ledgers.
      const waiters = yield* Effect.forEach(Array.from({ length: 44 }), () =>
        Effect.forkChild(lease, { startImmediately: true })
      )
      yield* TestClock.adjust("1 second")
      const places = yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.andThen(pool.freed, enter))
      expect(places.map(({ _tag }) => _tag)).toEqual(places.map(() => "Place"))
      // A channel taken by another replica no longer counts as released after the next poll.
      yield* TestClock.adjust("250 millis")
      expect((yield* enter)._tag).toBe("Full")
      expect(free).toEqual([])
      yield* Effect.forEach(waiters, Fiber.interrupt, { concurrency: "unbounded" })
    }).pipe(Effect.provide(poolOf(store, { secondsPerLedger: 1, channels: 20 })))
  })

  it.effect("frees the queue place once a channel is leased or released", () => {
    const { free, store } = makeStore()
    return Effect.gen(function* () {
      for (let number = 0; number < 300; number++) {
        free.push(leaseOf(number))
        expect(yield* lease).toEqual(Option.some(leaseOf(number)))
      }
    }).pipe(Effect.provide(poolOf(store)))
  })

  it.effect("hands over a lease that was being taken when the wait ended", () => {
    const { free, store } = makeStore(Duration.millis(100))
    return Effect.gen(function* () {
      free.push(leaseOf(1))
      const waiter = yield* Effect.forkChild(lease)
      yield* TestClock.adjust("100 millis")
      expect(yield* Fiber.join(waiter)).toEqual(Option.some(leaseOf(1)))
    }).pipe(Effect.provide(poolOf(store, { wait: Duration.millis(50) })))
  })

  it.effect("releases a lease whose waiter was interrupted meanwhile", () => {
    const { free, released, store } = makeStore(Duration.millis(100))
    return Effect.gen(function* () {
      free.push(leaseOf(1))
      const waiter = yield* Effect.forkChild(lease)
      yield* TestClock.adjust("50 millis")
      const interrupting = yield* Effect.forkChild(Fiber.interrupt(waiter))
      yield* TestClock.adjust("50 millis")
      yield* Fiber.join(interrupting)
      expect(released).toEqual(["channel-1"])
    }).pipe(Effect.provide(poolOf(store, { wait: Duration.seconds(5) })))
  })
})
