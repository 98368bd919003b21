// The actor of time, every ten minutes: resources that were not seen for `indexing.stale_after_hours` go stale, and
// expired rows are deleted (observations after thirty days, quotas after a week, the transactions that were counted and
// the authorizations that listed after four hundred days). All its settings are in hours or days. Bounded work a turn.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { ageMillis } from "../../../kernel/time/trustedTime.ts"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { Config } from "../Config.ts"
import { Changes } from "./Changes.ts"
import { moveState } from "./Resources.ts"
import { recountSales } from "./storeSightings.ts"

const batchMax = 500
const deletedMax = 2_000
const recountedMax = 50
const hour = 3_600_000
const day = 24 * hour

/** One turn; true when there may be more to do. */
export const ageCatalog = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const facts = yield* Facts
  const config = yield* Config
  const { moved } = yield* Changes
  const now = yield* ageMillis
  const before = (milliseconds: number) => new Date(now - milliseconds)
  // A batch that stores a sighting locks its activity, so the two are serialized and the second sees the first.
  const stale = yield* sql.withTransaction(
    Effect.gen(function* () {
      const rows = yield* sql<{ id: bigint }>`select r.id from catalog_resources r
        join catalog_activity a on a.resource_id = r.id
        where r.state = 'active' and a.last_seen_at < ${before(config.staleAfterHours * hour)}
        order by r.id limit ${batchMax} for update of r, a skip locked`
      for (const { id } of rows) {
        yield* moveState(sql, facts, id, new Date(now), {
          by: "facilitator",
          move: "went_stale",
          from: "active",
          to: "stale",
          reason: "not_seen"
        })
      }
      return rows.length
    })
  )
  if (stale > 0) yield* moved
  const observations = yield* sql`delete from catalog_observations where id in (
    select id from catalog_observations where last_at < ${before(30 * day)} order by last_at limit ${deletedMax})
    returning 1`
  const sales = yield* sql`delete from catalog_sales where transaction in (
    select transaction from catalog_sales where at < ${before(400 * day)} order by at limit ${deletedMax})
    returning 1`
  const authorizations = yield* sql`delete from catalog_authorizations where authorization_key in (
    select authorization_key from catalog_authorizations where at < ${before(400 * day)} order by at
    limit ${deletedMax}) returning 1`
  const payers = yield* sql`delete from catalog_claim_payers where ctid in (
    select ctid from catalog_claim_payers where at < ${before(31 * day)} limit ${deletedMax}) returning 1`
  yield* sql`delete from catalog_named_paths where ctid in (
    select ctid from catalog_named_paths where at < ${before(31 * day)} limit ${deletedMax})`
  yield* sql`delete from catalog_looks where day < ${before(31 * day)
    .toISOString()
    .slice(0, 10)}::date`
  const recounted = yield* recountSales(sql, new Date(now), recountedMax)
  yield* sql`delete from catalog_quotas where day < ${before(7 * day)
    .toISOString()
    .slice(0, 10)}::date`
  return (
    recounted === recountedMax ||
    stale === batchMax ||
    observations.length === deletedMax ||
    sales.length === deletedMax ||
    payers.length === deletedMax ||
    authorizations.length === deletedMax
  )
})

/** Ages the catalog for as long as the Scope lives. */
export const startAge = Effect.gen(function* () {
  const services = yield* Effect.context<SqlClient.SqlClient | Facts | Config | Changes>()
  yield* reconciler({
    id: "age",
    every: "10 minutes",
    turn: Effect.gen(function* () {
      while (yield* Effect.provideContext(ageCatalog, services)) yield* Effect.yieldNow
    })
  })
})
