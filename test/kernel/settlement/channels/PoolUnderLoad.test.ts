// The pool for a minute of the tests' clock, over channels that are released with the ledger's closes: refusals are
// immediate, channels never lie idle, and a caller's few payments come through a flood.
import { expect, it } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { Limits } from "../../../../kernel/config/Limits.ts"
import { LedgerClock } from "../../../../kernel/ledger/LedgerClock.ts"
import { ChannelCount } from "../../../../kernel/settlement/channels/ChannelCount.ts"
import { ChannelPool } from "../../../../kernel/settlement/channels/ChannelPool.ts"
import { ChannelStore } from "../../../../kernel/settlement/channels/ChannelStore.ts"
import { limitValues } from "../store.ts"
import { layerTest } from "../../../support/layerTest.ts"

const seconds = 60
const channels = 20
/** From a ledger's close to the end of its settlements. */
const noticedMillis = 200
/** Time for a query to the store. */
const takenMillis = 10
/** Time for verification, between the place and the lease. */
const verifiedMillis = 40

const world = (ledgerSeconds: number) => {
  let free = channels
  const store = ChannelStore.of({
    distrust: () => Effect.void,
    onDistrusted: () => Effect.void,
    take: (count) =>
      Effect.sync(() => {
        const taken = Math.min(count, free)
        free -= taken
        return Array.from({ length: taken }, () => ({ address: "channel", fence: 1n, sequence: 1n }))
      }).pipe(Effect.delay(Duration.millis(takenMillis))),
    release: () => Effect.sync(() => void (free += 1)),
    learn: () => Effect.void,
    correct: () => Effect.succeed(false),
    counts: Effect.succeed({ ready: channels, free: 0 })
  })
  const layer = ChannelPool.layer.pipe(
    Layer.provide(
      Layer.mergeAll(
        Layer.succeed(ChannelStore, store),
        Layer.succeed(Limits, limitValues),
        Layer.succeed(ChannelCount, {
          known: () => channels,
          heed: () => channels,
          read: Effect.succeed(channels)
        }),
        layerTest(LedgerClock, {
          now: Effect.succeed({
            sequence: 1_000,
            closedAtSeconds: 0,
            secondsPerLedger: ledgerSeconds,
            fastestSecondsPerLedger: ledgerSeconds,
            isFirstWord: false
          })
        })
      )
    )
  )
  /** A channel is held until the next close that comes a moment after its transaction was sent, is noticed. */
  const hold = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const ledgerMillis = ledgerSeconds * 1_000
    const close = Math.ceil((now + 50) / ledgerMillis) * ledgerMillis
    yield* Effect.sleep(Duration.millis(close + noticedMillis - now))
    free += 1
    yield* (yield* ChannelPool).freed
  })
  return { layer, hold }
}

interface Reported {
  readonly principal: string
  readonly settled: boolean
  readonly millis: number
}

it.effect.each([1, 5])(
  "at ten times capacity, ledgers of %i s, refuses immediately without idle channels [S84, S340]",
  (ledgerSeconds) => {
    const { hold, layer } = world(ledgerSeconds)
    return Effect.gen(function* () {
      const pool = yield* ChannelPool
      const reported: Array<Reported> = []
      const pay = Effect.fnUntraced(function* (principal: string) {
        const from = yield* Clock.currentTimeMillis
        const place = yield* pool.enter(principal, Duration.seconds(25))
        let settled = false
        if (place._tag === "Place") {
          yield* Effect.sleep(Duration.millis(verifiedMillis))
          settled = Option.isSome(yield* place.lease)
        }
        reported.push({ principal, settled, millis: (yield* Clock.currentTimeMillis) - from })
        if (settled) yield* hold
      })
      const everyMillis = Math.floor((ledgerSeconds * 1_000) / (10 * channels))
      const fibers: Array<Fiber.Fiber<void, unknown>> = []
      for (let at = 0; at < seconds * 1_000; at += everyMillis) {
        fibers.push(yield* Effect.forkChild(pay("flood")))
        if (fibers.length % 1_000 < 5 && fibers.length > 1_000) fibers.push(yield* Effect.forkChild(pay("calm")))
        yield* TestClock.adjust(everyMillis)
      }
      yield* TestClock.adjust("30 seconds")
      const settled = reported.filter((one) => one.settled).length
      const refused = reported.filter((one) => !one.settled && one.principal === "flood").map(({ millis }) => millis)
      // A waiter times out only when its estimate was wrong: one in a hundred at most.
      const late = refused.filter((millis) => millis > 250).length / refused.length
      const calm = reported.filter(({ principal }) => principal === "calm")
      expect(late).toBeLessThan(0.01)
      expect(settled).toBeGreaterThan(0.9 * ((seconds * channels) / ledgerSeconds))
      expect(calm.every((one) => one.settled)).toBe(true)
    }).pipe(Effect.provide(layer))
  }
)

it.effect.each([1, 1.3])(
  "serves 64 callers over 20 channels within the wait, ledgers of %d s [S84]",
  (ledgerSeconds) => {
    const { hold, layer } = world(ledgerSeconds)
    return Effect.gen(function* () {
      const pool = yield* ChannelPool
      const refused: Array<string> = []
      const pay = Effect.fnUntraced(function* (caller: number) {
        const place = yield* pool.enter("anonymous", Duration.seconds(25))
        if (place._tag === "Full") return void refused.push(`${caller}: ${place.retryAfterMillis}`)
        yield* Effect.sleep(Duration.millis(verifiedMillis))
        if (Option.isNone(yield* place.lease)) return void refused.push(`${caller}: timed out`)
        yield* hold
      })
      const from = yield* Clock.currentTimeMillis
      let left = 400
      const callers = yield* Effect.forEach(Array.from({ length: 64 }), (_, caller) =>
        Effect.forkChild(Effect.whileLoop({ while: () => left-- > 0, body: () => pay(caller), step: () => undefined }))
      )
      while (callers.some((caller) => caller.pollUnsafe() === undefined)) yield* TestClock.adjust(10)
      expect(refused).toEqual([])
      // 400 over 20 channels are 20 ledgers; one more for the first, which came between two closes.
      expect((yield* Clock.currentTimeMillis) - from).toBeLessThanOrEqual(21_000 * ledgerSeconds + noticedMillis)
    }).pipe(Effect.provide(layer))
  }
)
