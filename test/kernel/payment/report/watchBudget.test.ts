// Warnings of the sponsor's budget: before it runs out, when it has, and once each.
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Logger, Metric, Option, References } from "effect"
import { TestClock } from "effect/testing"
import { Budget, type BudgetStatus } from "../../../../kernel/budget/Budget.ts"
import { Limits } from "../../../../kernel/config/Limits.ts"
import { Network } from "../../../../kernel/config/Network.ts"
import { Database } from "../../../../kernel/database/Database.ts"
import { DiskSpace } from "../../../../kernel/platform/DiskSpace.ts"
import { StartupBanner } from "../../../../kernel/StartupBanner.ts"
import { Schemes } from "../../../../kernel/payment/Scheme.ts"
import { LedgerClock } from "../../../../kernel/ledger/LedgerClock.ts"
import { Sponsor } from "../../../../kernel/settlement/sponsor/Sponsor.ts"
import { watchBudget } from "../../../../kernel/payment/report/watchBudget.ts"
import { CurrentPlugin } from "../../../../kernel/contract/Contract.ts"
import { Supervisor } from "../../../../kernel/actor/Supervisor.ts"
import { layerTest } from "../../../support/layerTest.ts"

const usage = (usedStroops: bigint, maxStroops: bigint) => ({ usedStroops, maxStroops })
const quiet: BudgetStatus = {
  day: "2026-01-01",
  all: usage(0n, 10_000_000n),
  anonymous: usage(0n, 5_000_000n),
  keyed: []
}

const watching = <A, E>(
  use: (world: {
    readonly set: (changed: Partial<BudgetStatus>) => Effect.Effect<void>
    readonly warnings: Array<string>
  }) => Effect.Effect<A, E, StartupBanner>,
  unfunded?: string,
  unwritable?: string,
  freeBytes = 10_000_000_000
) => {
  const warnings: Array<string> = []
  let status = quiet
  const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
    if (logLevel === "Warn") warnings.push(String(message))
  })
  const services = Layer.mergeAll(
    layerTest(Budget, { status: Effect.sync(() => status) }),
    layerTest(Limits, {
      sponsoredPerDayStroopsMax: 10_000_000n,
      sponsoredPerPrincipalPerDayStroopsMax: 1_000_000n
    }),
    layerTest(Network, {
      feeCeilings: () => ({ resourceStroopsMax: 190_000n, inclusionStroopsMax: 10_000n, totalStroopsMax: 200_000n })
    }),
    Layer.mock(LedgerClock)({ isAttended: Effect.succeed(true), subscribe: () => Effect.void }),
    Layer.succeed(Schemes, { all: () => [{ scheme: "fixed" }] } as never),
    StartupBanner.layer,
    Layer.mock(Sponsor)({
      unfunded: Effect.sync(() => Option.fromUndefinedOr(unfunded)),
      unrecordable: Effect.sync(() => Option.fromUndefinedOr(unwritable))
    }),
    layerTest(Database, { kind: "embedded", diskReserveBytes: 256_000_000 } as never),
    Layer.succeed(DiskSpace, Effect.succeed({ folder: "/state", freeBytes })),
    Supervisor.layer,
    Logger.layer([logger])
  )
  return Effect.scoped(
    Effect.gen(function* () {
      yield* watchBudget
      yield* TestClock.adjust("1 millis")
      const set = (changed: Partial<BudgetStatus>) => {
        status = { ...quiet, ...changed }
        return TestClock.adjust("10 seconds")
      }
      return yield* use({ set, warnings })
    })
  ).pipe(
    Effect.provide(services),
    Effect.provideService(CurrentPlugin, "payment"),
    Effect.provideService(References.MinimumLogLevel, "Warn")
  )
}

it.effect("warns at 80 % and at exhaustion, once a day each [S99, S270]", () =>
  watching(({ set, warnings }) =>
    Effect.gen(function* () {
      expect(warnings).toEqual([])
      yield* set({ all: usage(7_999_999n, 10_000_000n) })
      expect(warnings).toEqual([])
      for (let turn = 0; turn < 3; turn++) yield* set({ all: usage(8_000_000n, 10_000_000n) })
      expect(warnings).toEqual([
        "the sponsor's budget of all for 2026-01-01 is four fifths used; raise limits.max_global_sponsored_stroops_per_day"
      ])
      for (let turn = 0; turn < 3; turn++) yield* set({ all: usage(9_800_001n, 10_000_000n) })
      yield* set({ all: usage(8_500_000n, 10_000_000n) })
      expect(warnings.slice(1)).toEqual([
        "the sponsor's budget of all for 2026-01-01 is used up: payments are refused; raise limits.max_global_sponsored_stroops_per_day"
      ])
      yield* set({ day: "2026-01-02", all: usage(8_000_000n, 10_000_000n) })
      expect(warnings.slice(2)).toEqual([expect.stringContaining("2026-01-02 is four fifths used")])
    })
  )
)

it.effect("names the key and its setting, and reports the remainder as a metric", () =>
  watching(({ set, warnings }) =>
    Effect.gen(function* () {
      yield* set({ keyed: [{ principal: "key:shop", ...usage(850_000n, 1_000_000n) }] })
      expect(warnings).toEqual([
        "the sponsor's budget of key:shop for 2026-01-01 is used up: payments are refused; " +
          "raise limits.max_sponsored_stroops_per_day_by_key.shop"
      ])
      const left = (yield* Metric.snapshot).filter(({ id }) => id === "tollkeeper_budget_left_stroops")
      const byScope = Object.fromEntries(
        left.map(({ attributes, state }) => [attributes?.["scope"], (state as { readonly value: number }).value])
      )
      expect(byScope).toMatchObject({ all: 10_000_000, anonymous: 5_000_000, "key:shop": 150_000 })
      // A key without usage on a new day has its whole limit, although reports omit it.
      yield* set({ day: "2026-01-02" })
      const shop = (yield* Metric.snapshot).find(
        ({ attributes, id }) => id === "tollkeeper_budget_left_stroops" && attributes?.["scope"] === "key:shop"
      )
      expect(shop?.state).toMatchObject({ value: 1_000_000 })
    })
  )
)

it.effect("reports at startup how many payments the budget covers", () =>
  watching(() =>
    Effect.gen(function* () {
      const { lines } = yield* (yield* StartupBanner).read
      expect(lines).toEqual([
        { label: "fees", where: ["at least 50 payments a day are sponsored, 5 per key (tollkeeper budget)"] }
      ])
    })
  )
)

it.effect("reports at startup that the disk has room for fewer payments", () =>
  watching(
    () =>
      Effect.gen(function* () {
        const [line] = (yield* (yield* StartupBanner).read).lines
        expect(line?.where[1]).toBe("the disk has room for some 40 payments; free some space in /state")
      }),
    undefined,
    undefined,
    256_400_000
  )
)

it.effect("promises no payment at startup while the disk is full", () =>
  watching(
    () =>
      Effect.gen(function* () {
        const { lines } = yield* (yield* StartupBanner).read
        expect(lines).toEqual([{ label: "fees", where: ["no payment is sponsored: the disk is full"] }])
      }),
    undefined,
    "the disk is full"
  )
)

it.effect("reports at startup that an unfunded sponsor pays for nothing, with the address to fund", () =>
  watching(
    () =>
      Effect.gen(function* () {
        const { lines } = yield* (yield* StartupBanner).read
        expect(lines).toEqual([
          { label: "fees", where: ["no payment is sponsored: it is empty; send XLM to GSPONSOR"] }
        ])
      }),
    "it is empty; send XLM to GSPONSOR"
  )
)
