// Stores what was seen, in the caller's transaction: when resources were last seen, what was sold of them and to how
// many, what came of observations. A settled payment counts once, by its transaction, whichever replica saw it.
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { Facts } from "../../../kernel/Facts.ts"
import { type Sold as SoldData, soldFact } from "../contract.ts"
import type { Batch, Observed, Sold, Touch } from "./gatherSightings.ts"
import { moveState } from "./Resources.ts"

/** Settled payments told in one fact. */
const toldMax = 500

/** Replicas store the same resources at the same time: in one order, none waits for another that waits for it. */
export const lockActivity = (sql: SqlClient.SqlClient, { sales, touches }: Batch) => {
  const ids = [...touches.keys(), ...[...sales.values()].map(({ resourceId }) => resourceId)]
  return sql`select 1 from catalog_activity where resource_id in (select value::bigint
    from jsonb_array_elements_text(${JSON.stringify(ids.map(String))}::jsonb)) order by resource_id for update`
}

export const storeTouches = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  facts: Facts["Service"],
  batch: ReadonlyMap<bigint, Touch>,
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
    where state = 'stale' and id in (select value::bigint
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
})

/** Counts what was not counted before; a transaction that another replica stores meanwhile is waited for. */
export const storeSales = (sql: SqlClient.SqlClient, batch: ReadonlyMap<string, Sold>) => {
  const rows = [...batch.values()].map(({ at, payer, resourceId, transaction }) => ({
    transaction,
    resource_id: String(resourceId),
    payer,
    at
  }))
  return sql`with given as (
      select t.* from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
        as t(transaction text, resource_id bigint, payer text, at timestamptz)
      join catalog_activity a on a.resource_id = t.resource_id
    ), counted as (
      insert into catalog_sales (transaction, resource_id, at) select transaction, resource_id, at from given
        order by transaction
      on conflict (transaction) do nothing returning transaction
    ), sold as (
      select resource_id, payer, count(*) as times, max(at) as at from given join counted using (transaction)
        group by resource_id, payer
    ), paid as (
      insert into catalog_payers (resource_id, payer, settled, last_settled_at)
        select resource_id, payer, times, at from sold order by resource_id, payer
      on conflict (resource_id, payer) do update set settled = catalog_payers.settled + excluded.settled,
        last_settled_at = greatest(catalog_payers.last_settled_at, excluded.last_settled_at)
      returning resource_id, (xmax = 0) as fresh
    )
    update catalog_activity a set settled = a.settled + s.times, last_settled_at = greatest(a.last_settled_at, s.at),
      payers = a.payers + s.fresh
    from (select resource_id, sum(times) as times, max(at) as at, (select count(*) from paid
      where paid.resource_id = sold.resource_id and fresh) as fresh from sold group by resource_id) s
    where a.resource_id = s.resource_id`
}

/** Tells which resources the batch's payments were counted for. */
export const tellSales = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  facts: Facts["Service"],
  batch: ReadonlyMap<string, Sold>
) {
  const all = [...batch.keys()]
  for (let from = 0; from < all.length; from += toldMax) {
    const transactions = JSON.stringify(all.slice(from, from + toldMax))
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
export const storeObservations = (sql: SqlClient.SqlClient, batch: ReadonlyMap<string, Observed>) => {
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
    lag_ms: one.lagMillis
  }))
  const stored = sql<{
    digest: string
    fresh: boolean
  }>`insert into catalog_observations (digest, resource_key, resource_id, url, type, tool_name, pay_to, stage,
      decision, reason, detail, first_at, last_at, times, lag_ms)
    select * from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as t(digest text, resource_key text,
      resource_id bigint, url text, type text, tool_name text, pay_to text, stage text, decision text, reason text,
      detail text, first_at timestamptz, last_at timestamptz, times bigint, lag_ms integer) order by digest
    on conflict (digest) do update set times = catalog_observations.times + excluded.times,
      last_at = excluded.last_at, lag_ms = excluded.lag_ms
    returning digest, (xmax = 0) as fresh`
  return Effect.map(stored, (rows) => rows.flatMap(({ digest, fresh }) => (fresh ? [digest] : [])))
}
