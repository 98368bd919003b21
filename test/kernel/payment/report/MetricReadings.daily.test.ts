// State as metrics: read on scrape, without addresses, and explicit about what could not be read.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Metric, Option } from "effect"
import { TestClock } from "effect/testing"
import { LruCache } from "../../../../kernel/cache/LruCache.ts"
import { Supervisor } from "../../../../kernel/actor/Supervisor.ts"
import { Network } from "../../../../kernel/config/Network.ts"
import { LedgerClock } from "../../../../kernel/ledger/LedgerClock.ts"
import { MetricReadings } from "../../../../kernel/payment/report/MetricReadings.ts"
import { Schemes } from "../../../../kernel/payment/Scheme.ts"
import { ProcessUsage } from "../../../../kernel/platform/ProcessUsage.ts"
import { ChannelPool } from "../../../../kernel/settlement/channels/ChannelPool.ts"
import { Sponsor } from "../../../../kernel/settlement/sponsor/Sponsor.ts"
import { databaseLayer } from "../../../support/databases.ts"
import { layerTest } from "../../../support/layerTest.ts"

interface World {
  places: ReadonlyMap<string, number>
  cpuSeconds: number
  isAnswering: boolean
}

const sponsorStatus = {
  account: { balanceStroops: 10_450_000n, reserveStroops: 10_000_000n },
  owedStroops: 0n,
  channelsReady: 3,
  channelsUsable: 2,
  channelStroopsLeast: 7_000_000n,
  open: 0,
  oldestOpenSeconds: undefined
}

const lastRun = {
  endedAtMillis: 0,
  endedMonotonicMillis: 0,
  durationMillis: 250,
  cause: "timer",
  outcome: "failed"
}

const reading = <A, E>(use: (world: World) => Effect.Effect<A, E, MetricReadings>) => {
  const world: World = { places: new Map(), cpuSeconds: 1.5, isAnswering: true }
  const services = Layer.mergeAll(
    Layer.succeed(LedgerClock, {
      status: Effect.succeed({
        ageSeconds: 3,
        isFresh: true,
        isSkewed: false,
        skewSeconds: -0.5,
        time: { sequence: 1_234 }
      }),
      fees: Effect.succeed({ asked: 100n })
    } as never),
    layerTest(ChannelPool, {
      waiting: () => world.places,
      counts: Effect.suspend(() => (world.isAnswering ? Effect.succeed({ ready: 3, free: 2 }) : Effect.never))
    }),
    layerTest(Sponsor, {
      status: Effect.succeed(Option.some(sponsorStatus)),
      problem: () => Effect.succeedNone
    }),
    Layer.succeed(Network, {
      id: "ledger:testnet",
      feeCeilings: (scheme: string) => ({ totalStroopsMax: scheme === "dear" ? 200_000n : 100_000n })
    } as never),
    Layer.succeed(Supervisor, {
      actors: Effect.succeed([
        { actor: "kernel/no-turns", state: "running", restarts: 0 },
        { actor: "kernel/follower", state: "running", restarts: 0, lastRun },
        { actor: "kernel/sweep", state: "running", restarts: 0, lastRun: { ...lastRun, outcome: "succeeded" } }
      ])
    } as never),
    Layer.succeed(Schemes, { all: () => [{ scheme: "dear" }] } as never),
    Layer.succeed(ProcessUsage, {
      version: "0.1.0",
      runtime: "node",
      runtimeVersion: "24",
      startedAtSeconds: 1_700_000_000,
      usage: Effect.sync(() => ({ cpuSeconds: world.cpuSeconds, residentBytes: 123 }))
    })
  )
  const layer = MetricReadings.layer.pipe(Layer.provide(services), Layer.provide(databaseLayer("pglite")))
  return Effect.provide(use(world), layer)
}

const value = Effect.fnUntraced(function* (name: string, labels: Readonly<Record<string, string>> = {}) {
  const one = (yield* Metric.snapshot).find(
    ({ attributes, id }) =>
      id === name && Object.entries(labels).every(([label, expected]) => attributes?.[label] === expected)
  )
  const state = one?.state as { readonly value?: number; readonly count?: number } | undefined
  return state?.value ?? state?.count
})

it.effect("counts waiters by key, keyless callers as one, with bounded labels", () =>
  reading((world) =>
    Effect.gen(function* () {
      const { refresh } = yield* MetricReadings
      world.places = new Map([
        ["key:shop", 2],
        ["ip:192.0.2.7", 3],
        ["ip:2001:db8::/64", 4]
      ])
      yield* refresh
      expect(yield* value("tollkeeper_queue_waiting", { principal: "shop" })).toBe(2)
      expect(yield* value("tollkeeper_queue_waiting", { principal: "anonymous" })).toBe(7)
      world.places = new Map(Array.from({ length: 200 }, (_, index) => [`key:seller-${index}`, 1]))
      yield* refresh
      const names = (yield* Metric.snapshot)
        .filter(({ id }) => id === "tollkeeper_queue_waiting")
        .map(({ attributes }) => attributes?.["principal"])
      expect(names.length).toBe(52)
      expect(JSON.stringify(names)).not.toMatch(/192|2001/)
      expect(yield* value("tollkeeper_queue_waiting", { principal: "other" })).toBe(151)
      // A key without waiters is reported as 0 rather than at its last figure.
      expect(yield* value("tollkeeper_queue_waiting", { principal: "shop" })).toBe(0)
      expect(yield* value("tollkeeper_queue_waiting", { principal: "anonymous" })).toBe(0)
    })
  )
)

it.effect("reports each reconciler's last run: its age, duration and outcome", () =>
  reading(() =>
    Effect.gen(function* () {
      yield* TestClock.adjust("3 seconds")
      yield* (yield* MetricReadings).refresh
      const actor = "kernel/follower"
      expect(yield* value("tollkeeper_reconciler_last_run_seconds", { actor })).toBe(3)
      expect(yield* value("tollkeeper_reconciler_last_run_duration_seconds", { actor })).toBe(0.25)
      expect(yield* value("tollkeeper_reconciler_failing", { actor })).toBe(1)
      expect(yield* value("tollkeeper_reconciler_failing", { actor: "kernel/sweep" })).toBe(0)
      expect(yield* value("tollkeeper_reconciler_last_run_seconds", { actor: "kernel/no-turns" })).toBeUndefined()
    })
  )
)

it.effect("reports how many payments the sponsor's balance covers at the maximum fee", () =>
  reading(() =>
    Effect.gen(function* () {
      yield* (yield* MetricReadings).refresh
      expect(yield* value("tollkeeper_sponsor_spendable_stroops")).toBe(450_000)
      expect(yield* value("tollkeeper_sponsor_payments_left")).toBe(2)
      expect(yield* value("tollkeeper_channel_balance_least_stroops")).toBe(7_000_000)
      expect(yield* value("tollkeeper_ledger_clock_skew_seconds")).toBe(-0.5)
    })
  )
)

it.effect("counts the process's CPU time once, however often it is asked", () =>
  reading((world) =>
    Effect.gen(function* () {
      const { refresh } = yield* MetricReadings
      const before = (yield* value("process_cpu_seconds_total")) ?? 0
      yield* refresh
      yield* refresh
      world.cpuSeconds = 2
      yield* refresh
      expect((yield* value("process_cpu_seconds_total"))! - before).toBeCloseTo(2)
      expect(yield* value("tollkeeper_build_info", { version: "0.1.0", runtime: "node" })).toBe(1)
    })
  )
)

it.effect("counts each lookup in a cache once, by result, and its entries", () =>
  reading(() =>
    Effect.gen(function* () {
      const { refresh } = yield* MetricReadings
      const cache = new LruCache<string, number>({ name: "of-the-test", capacity: 8 })
      const lookups = (result: string) => value("tollkeeper_cache_requests_total", { cache: "of-the-test", result })
      cache.get("a")
      cache.set("a", 1)
      cache.get("a")
      cache.get("a")
      yield* refresh
      yield* refresh
      expect([yield* lookups("hit"), yield* lookups("miss")]).toEqual([2, 1])
      expect(yield* value("tollkeeper_cache_entries", { cache: "of-the-test" })).toBe(1)
      cache.get("b")
      yield* refresh
      expect([yield* lookups("hit"), yield* lookups("miss")]).toEqual([2, 2])
    })
  )
)

it.effect("reports an unreachable database instead of waiting for it", () =>
  reading((world) =>
    Effect.gen(function* () {
      world.isAnswering = false
      const { refresh } = yield* MetricReadings
      const asked = yield* Effect.forkChild(refresh)
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(asked)
      expect(yield* value("tollkeeper_database_available")).toBe(0)
      expect(yield* value("tollkeeper_ledger_sequence")).toBe(1_234)
    })
  )
)
