// Compares the operator's figures of open settlements, channels, budgets and rates with a plain count: random histories
// by the real repository, with each step also kept in a list.
import { expect, layer } from "@effect/vitest"
import { Duration, Effect, Layer, Option } from "effect"
import { describe } from "vitest"
import { Budget } from "../../../kernel/budget/Budget.ts"
import { ChannelActions } from "../../../kernel/settlement/channels/ChannelActions.ts"
import { OperatorActions } from "../../../kernel/settlement/operators/OperatorActions.ts"
import { OperatorReports } from "../../../kernel/settlement/operators/OperatorReports.ts"
import { Settlements } from "../../../kernel/settlement/store/Settlements.ts"
import { databaseKinds } from "../../support/databases.ts"
import { randomFrom, type Random } from "../../plugins/analytics/recount.ts"
import {
  byMachineClock,
  emptyStore,
  idOf,
  keyedPrincipal,
  newSettlement,
  outcomeOf,
  storeLayer,
  takeOne
} from "./store.ts"

const seeds = [1, 2, 3].map((number) => Number(process.env["TOLLKEEPER_TEST_SEED"] ?? number * 7_919))
const channelCount = 12
const steps = 120

interface ExpectedSettlement {
  /** Of three digits, since hashes are numbers with noughts behind them. */
  readonly number: number
  readonly asset: string
  readonly amount: bigint
  readonly principal: string
  readonly budget: bigint
  readonly channel: string
  state: "open" | "settled" | "failed" | "expired" | "unresolved"
  charged: bigint
}

interface History {
  readonly all: Array<ExpectedSettlement>
  /** Addresses of channels that were leased and not used yet. */
  readonly leased: Set<string>
}

const born = Effect.fnUntraced(function* (random: Random, { all, leased }: History) {
  const taken = yield* takeOne
  if (Option.isNone(taken)) return
  if (random.next() < 0.1) {
    leased.add(taken.value.address)
    return
  }
  const one: ExpectedSettlement = {
    number: all.length + 101,
    asset: random.pick(["CUSDC", "CUSDC", "CXLM"]),
    amount: BigInt(random.below(1_000_000)) * (random.next() < 0.2 ? 10n ** 30n : 1n),
    principal: random.pick(["key:a", "key:b", "key:c"]),
    budget: BigInt(1_000 + random.below(50_000)),
    channel: taken.value.address,
    state: "open",
    charged: 0n
  }
  const settlement = newSettlement(one.number, taken.value, {
    asset: one.asset,
    amount: one.amount,
    amountMax: one.amount,
    principal: keyedPrincipal(one.principal),
    budgetStroops: one.budget
  })
  expect(yield* (yield* Settlements).record(settlement)).toEqual({ _tag: "Recorded" })
  all.push(one)
})

const ended = Effect.fnUntraced(function* (random: Random, { all }: History) {
  const open = all.filter(({ state }) => state === "open")
  if (open.length === 0) return
  const one = random.pick(open)
  one.state = random.pick(["settled", "settled", "failed", "expired", "unresolved"])
  one.charged = one.state === "expired" ? 0n : BigInt(random.below(Number(one.budget)))
  const moved = one.state === "settled" ? one.amount : undefined
  const outcome = outcomeOf(one.state, { feeChargedStroops: one.charged, amountTransferred: moved })
  expect((yield* (yield* Settlements).resolve(idOf(one.number), outcome))._tag).toBe("Resolved")
})

const foundOut = Effect.fnUntraced(function* (random: Random, { all }: History) {
  const unresolved = all.filter(({ state }) => state === "unresolved")
  if (unresolved.length === 0) return
  const one = random.pick(unresolved)
  one.state = random.pick(["settled", "failed"])
  one.charged = BigInt(random.below(Number(one.budget)))
  const finding = { state: one.state, ledger: 1_004, feeChargedStroops: one.charged, note: "seen in an explorer" }
  yield* (yield* OperatorActions).resolve(idOf(one.number), finding)
})

const sum = (values: ReadonlyArray<bigint>): bigint => values.reduce((all, one) => all + one, 0n)
const byKey =
  <A>(key: (one: A) => string | number) =>
  (a: A, b: A) =>
    key(a) < key(b) ? -1 : 1

const checkUnended = Effect.fnUntraced(function* ({ all }: History) {
  const reports = yield* OperatorReports
  const open = all.filter(({ state }) => state === "open")
  const unended = all.filter(({ state }) => state === "open" || state === "unresolved")
  const inFlight = [...Map.groupBy(open, ({ asset }) => asset)].map(([asset, of]) => ({
    asset,
    settlements: BigInt(of.length),
    amount: sum(of.map(({ amount }) => amount))
  }))
  expect([...(yield* reports.inFlight)].sort(byKey(({ asset }) => asset))).toEqual(
    inFlight.sort(byKey(({ asset }) => asset))
  )
  expect(yield* reports.unended).toMatchObject({ open: open.length, unresolved: unended.length - open.length })
  // In the order they were recorded in, the oldest first.
  expect((yield* reports.withoutEnd).map(({ id }) => id)).toEqual(unended.map(({ number }) => idOf(number)))
})

const checkBudgets = Effect.fnUntraced(function* ({ all }: History) {
  const day = yield* (yield* Budget).today
  const expected = [...Map.groupBy(all, ({ principal }) => principal)]
    .map(([principal, of]) => ({
      principal,
      reservedStroops: sum(of.map(({ budget, state }) => (state === "open" ? budget : 0n))),
      chargedStroops: sum(of.map(({ charged }) => charged))
    }))
    .sort((a, b) => {
      const difference = b.reservedStroops + b.chargedStroops - a.reservedStroops - a.chargedStroops
      return difference === 0n ? (a.principal < b.principal ? -1 : 1) : difference > 0n ? 1 : -1
    })
  expect(yield* (yield* OperatorReports).spent(day)).toEqual(expected)
})

const checkChannels = Effect.fnUntraced(function* ({ all, leased }: History) {
  const channels = yield* (yield* ChannelActions).list
  expect(channels.map(({ number }) => number)).toEqual(Array.from({ length: channelCount }, (_, number) => number))
  for (const { address, leased: isLeased, settlement } of channels) {
    const held = all.find(({ channel, state }) => channel === address && state === "open")
    expect([address, settlement]).toEqual([address, held === undefined ? null : idOf(held.number)])
    if (held === undefined) expect([address, isLeased]).toEqual([address, leased.has(address)])
  }
})

const live = Effect.fnUntraced(function* (seed: number) {
  console.log(`history of seed ${seed}`)
  const random = randomFrom(seed)
  yield* emptyStore(channelCount)
  const history: History = { all: [], leased: new Set() }
  for (let step = 1; step <= steps; step++) {
    const chance = random.next()
    yield* chance < 0.5 ? born(random, history) : chance < 0.9 ? ended(random, history) : foundOut(random, history)
    if (step % 15 !== 0) continue
    yield* checkUnended(history)
    yield* checkBudgets(history)
    yield* checkChannels(history)
  }
  expect(history.all.length).toBeGreaterThan(20)
})

for (const kind of databaseKinds) {
  const limits = {
    channelLease: Duration.hours(1),
    sponsoredPerPrincipalPerDayStroopsMax: 10n ** 12n,
    sponsoredPerDayStroopsMax: 10n ** 12n
  }
  const services = Layer.mergeAll(OperatorActions.layer, OperatorReports.layer, ChannelActions.layer)
  describe(`operator figures of random histories on ${kind}`, () =>
    layer(
      services.pipe(Layer.provideMerge(storeLayer(kind, limits))),
      byMachineClock
    )((it) => {
      for (const seed of seeds)
        it.effect(
          `open, unresolved, leased and charged figures equal a plain count for seed ${seed}`,
          () => live(seed),
          240_000
        )
    }))
}
