// The figures of the search view against a plain recount, over random histories: searches without a result, by words
// and days, and searches that led to payments. The product's own statements write and prune the data.
import { expect, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Crypto } from "../../../../kernel/platform/Crypto.ts"
import { conversion } from "../../../../plugins/catalog/search/report/conversion.ts"
import {
  type Missed,
  missedSearches,
  pruneMissed,
  writeMissed
} from "../../../../plugins/catalog/search/report/missedSearches.ts"
import { describeDatabases } from "../../../support/databases.ts"
import { randomFrom, type Random } from "../../analytics/recount.ts"
import { countedImpressions } from "./countedImpressions.ts"

const millisPerHour = 3_600_000
const millisPerDay = 86_400_000
const seeds = [1, 2, 3].map((number) => Number(process.env["TOLLKEEPER_TEST_SEED"] ?? number * 7_919))
const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)
const text = (count: number): string => String(count)

/** Searches without a result over the retained days; a few callers repeat the same query. */
const missedOf = (random: Random, now: number): ReadonlyArray<Missed> =>
  Array.from({ length: 600 }, () => ({
    words: `words ${Math.floor(random.next() ** 2 * 60)}`,
    session: `caller ${random.below(20)}`,
    at: now - Math.floor(random.next() ** 2 * 34 * millisPerDay)
  })).sort((a, b) => a.at - b.at)

const recountMissed = (all: ReadonlyArray<Missed>, since: string) =>
  [
    ...Map.groupBy(
      all.filter(({ at }) => dayOf(at) >= since),
      ({ words }) => words
    )
  ]
    .map(([words, of]) => ({
      words,
      sessions: new Set(of.map(({ at, session }) => `${dayOf(at)} ${session}`)).size,
      times: of.length,
      last_at: new Date(Math.max(...of.map(({ at }) => at))).toISOString()
    }))
    .sort((a, b) => b.sessions - a.sessions || b.times - a.times || (a.words < b.words ? -1 : 1))
    .map(({ sessions, times, ...one }) => ({ ...one, sessions: text(sessions), times: text(times) }))

const checkMissed = Effect.fnUntraced(function* (all: ReadonlyArray<Missed>, now: number) {
  const sql = yield* SqlClient.SqlClient
  for (const hours of [1, 24, 100, 168, 720]) {
    const expected = recountMissed(all, dayOf(now - hours * millisPerHour))
    const paged: Array<unknown> = []
    for (let offset = 0; offset <= expected.length; offset += 25) {
      const { report } = yield* missedSearches(sql, { hours, limit: 25, offset })
      expect([hours, report.pagination.total]).toEqual([hours, expected.length])
      paged.push(...report.items)
    }
    expect([hours, paged]).toEqual([hours, expected])
  }
})

const checkAllMissed = Effect.fnUntraced(function* (seed: number, now: number) {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const random = randomFrom(seed)
  const all = missedOf(random, now)
  yield* sql`delete from catalog_missed_searches`
  const counted = sql`select * from catalog_missed_words`
  expect(yield* counted).toEqual([])
  for (let from = 0; from < all.length;) {
    const to = Math.min(all.length, from + 1 + random.below(90))
    yield* writeMissed(sql, crypto, all.slice(from, to))
    from = to
  }
  // Before the oldest days are pruned, 720 hours do not cover everything; afterwards they do.
  yield* checkMissed(all, now)
  yield* pruneMissed(sql, now, 30)
  yield* checkMissed(all, now)
  yield* pruneMissed(sql, now, 3)
  yield* checkMissed(
    all.filter(({ at }) => dayOf(at) >= dayOf(now - 3 * millisPerDay)),
    now
  )
  yield* pruneMissed(sql, now, 0)
  expect(yield* counted).toEqual([])
})

interface Shown {
  readonly at: number
  readonly session: string
  readonly mode: string
  readonly first: number
  /** Numbers of resources. */
  readonly resources: ReadonlyArray<number>
  readonly took: number
  readonly isWithoutVectors: boolean
  readonly reranking: string
}

interface Paid {
  readonly resource: number
  readonly verified: number
  readonly settled: number | undefined
}

const resources = 8

const worldOf = (random: Random, now: number) => ({
  shown: Array.from({ length: 200 }, (): Shown => ({
    at: now - 60_000 - random.below(5 * millisPerDay),
    session: `${random.pick(["", "key:"])}s${random.below(8)}`,
    mode: random.pick(["lexical", "semantic", "hybrid"]),
    first: random.pick([0, 0, 3]),
    resources:
      random.next() < 0.2
        ? []
        : [...new Set([random.below(resources), random.below(resources), random.below(resources)])],
    took: random.below(90),
    isWithoutVectors: random.next() < 0.2,
    reranking: random.pick(["off", "used", "failed"])
  })),
  paid: Array.from({ length: 40 }, (): Paid => {
    const verified = now - 60_000 - random.below(6 * millisPerDay)
    return { resource: random.below(resources), verified, settled: random.next() < 0.7 ? verified + 5_000 : undefined }
  })
})

const iso = (at: number): string => new Date(at).toISOString()

const fill = Effect.fnUntraced(function* ({ paid, shown }: ReturnType<typeof worldOf>) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`truncate kernel_facts, catalog_sales, catalog_resources, catalog_impressions, catalog_observations
    restart identity cascade`
  const urlOf = (resource: number) => `https://shop.example.com/${resource}`
  const listed = yield* sql<{ id: bigint }>`insert into catalog_resources (key, resource_key, type, resource, origin,
      state, state_changed_at, verification, pay_tos, version, version_hash, declaration, extensions, document,
      first_seen_at, updated_at)
    select 'k' || n, 'r' || n, 'http', 'https://shop.example.com/' || n, 'https://shop.example.com', 'active', now(),
      'payment_observed', '{}', 1, 'h', '{}', '{}', '{}', now(), now()
    from generate_series(0, ${resources - 1}::int) n order by n returning id`
  const ids = listed.map(({ id }) => text(Number(id)))
  const impressions = shown.map((one) => ({
    at: iso(one.at),
    session: one.session,
    mode: one.mode,
    first_position: one.first,
    resource_ids: one.resources.map((resource) => ids[resource]!),
    milliseconds: one.took,
    missing: one.isWithoutVectors ? ["semantic"] : [],
    reranking: one.reranking
  }))
  yield* sql`insert into catalog_impressions (at, session, mode, first_position, resource_ids, milliseconds, missing,
      reranking)
    select * from jsonb_to_recordset(${JSON.stringify(impressions)}::jsonb) as r (at timestamptz, session text,
      mode text, first_position integer, resource_ids bigint[], milliseconds integer, missing text[], reranking text)`
  const observations = paid.map(({ resource, verified }, number) => ({
    digest: `d${number}`,
    resource_id: ids[resource]!,
    url: urlOf(resource),
    at: iso(verified)
  }))
  yield* sql`insert into catalog_observations (digest, resource_id, url, pay_to, stage, decision, first_at, last_at,
      lag_ms)
    select digest, resource_id, url, 'G', 'verified', 'listed', at, at, 0
    from jsonb_to_recordset(${JSON.stringify(observations)}::jsonb)
      as r (digest text, resource_id bigint, url text, at timestamptz)`
  const sales = paid.flatMap(({ resource, settled }, number) =>
    settled === undefined ? [] : [{ transaction: text(number), resource_id: ids[resource]!, at: iso(settled) }]
  )
  yield* sql`insert into catalog_sales (transaction, resource_id, at)
    select * from jsonb_to_recordset(${JSON.stringify(sales)}::jsonb)
      as r (transaction text, resource_id bigint, at timestamptz)`
})

const recountConversion = ({ paid, shown }: ReturnType<typeof worldOf>, since: number) => {
  const seen = shown.filter(({ at }) => at >= since)
  const counted = countedImpressions(seen, ({ at, first, mode, resources, session }) => ({
    at,
    session,
    list: `${mode} ${first} ${resources.join(" ")}`
  }))
  // A session was shown a resource from its first impression until a day after the last that counts, at the best place.
  const impressions = counted.flatMap((one) =>
    one.resources.map((resource, place) => ({ ...one, resource, position: one.first + place + 1 }))
  )
  const pairs = [...Map.groupBy(impressions, ({ resource, session }) => `${session} ${resource}`).values()].map(
    (of) => ({
      resource: of[0]!.resource,
      position: Math.min(...of.map(({ position }) => position)),
      since: Math.min(...of.map(({ at }) => at)),
      until: Math.max(...of.map(({ at }) => at)) + millisPerDay
    })
  )
  type Pair = (typeof pairs)[number]
  const followed = ({ resource, since, until }: Pair, when: (one: Paid) => number | undefined) =>
    paid.filter((one) => {
      const at = when(one)
      return one.resource === resource && at !== undefined && at >= since && at <= until
    }).length
  const verified = (pair: Pair) => followed(pair, (one) => one.verified)
  const settled = (pair: Pair) => followed(pair, (one) => one.settled)
  const settledWithin = (positions: number) =>
    text(pairs.reduce((sum, pair) => sum + (pair.position <= positions ? settled(pair) : 0), 0))
  const modes = [...Map.groupBy(counted, ({ mode }) => mode)].map(([mode, of]) => {
    const took = of.map((one) => one.took).sort((a, b) => a - b)
    const quantile = (share: number) => took[Math.ceil(share * took.length) - 1]!
    return [
      mode,
      {
        impressions: text(of.length),
        latency_ms: { p50: quantile(0.5), p95: quantile(0.95) },
        semantic_fallbacks: text(of.filter(({ isWithoutVectors }) => isWithoutVectors).length),
        reranker_fallbacks: text(of.filter(({ reranking }) => reranking === "failed").length)
      }
    ] as const
  })
  return {
    impressions: text(counted.length),
    impressions_without_results: text(counted.filter((one) => one.resources.length === 0 && one.first === 0).length),
    sessions: text(new Set(seen.map(({ session }) => session)).size),
    // A verified payment that settled counts as both: a settled payment was paid.
    verified_impressions: text(pairs.filter((pair) => verified(pair) + settled(pair) > 0).length),
    settled_impressions: text(pairs.filter((pair) => settled(pair) > 0).length),
    settlements_attributed: settledWithin(Infinity),
    settlements_at_1: settledWithin(1),
    settlements_at_3: settledWithin(3),
    settlements_at_5: settledWithin(5),
    byMode: Object.fromEntries(modes)
  }
}

/** The clock does not advance, so that the plain recount and the product see the same days and hours. */
const atRest = <A, E, R>(test: (now: number) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const now = yield* clock.currentTimeMillis
    const still = Object.assign(Object.create(clock) as Clock.Clock, {
      currentTimeMillisUnsafe: () => now,
      currentTimeMillis: Effect.succeed(now)
    })
    return yield* Effect.provideService(test(now), Clock.Clock, still)
  })

describeDatabases(
  "operator search figures of random histories",
  (database) => {
    layer(database, { timeout: "240 seconds", excludeTestServices: true })((it) => {
      for (const seed of seeds) {
        it.effect(
          `missed searches match a plain recount, for seed ${seed}`,
          () => atRest((now) => checkAllMissed(seed, now)),
          240_000
        )
        it.effect(
          `searches and their payments match a plain recount, for seed ${seed} [S174–S177]`,
          () =>
            atRest(
              Effect.fnUntraced(function* (now) {
                const sql = yield* SqlClient.SqlClient
                const world = worldOf(randomFrom(seed), now)
                yield* fill(world)
                for (const hours of [1, 24, 72, 720]) {
                  const { report } = yield* conversion(sql, hours)
                  expect([hours, report]).toMatchObject([hours, recountConversion(world, now - hours * millisPerHour)])
                }
              })
            ),
          240_000
        )
      }
    })
  },
  ["kernel", "catalog"]
)
