// Stores a batch of sightings, in the caller's transaction: last-seen times, sales with their payers, and outcomes of
// observations. A settled payment counts once, by its transaction, whichever replica saw it.
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { storableJson } from "../../../kernel/database/storableJson.ts"
import type { Facts } from "../../../kernel/facts/Facts.ts"
import { type Sold as SoldData, soldFact } from "../contract.ts"
import type { Batch, Observed, Sold, Touch } from "./SightingsBatch.ts"
import { type CatalogValues, dustBelow } from "../Config.ts"
import { moveState, readStates, requestProbe, type ResourceRow, revive, publishChange } from "./Resources.ts"
import { payerRiskMax, weighEvidence } from "./weighEvidence.ts"

/** Settled payments in one fact. */
const reportedMax = 500
/** The recent period: the thirty days of `recent_settled` and `recent_payers`. */
const recentMillis = 30 * 86_400_000
const recountMillis = 86_400_000
/** Largest value of a column of type integer: a clock may step during a declaration. */
const integerMax = 2_147_483_647

/**
 * Stores one flush; returns the digests of new observations, whether any resource was raised or revived or any probe
 * was requested, and the states of the affected resources.
 */
export const storeBatch = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  facts: Facts["Service"],
  batch: Batch,
  config: CatalogValues,
  now: Date
) {
  const { observations, touches } = batch
  yield* lockActivity(sql, batch)
  const isAsked = touches.size > 0 && (yield* storeTouches(sql, facts, touches, config, now))
  const sales = new Map([...batch.sales].filter(([, { isContested }]) => isContested !== true))
  let [isRaised, isRevived] = [false, false]
  if (sales.size > 0) {
    yield* storeSales(sql, sales, now)
    isRevived = yield* reviveSold(sql, facts, sales, now)
    yield* reportSales(sql, facts, sales)
  }
  if (batch.sales.size > 0) {
    yield* storeClaimPayers(sql, batch.sales)
    isRaised = yield* raiseSold(sql, facts, sales, now)
  }
  const fresh = observations.size > 0 ? yield* storeObservations(sql, observations) : []
  const stateHashes = touches.size > 0 ? yield* readStates(sql, [...touches.keys()]) : new Map<bigint, string>()
  return { fresh, isAsked, isRaised, isRevived, stateHashes }
})

/** Replicas store the same resources concurrently: one lock order avoids deadlocks. */
const lockActivity = (sql: SqlClient.SqlClient, { sales, touches }: Batch) => {
  const ids = [...touches.keys(), ...[...sales.values()].map(({ resourceId }) => resourceId)]
  return sql`select 1 from catalog_activity where resource_id in (select value::bigint
    from jsonb_array_elements_text(${JSON.stringify(ids.map(String))}::jsonb)) order by resource_id for update`
}

const storeTouches = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  facts: Facts["Service"],
  batch: ReadonlyMap<bigint, Touch>,
  config: CatalogValues,
  now: Date
) {
  const rows = [...batch].map(([id, { lastSeenAt, observed }]) => ({
    resource_id: String(id),
    seen: lastSeenAt,
    observed
  }))
  yield* sql`update catalog_activity a set last_seen_at = greatest(a.last_seen_at, t.seen),
      observed = a.observed + t.observed
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as t(resource_id bigint, seen timestamptz, observed bigint)
    where a.resource_id = t.resource_id`
  const returned = yield* sql<{ id: bigint }>`select id from catalog_resources
    where state = 'stale' and coalesce(state_reason, 'not_seen') = 'not_seen' and id in (select value::bigint
      from jsonb_array_elements_text(${JSON.stringify([...batch.keys()].map(String))}::jsonb))
    order by id for update skip locked`
  for (const { id } of returned) {
    yield* moveState(sql, facts, id, now, {
      by: "facilitator",
      move: "returned",
      from: "stale",
      to: "active",
      reason: "payment_observed"
    })
  }
  // Probe resources again that probes found dead: a payment is evidence that they are alive.
  const dead = yield* sql<{ id: bigint }>`select id from catalog_resources
    where state = 'stale' and coalesce(state_reason, 'not_seen') <> 'not_seen' and id in (select value::bigint
      from jsonb_array_elements_text(${JSON.stringify([...batch.keys()].map(String))}::jsonb)) order by id`
  for (const { id } of dead) yield* requestProbe(sql, id, config, { isFree: true, now })
  return dead.length > 0
})

/**
 * A payer that settled for a listing was served, so a listing that probes found dead is alive, unless its words are the
 * origin's own (the origin's answer precedes payments). True if any was revived.
 */
const reviveSold = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  facts: Facts["Service"],
  batch: ReadonlyMap<string, Sold>,
  now: Date
) {
  const transactions = JSON.stringify([...batch.keys()])
  const sold = yield* sql<Pick<ResourceRow, "id" | "state">>`select r.id, r.state from catalog_resources r
    where r.state = 'stale' and r.state_reason <> 'not_seen' and r.grade <> 'origin' and r.id in (
      select s.resource_id from catalog_sales s where s.counts
        and s.transaction in (select value from jsonb_array_elements_text(${transactions}::jsonb)))
    order by r.id for update skip locked`
  for (const row of sold) yield* revive(sql, facts, row, now, "payment_settled")
  return sold.length > 0
})

/**
 * Stores the payers that settled by each claim: amounts that count, to the recipient and at the price that the claim
 * names. A payer counts by its largest payment, which a success that is read again does not add to.
 */
const storeClaimPayers = (sql: SqlClient.SqlClient, batch: ReadonlyMap<string, Sold>) => {
  const rows = [...batch.values()].flatMap(({ amount, at, claim, payTo, payer, resourceId, risked = "0" }) =>
    claim === undefined ? [] : [{ amount, at, claim, pay_to: payTo, payer, resource_id: String(resourceId), risked }]
  )
  if (rows.length === 0) return Effect.void
  return sql`insert into catalog_claim_payers as old (resource_id, claim, payer, at, first_at, risked)
    select g.resource_id, g.claim, g.payer, max(g.at), min(g.at), least(${String(payerRiskMax)}::numeric, max(g.risked))
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as g(resource_id bigint, claim text, payer text,
      pay_to text, amount numeric, at timestamptz, risked numeric)
    where ${countsForRank(sql)} and exists (select 1 from catalog_resources r where r.id = g.resource_id)
    group by g.resource_id, g.claim, g.payer order by g.resource_id, g.claim, g.payer
    on conflict (resource_id, claim, payer) do update set at = greatest(old.at, excluded.at),
      risked = greatest(old.risked, excluded.risked)`
}

/**
 * Whether a sale counts for rank. Excluded are dust, payments of an account to itself, and payments from an account
 * that the recipient pays in turn, or in a circle that was found (`findCircles.ts`).
 */
const countsForRank = (sql: SqlClient.SqlClient) => sql`(g.amount >= ${dustBelow}
  and g.payer <> g.pay_to and not exists (
    select 1 from catalog_payers c where c.resource_id = g.resource_id and c.payer = g.payer and c.circle)
  and not exists (
    select 1 from catalog_payers p join catalog_resources o on o.id = p.resource_id
    where p.payer = g.pay_to and g.payer = any(o.pay_tos)))`

/** Counts sales that were not counted before; waits for a transaction that another replica is storing. */
const storeSales = (sql: SqlClient.SqlClient, batch: ReadonlyMap<string, Sold>, now: Date) => {
  const rows = [...batch.values()].map(({ amount, at, payTo, payer, resourceId, risked = "0", transaction }) => ({
    transaction,
    resource_id: String(resourceId),
    payer,
    pay_to: payTo,
    amount,
    at,
    risked
  }))
  const recently = new Date(now.getTime() - recentMillis)
  return sql`with given as (
      select t.* from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as t(transaction text, resource_id bigint,
        payer text, pay_to text, amount numeric, at timestamptz, risked numeric)
      join catalog_activity a on a.resource_id = t.resource_id
    ), counted as (
      insert into catalog_sales (transaction, resource_id, at, payer, counts)
        select g.transaction, g.resource_id, g.at, g.payer, ${countsForRank(sql)} from given g
        order by g.transaction
      on conflict (transaction) do nothing returning transaction, resource_id, payer, at, counts
    ), sold as (
      select c.resource_id, c.payer, count(*) as times, count(*) filter (where counts) as earning, max(c.at) as at,
        least(${String(payerRiskMax)}::numeric, coalesce(sum(g.risked) filter (where counts), 0)) as risked
        from counted c join given g using (transaction) group by c.resource_id, c.payer
    ), news as (
      select s.*, s.earning > 0 and p.counts is distinct from true as earned,
        s.earning > 0 and (p.counts is distinct from true or p.last_settled_at < ${recently}) as recent,
        least(s.risked, ${String(payerRiskMax)}::numeric - coalesce(p.risked, 0)) as more
      from sold s left join catalog_payers p on p.resource_id = s.resource_id and p.payer = s.payer
    ), paid as (
      insert into catalog_payers (resource_id, payer, settled, last_settled_at, counts, risked)
        select resource_id, payer, times, at, earning > 0, more from news order by resource_id, payer
      on conflict (resource_id, payer) do update set settled = catalog_payers.settled + excluded.settled,
        last_settled_at = greatest(catalog_payers.last_settled_at, excluded.last_settled_at),
        counts = catalog_payers.counts or excluded.counts, risked = catalog_payers.risked + excluded.risked
      returning resource_id, (xmax = 0) as fresh
    )
    update catalog_activity a set settled = a.settled + s.times, last_settled_at = greatest(a.last_settled_at, s.at),
      payers = a.payers + s.fresh, earned = a.earned + s.earned, recent_settled = a.recent_settled + s.earning,
      recent_payers = a.recent_payers + s.recent, recent_at = coalesce(a.recent_at, ${now}),
      risked = a.risked + s.more
    from (select resource_id, sum(more) as more, sum(times) as times, sum(earning) as earning, max(at) as at,
        count(*) filter (where earned) as earned, count(*) filter (where recent) as recent,
        (select count(*) from paid where paid.resource_id = news.resource_id and fresh) as fresh
      from news group by resource_id) s
    where a.resource_id = s.resource_id`
}

/** Raises listings with counted settlements under the words that they show. True when any rose. */
const raiseSold = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  facts: Facts["Service"],
  batch: ReadonlyMap<string, Sold>,
  now: Date
) {
  const raised = yield* weighEvidence(sql, [...new Set([...batch.values()].map(({ resourceId }) => resourceId))], now)
  for (const id of raised) yield* publishChange(facts, id, "standing")
  return raised.length > 0
})

/**
 * Recounts the sales of thirty days for resources last counted a day ago or earlier; returns the number of resources.
 */
export const recountSales = (sql: SqlClient.SqlClient, now: Date, limit: number) => {
  const recently = new Date(now.getTime() - recentMillis)
  const counted = sql`update catalog_activity a set recent_at = ${now},
      recent_settled = (select count(*) from catalog_sales s
        where s.resource_id = a.resource_id and s.counts and s.at > ${recently}),
      recent_payers = (select count(*) from catalog_payers p
        where p.resource_id = a.resource_id and p.counts and p.last_settled_at > ${recently})
    where a.resource_id in (select resource_id from catalog_activity
      where recent_settled > 0 and recent_at < ${new Date(now.getTime() - recountMillis)}
      order by recent_at limit ${limit} for update skip locked) returning 1`
  return Effect.map(counted, (rows) => rows.length)
}

/** Reports the resources that the batch's payments were counted for. */
const reportSales = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  facts: Facts["Service"],
  batch: ReadonlyMap<string, Sold>
) {
  const all = [...batch.keys()]
  for (let from = 0; from < all.length; from += reportedMax) {
    const transactions = JSON.stringify(all.slice(from, from + reportedMax))
    const sales = yield* sql<SoldData["sales"][number]>`select s.transaction, s.resource_id::text as "resourceId",
        r.origin
      from catalog_sales s join catalog_resources r on r.id = s.resource_id
      where s.transaction in (select value from jsonb_array_elements_text(${transactions}::jsonb))
      order by s.transaction`
    if (sales.length > 0)
      yield* facts.publish({
        type: soldFact,
        version: 1,
        subject: sales[0]!.resourceId,
        data: { sales } satisfies SoldData
      })
  }
})

/** The digests of the rows that are new. */
const storeObservations = (sql: SqlClient.SqlClient, batch: ReadonlyMap<string, Observed>) => {
  const given = [...batch].map(([digest, one]) => ({
    digest,
    resource_key: one.resourceKey ?? null,
    resource_id: one.resourceId === undefined ? null : String(one.resourceId),
    url: one.url,
    type: one.type ?? null,
    tool_name: one.toolName ?? null,
    pay_to: one.payTo,
    stage: one.stage,
    decision: one.decision,
    reason: one.reason ?? null,
    detail: one.detail ?? null,
    first_at: one.firstAt,
    last_at: one.at,
    times: one.times,
    lag_ms: Math.min(integerMax, Math.max(0, one.lagMillis))
  }))
  const stored = sql<{
    digest: string
    fresh: boolean
  }>`insert into catalog_observations (digest, resource_key, resource_id, url, type, tool_name, pay_to, stage,
      decision, reason, detail, first_at, last_at, times, lag_ms)
    select * from jsonb_to_recordset(${storableJson(given)}::jsonb) as t(digest text, resource_key text,
      resource_id bigint, url text, type text, tool_name text, pay_to text, stage text, decision text, reason text,
      detail text, first_at timestamptz, last_at timestamptz, times bigint, lag_ms integer) order by digest
    on conflict (digest) do update set times = catalog_observations.times + excluded.times,
      last_at = excluded.last_at, lag_ms = excluded.lag_ms
    returning digest, (xmax = 0) as fresh`
  return Effect.map(stored, (rows) => rows.flatMap(({ digest, fresh }) => (fresh ? [digest] : [])))
}
