import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { conversion } from "../../../../../plugins/catalog/search/report/conversion.ts"
import { describeDatabases } from "../../../../support/databases.ts"
import { type Random, randomFrom } from "../../../analytics/recount.ts"
import { countedImpressions } from "../countedImpressions.ts"

const hour = 3_600_000
const resources = 6

interface Shown {
  readonly at: number
  readonly session: string
  readonly ids: ReadonlyArray<number>
  readonly first: number
}
interface Happened {
  readonly at: number
  readonly resource: number
}

/** Searches, payments and observations of ten days; some simultaneous. */
const historyOf = (random: Random) => {
  // Half a quarter of an hour off every window, however long the test takes.
  const now = Date.now() - hour / 8
  const moment = () => now - random.below(240 * 4) * (hour / 4)
  const many = <A>(count: number, make: () => A) => Array.from({ length: count }, make)
  return {
    shown: many(120, (): Shown => {
      const ids = [1, 2, 3, 4, 5, 6].filter(() => random.next() < 0.3)
      const session = random.pick(["s1", "s2", "s3", "key:s4"])
      return { at: moment(), session, ids, first: random.below(2) * 3 }
    }),
    paid: many(12, (): Happened => ({ at: moment(), resource: 1 + random.below(resources) })),
    observed: many(8, () => {
      const [a, b] = [moment(), moment()]
      return { first: Math.min(a, b), last: Math.max(a, b), resource: 1 + random.below(resources) }
    })
  }
}

type History = ReturnType<typeof historyOf>

/** The same figures from a plain recount. */
const recount = ({ observed, paid, shown }: History, since: number) => {
  const searches = shown.filter(({ at }) => at >= since)
  const settled = paid.filter(({ at }) => at >= since)
  const verified: ReadonlyArray<Happened> = [
    ...settled,
    ...observed
      .filter(({ last }) => last >= since)
      .flatMap(({ first, last, resource }) => [first, last].map((at) => ({ at, resource })))
  ]
  const counted = countedImpressions(searches, ({ at, first, ids, session }) => ({
    at,
    session,
    list: `${first} ${ids.join(" ")}`
  }))
  // A session's impressions from counted lists, with their time span and best position.
  const pairs = [...new Set(counted.flatMap(({ ids, session }) => ids.map((id) => `${session} ${id}`)))].map((pair) => {
    const [session, resource] = [pair.split(" ")[0]!, Number(pair.split(" ")[1])]
    const mine = counted.filter((one) => one.session === session && one.ids.includes(resource))
    const times = mine.map(({ at }) => at)
    const position = Math.min(...mine.map(({ first, ids }) => first + ids.indexOf(resource) + 1))
    return { resource, position, since: Math.min(...times), until: Math.max(...times) + 24 * hour }
  })
  type Pair = (typeof pairs)[number]
  const followed = (events: ReadonlyArray<Happened>, { resource, since, until }: Pair) =>
    events.filter((one) => one.resource === resource && one.at >= since && one.at <= until).length
  const count = (events: ReadonlyArray<Happened>) => String(pairs.filter((pair) => followed(events, pair) > 0).length)
  const within = (most: number) =>
    String(pairs.filter(({ position }) => position <= most).reduce((sum, pair) => sum + followed(settled, pair), 0))
  return {
    impressions: String(counted.length),
    impressions_without_results: String(counted.filter(({ first, ids }) => ids.length + first === 0).length),
    sessions: String(new Set(searches.map(({ session }) => session)).size),
    verified_impressions: count(verified),
    settled_impressions: count(settled),
    settlements_attributed: within(Infinity),
    settlements_at_1: within(1),
    settlements_at_3: within(3),
    settlements_at_5: within(5)
  }
}

/** Two tools of each server: a payment is for one of them. */
const store = Effect.fnUntraced(function* ({ observed, paid, shown }: History) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`truncate kernel_facts, catalog_sales, catalog_impressions, catalog_observations, catalog_resources
    restart identity cascade`
  yield* sql`insert into catalog_resources (key, resource_key, type, resource, origin, state, state_changed_at,
      verification, pay_tos, version, version_hash, declaration, extensions, document, first_seen_at, updated_at)
    select 'k' || n, 'r' || n, 'mcp', 'https://shop.example.com/' || n / 2, 'https://shop.example.com', 'active', now(),
      'payment_observed', '{}', 1, 'h', '{}', '{}', '{}', now(), now() from generate_series(1, ${resources}::int) n`
  for (const { at, first, ids, session } of shown)
    yield* sql`insert into catalog_impressions (at, session, mode, first_position, resource_ids, milliseconds, missing,
        reranking)
      values (${new Date(at)}, ${session}, 'lexical', ${first},
        (select coalesce(array_agg(value::bigint), '{}') from jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb)),
        1, '{}', 'off')`
  for (const [number, { at, resource }] of paid.entries())
    yield* sql`insert into catalog_sales (transaction, resource_id, at, payer)
      values (${`one ${number}`}, ${BigInt(resource)}, ${new Date(at)}, 'G')`
  for (const [number, { first, last, resource }] of observed.entries())
    yield* sql`insert into catalog_observations (digest, resource_id, url, pay_to, stage, decision, first_at, last_at,
        lag_ms)
      values (${`d${number}`}, ${BigInt(resource)}, 'u', 'G', 'verified', 'unchanged', ${new Date(first)},
        ${new Date(last)}, 0)`
})

describeDatabases(
  "conversion of random searches",
  (database) => {
    layer(database, { timeout: "240 seconds", excludeTestServices: true })((it) => {
      it.effect(
        "the conversion report matches a plain recount for any window [S174–S177]",
        () =>
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            for (const seed of [1, 2, 3, 4].map((one) => one * 7_919)) {
              const history = historyOf(randomFrom(seed))
              yield* store(history)
              // No event of the history falls exactly on the start of a window.
              for (const hours of [1, 24, 100, 720]) {
                const since = Date.now() - hours * hour
                const { report } = yield* conversion(sql, hours)
                expect([seed, hours, report]).toMatchObject([seed, hours, recount(history, since)])
              }
            }
          }),
        240_000
      )
    })
  },
  ["kernel", "catalog"]
)
