import { expect, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { describeDatabases } from "../../support/databases.ts"
import {
  type Counted,
  countsOf,
  distinct,
  historyOf,
  moneyOf,
  newestFirst,
  organicOf,
  randomFrom,
  shown,
  sumOf,
  timesOf
} from "./recount.ts"
import { makeWorld, owners, windowOf, type World, worldServices } from "./world.ts"

const windows = [0, 1, 7, 14, 30]
const everything = { limit: 1_000, offset: 0 }
const people = {
  buyers: ["B1", "B2", "B3", "B4", "B5", "B6", "L1", "L2", "X1", "X2"],
  sellers: ["S1", "S2", "S3", "X1", "X2"]
}

/** A history delivered in random batches, some read twice, with overdue marks in between. */
const reportHistory = Effect.fnUntraced(function* (world: World, seed: number, size = 250) {
  console.log(`history of seed ${seed}`)
  const random = randomFrom(seed)
  yield* world.empty
  const listings = []
  for (const [at, payTo] of ["S1", "S2", "S3", "S1"].entries()) {
    const url = `https://shop${at % 3}.example.com/item${at}`
    listings.push({ id: yield* world.list(url, payTo), url, payTo })
  }
  const { counted, facts } = historyOf(random, size, people, listings)
  for (let from = 0; from < facts.length;) {
    const to = Math.min(facts.length, from + 1 + random.below(facts.length))
    yield* world.publish(facts.slice(from, to), 1 + random.below(60))
    yield* world.follow(1 + random.below(80))
    if (random.next() < 0.3) yield* world.recorder.keepWindows
    // Facts that are read again change nothing.
    if (random.next() < 0.5) yield* world.sql`update kernel_fact_cursors set position = 0 where consumer = 'analytics'`
    from = to
  }
  yield* world.follow(50)
  return counted
})

const ofRole = (role: "buyer" | "seller", { payTo, payer }: Counted) => (role === "buyer" ? payer : payTo)

const checkTotals = Effect.fnUntraced(function* (world: World, all: ReadonlyArray<Counted>) {
  for (const days of windows) {
    const items = shown(all, days)
    const money = moneyOf(items)
    expect(yield* world.totals.overview(windowOf(days), undefined)).toMatchObject({
      days,
      ...countsOf(items),
      ...money,
      total_sponsored_fee_stroops: String(sumOf(items, ({ fee }) => fee)),
      unique_buyers: distinct(items, ({ payer }) => payer),
      unique_sellers: distinct(items, ({ payTo }) => payTo),
      unique_facilitators: distinct(items, ({ facilitator }) => facilitator),
      unique_networks: distinct(items, ({ network }) => network),
      unique_resources: distinct(items, ({ resource }) => resource),
      ...timesOf(items),
      organic: organicOf(items, money.asset)
    })
    expect(yield* world.totals.overview(windowOf(days), "CXLM")).toMatchObject(moneyOf(items, "CXLM"))

    for (const [bucket, length] of [
      ["hour", 13],
      ["day", 10]
    ] as const) {
      const points = [...Map.groupBy(items, ({ at }) => at.toISOString().slice(0, length))].sort(([a], [b]) =>
        a < b ? -1 : 1
      )
      const { series } = yield* world.totals.series(windowOf(days), bucket, undefined)
      expect(series.length).toBe(points.length)
      expect(series).toMatchObject(
        points.map(([start, of]) => ({
          bucket_start: new Date(bucket === "hour" ? `${start}:00:00Z` : start).toISOString(),
          ...countsOf(of),
          ...moneyOf(of, money.asset),
          unique_buyers: distinct(of, ({ payer }) => payer),
          unique_sellers: distinct(of, ({ payTo }) => payTo),
          organic: organicOf(of, money.asset)
        }))
      )
    }

    const breakdowns = yield* world.totals.breakdowns(windowOf(days), undefined)
    for (const [name, keyOf] of [
      ["networks", (one: Counted) => one.network],
      ["schemes", (one: Counted) => one.scheme],
      ["assets", (one: Counted) => one.asset],
      ["statuses", (one: Counted) => one.status]
    ] as const) {
      const expected = [...Map.groupBy(items, keyOf)]
        .sort(([a, of], [b, other]) => other.length - of.length || (a < b ? -1 : 1))
        .map(([key, of]) => ({
          key,
          ...countsOf(of),
          ...moneyOf(of, name === "assets" ? key : money.asset),
          sponsored_fee_stroops: String(sumOf(of, ({ fee }) => fee))
        }))
      expect(breakdowns[name]).toMatchObject(expected)
      expect(breakdowns[name].length).toBe(expected.length)
    }

    const reasons = [...Map.groupBy(items, ({ reason }) => reason)].flatMap(([reason, of]) =>
      reason === null ? [] : [{ reason, of }]
    )
    expect(breakdowns.reasons).toEqual(
      reasons
        .sort((a, b) => b.of.length - a.of.length || (a.reason < b.reason ? -1 : 1))
        .map(({ of, reason }) => ({
          key: reason,
          ...countsOf(of),
          sponsored_fee_stroops: String(sumOf(of, ({ fee }) => fee))
        }))
    )

    const daily = yield* world.totals.daily(windowOf(days), everything)
    const rows = [
      ...Map.groupBy(items, ({ asset, at, network, scheme, status }) =>
        [at.toISOString().slice(0, 10), network, scheme, asset, status].join(" ")
      )
    ].map(([key, of]) => {
      const [day, network, scheme, asset, status] = key.split(" ")
      return {
        day,
        network,
        scheme,
        asset,
        status,
        total_transactions: String(of.length),
        total_amount: String(sumOf(of, ({ amount }) => amount)),
        sponsored_fee_stroops: String(sumOf(of, ({ fee }) => fee))
      }
    })
    expect(daily.pagination.total).toBe(rows.length)
    expect(daily.items.map(({ asset_decimals: _, asset_symbol: __, organic: ___, ...row }) => row)).toEqual(
      expect.arrayContaining(rows)
    )
  }
})

const checkTransactions = Effect.fnUntraced(function* (world: World, all: ReadonlyArray<Counted>) {
  const filters: ReadonlyArray<readonly [Record<string, string>, (one: Counted) => boolean]> = [
    [{}, () => true],
    [{ payer: "B1" }, ({ payer }) => payer === "B1"],
    [{ payTo: "S2", status: "success" }, ({ payTo, status }) => payTo === "S2" && status === "success"],
    [{ network: "ledger:pubnet" }, ({ network }) => network === "ledger:pubnet"],
    [{ scheme: "upto", asset: "CXLM" }, ({ asset, scheme }) => scheme === "upto" && asset === "CXLM"],
    [{ status: "unknown" }, ({ status }) => status === "unknown"],
    [{ status: "failed" }, ({ status }) => status === "failed"],
    [{ resourceId: "1" }, ({ resource }) => resource === 1n],
    [{ payer: "GNONE" }, () => false]
  ]
  for (const days of windows) {
    for (const [filter, fits] of filters) {
      const expected = newestFirst(shown(all, days).filter(fits))
      const paged: Array<string> = []
      for (let offset = 0; offset < Math.max(1, expected.length); offset += 70) {
        const { items, pagination } = yield* world.transactions.list(filter, windowOf(days), { limit: 70, offset })
        expect([filter, pagination.total]).toEqual([filter, expected.length])
        paged.push(...items.map(({ id }) => id))
      }
      expect(paged).toEqual(expected.map(({ id }) => id))
    }
    const { items, pagination } = yield* world.transactions.ofAddress("X1", windowOf(days), everything)
    const expected = newestFirst(shown(all, days).filter(({ payTo, payer }) => payer === "X1" || payTo === "X1"))
    expect(items.map(({ id }) => id)).toEqual(expected.map(({ id }) => id))
    expect(pagination.total).toBe(expected.length)
  }
  for (const one of all) {
    const found = yield* world.transactions.byHash(one.hash.toUpperCase())
    if (one.status === "pending") expect(Option.isNone(found)).toBe(true)
    else
      expect(Option.getOrThrow(found)).toMatchObject({
        id: one.id,
        status: one.status,
        amount: one.status === "unknown" ? null : one.amount.toString(),
        fee_stroops: one.fee.toString(),
        resource_id: one.resource?.toString() ?? null,
        facilitator_id: one.facilitator,
        organic: one.organic
      })
  }
})

const checkParticipants = Effect.fnUntraced(function* (world: World, all: ReadonlyArray<Counted>) {
  for (const days of windows) {
    const items = shown(all, days)
    const { asset, ...money } = moneyOf(items)
    for (const role of ["buyer", "seller"] as const) {
      const amountOf = (of: ReadonlyArray<Counted>, name: string | null) =>
        sumOf(
          of.filter((one) => one.asset === name),
          ({ amount }) => amount
        )
      const ranked = [...Map.groupBy(items, (one) => ofRole(role, one))].sort(([a, of], [b, other]) => {
        const difference = amountOf(other, asset) - amountOf(of, asset)
        const inAsset = (settlements: ReadonlyArray<Counted>) => settlements.filter((one) => one.asset === asset).length
        return difference !== 0n ? (difference > 0n ? 1 : -1) : inAsset(other) - inAsset(of) || (a < b ? -1 : 1)
      })
      const other = role === "buyer" ? "seller" : "buyer"
      const board = yield* world.participants.leaderboard(role, windowOf(days), everything, undefined)
      expect(board.items).toMatchObject(
        ranked.map(([address, of]) => ({
          address,
          tx_count: String(of.length),
          ...moneyOf(of, asset),
          unique_counterparties: distinct(of, (one) => ofRole(other, one)),
          networks: [...new Set(of.map(({ network }) => network))].sort(),
          facilitators: [...new Set(of.map(({ facilitator }) => facilitator))].sort(),
          latest_activity: timesOf(of).latest_activity
        }))
      )
      const paged: Array<string> = []
      for (let offset = 0; offset < ranked.length; offset += 3) {
        const page = { limit: 3, offset }
        const { items } = yield* world.participants.leaderboard(role, windowOf(days), page, undefined)
        paged.push(...items.map(({ address }) => address))
      }
      expect(paged).toEqual(ranked.map(([address]) => address))
      // By cursor the same, each address once, those of other assets last.
      const behind: Array<string> = []
      for (let cursor: string | null | undefined = undefined; cursor !== null;) {
        const read: typeof board = yield* world.participants.leaderboard(
          role,
          windowOf(days),
          { limit: 2, offset: 0, cursor },
          undefined
        )
        behind.push(...read.items.map(({ address }) => address))
        cursor = read.pagination.cursor
      }
      expect(behind).toEqual(paged)
      const amounts = ranked.map(([, of]) => amountOf(of, asset))
      const min = amounts[amounts.length >> 1]
      if (min !== undefined && min > 0n && asset !== null) {
        const page = { ...everything, min: min.toString() }
        const { items } = yield* world.participants.leaderboard(role, windowOf(days), page, asset)
        expect(items.map(({ address }) => address)).toEqual(
          ranked.filter(([, of]) => amountOf(of, asset) >= min).map(([address]) => address)
        )
      }
      const top = (count: number) =>
        Number(
          (sumOf(
            ranked
              .slice(0, count)
              .flatMap(([, of]) => of)
              .filter((one) => one.asset === asset),
            ({ amount }) => amount
          ) *
            1_000_000n) /
            (BigInt(money.total_amount) || 1n)
        ) / 1_000_000
      expect(board.pagination.total).toBe(ranked.length)
      expect(board.concentration).toMatchObject({
        asset,
        ...money,
        total_transactions: String(items.length),
        top1_share: top(1),
        top5_share: top(5),
        top10_share: top(10)
      })

      for (const address of role === "buyer" ? people.buyers : people.sellers) {
        const own = items.filter((one) => ofRole(role, one) === address)
        const ever = shown(all, 0).some((one) => ofRole(role, one) === address)
        const one = yield* world.participants.one(role, address, windowOf(days), undefined)
        expect(Option.isSome(one)).toBe(ever)
        if (Option.isNone(one)) continue
        const { asset: ownAsset, ...ownMoney } = moneyOf(own)
        expect(one.value).toMatchObject({
          ...countsOf(own),
          asset: ownAsset,
          ...ownMoney,
          ...timesOf(own),
          successful_amount: ownMoney.total_amount,
          schemes: [...new Set(own.map(({ scheme }) => scheme))].sort(),
          networks: [...new Set(own.map(({ network }) => network))].sort(),
          unique_counterparties: distinct(own, (one) => ofRole(other, one))
        })
        const met = [...Map.groupBy(own, (one) => ofRole(other, one))].sort(
          ([a, of], [b, others]) => others.length - of.length || (a < b ? -1 : 1)
        )
        const { items: listed, pagination } = Option.getOrThrow(
          yield* world.participants.counterparties(role, address, windowOf(days), everything, undefined)
        )
        expect(pagination.total).toBe(met.length)
        expect(listed).toMatchObject(
          met.map(([name, of]) => ({ address: name, tx_count: String(of.length), ...moneyOf(of), ...timesOf(of) }))
        )
      }
    }
  }
})

const checkResources = Effect.fnUntraced(function* (world: World, all: ReadonlyArray<Counted>) {
  const items = shown(all, 0)
  const { items: origins } = yield* world.resources.origins(everything, "CUSDC")
  expect(origins.length).toBe(3)
  for (const one of origins) {
    const own = items.filter(({ origin }) => origin === one.origin)
    const { total_amount, ...money } = moneyOf(own, "CUSDC")
    expect(one).toMatchObject({
      settlement_count: String(own.length),
      successful_settlement_count: String(own.filter(({ status }) => status === "success").length),
      successful_amount: total_amount,
      ...money
    })
  }
  for (const id of [1n, 2n, 3n, 4n]) {
    const use = Option.getOrThrow(yield* world.resources.observability(id, "CUSDC"))
    for (const hours of [0, 1, 6, 24, 72, 168, 360, 720]) {
      const own = items.filter(
        ({ at, resource }) => resource === id && (hours === 0 || at.getTime() >= Date.now() - hours * 3_600_000)
      )
      expect([hours, hours === 0 ? use.all_time : use.windows[`${hours}h`]]).toMatchObject([
        hours,
        {
          calls: String(own.length),
          successes: String(own.filter(({ status }) => status === "success").length),
          unique_buyers: distinct(own, ({ payer }) => payer),
          ...moneyOf(own, "CUSDC"),
          latest_activity: timesOf(own).latest_activity
        }
      ])
    }
  }
})

describeDatabases(
  "analytics of random histories",
  (database) => {
    layer(worldServices(database), { timeout: "240 seconds", excludeTestServices: true })((it) => {
      for (const seed of [1, 2, 3].map((number) => Number(process.env["TOLLKEEPER_TEST_SEED"] ?? number * 7_919))) {
        it.effect(
          `analytics match a recount of random settlements, seed ${seed} [S96, S145–S147, S149–S155, S157–S162, S166]`,
          () =>
            Effect.gen(function* () {
              const world = yield* makeWorld
              const all = yield* reportHistory(world, seed)
              yield* checkTotals(world, all)
              yield* checkTransactions(world, all)
              yield* checkParticipants(world, all)
              // A window summed on request equals one stored in order.
              yield* world.recorder.keepWindows
              yield* checkParticipants(world, all)
              yield* world.sql`delete from analytics_ranking_windows where since <> '-infinity'`
              yield* checkParticipants(world, all)
              yield* checkResources(world, all)
            }),
          240_000
        )
      }
    })
  },
  owners
)
