// The delivery of successes in SQL. Claims arrive together, because a ledger closes for all payments, and share one
// statement. No caller waits for their ends. A statement holds one claim of a settlement: two of one settlement would
// both be granted. A claim is granted only while its process has a row: without it, the success would be undelivered
// again while the process still sends it.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { inStatement } from "../../database/Database.ts"
import { batched } from "../../database/batched.ts"
import { Lane } from "../../database/Connections.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"
import type { DeliveryClaim, DeliveryEnd, KnownDelivery, Settlements } from "./Settlements.ts"

/** Maximum payments of one statement. */
const callsMax = 100

interface ClaimRequest extends DeliveryClaim {
  readonly principal: string
  readonly key: string | undefined
}

/** Returns the granted claims among some; it has at most one claim of a settlement. */
const claimDeliveries = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, claims: ReadonlyArray<ClaimRequest>) {
  const rows = yield* inStatement(sql<{ id: string }>`update kernel_settlements as s
    set delivered_at = clock_timestamp(), delivered_by = c.process, delivered_claim = c.claim,
      delivered_key = nullif(c.key, ''), confirmed_at = null
    from unnest(${claims.map(({ id }) => id)}::uuid[], ${claims.map(({ principal }) => principal)}::text[],
        ${claims.map((claim) => claim.process)}::text[], ${claims.map(({ claim }) => claim)}::int8[],
        ${claims.map(({ key }) => key ?? "")}::text[])
      as c (id, principal, process, claim, key)
    where s.id = c.id and s.principal = c.principal and s.state = 'settled'
      and exists (select 1 from kernel_processes as own where own.id = c.process)
      and (s.delivered_at is null or (s.delivered_by = c.process and s.delivered_claim = c.claim)
        or (s.delivered_by is not null and s.confirmed_at is null
          and not exists (select 1 from kernel_processes as giving where giving.id = s.delivered_by)))
    returning s.id::text as id`)
  const granted = new Set(rows.map(({ id }) => id))
  return claims.map(({ id }) => granted.has(id))
})

const endDeliveries = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, ends: ReadonlyArray<DeliveryEnd>) {
  yield* inStatement(sql`update kernel_settlements as s
    set confirmed_at = case when e.has_left then clock_timestamp() end,
      delivered_at = case when e.has_left then s.delivered_at end,
      delivered_by = case when e.has_left then s.delivered_by end,
      delivered_claim = case when e.has_left then s.delivered_claim end,
      delivered_key = case when e.has_left then s.delivered_key end
    from unnest(${ends.map(({ id }) => id)}::uuid[], ${ends.map((end) => end.process)}::text[],
        ${ends.map(({ claim }) => claim)}::int8[], ${ends.map(({ hasLeft }) => hasLeft)}::bool[])
      as e (id, process, claim, has_left)
    where s.id = e.id and s.delivered_by = e.process and s.delivered_claim = e.claim and s.confirmed_at is null`)
})

/**
 * Confirms deliveries that their rows do not show yet, even if another process has claimed them since, and keeps
 * deliveries without a row. Rows of another owner stay unchanged. An open settlement is delivered as soon as it ends.
 */
const restoreDeliveries = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  deliveries: ReadonlyArray<KnownDelivery>
) {
  const given = sql`unnest(${deliveries.map(({ network }) => network)}::text[],
    ${deliveries.map(({ scheme }) => scheme)}::text[],
    ${deliveries.map(({ authorizationKey }) => authorizationKey)}::text[],
    ${deliveries.map(({ principal }) => principal)}::text[], ${deliveries.map(({ key }) => key ?? "")}::text[])
    as d (network, scheme, authorization_key, principal, key)`
  yield* inStatement(sql`with given as (select * from ${given}),
    noted as (
      update kernel_settlements as s set delivered_at = coalesce(s.delivered_at, clock_timestamp()),
        delivered_key = nullif(d.key, ''), confirmed_at = clock_timestamp()
      from given as d where s.network = d.network and s.scheme = d.scheme
        and s.authorization_key = d.authorization_key and s.principal = d.principal
        and (s.delivered_at is null or (s.delivered_by is not null and s.confirmed_at is null)))
    insert into kernel_lost_deliveries (network, scheme, authorization_key, principal, delivered_key)
    select distinct on (network, scheme, authorization_key, principal)
      network, scheme, authorization_key, principal, nullif(key, '') from given as d
    where not exists (select 1 from kernel_settlements as s where s.network = d.network and s.scheme = d.scheme
      and s.authorization_key = d.authorization_key)
    on conflict do nothing`)
})

/** A success that was delivered before its record was lost stays delivered after the settlement's adoption. */
export const recallDelivery = (sql: SqlClient.SqlClient, id: string) =>
  sql`update kernel_settlements as s set delivered_at = lost.noted_at, delivered_key = lost.delivered_key
    from kernel_lost_deliveries as lost where s.id = ${id} and lost.network = s.network and lost.scheme = s.scheme
      and lost.authorization_key = s.authorization_key and lost.principal = s.principal`

/** The batched calls; their statements end with the Scope. */
export const batchDeliveries = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const asPayment = Effect.provideService(Lane, "payments")
  const claiming = yield* batched({
    maxBatchSize: callsMax,
    keyOf: ({ id }: ClaimRequest) => id,
    runBatch: (claims) => asPayment(claimDeliveries(sql, claims))
  })
  return {
    claimDelivery: (claim, principal, key) =>
      claiming({ ...claim, principal, key }).pipe(withSpanIfSampled("Settlements.claimDelivery")),
    endDeliveries: (ends) => asPayment(endDeliveries(sql, ends)),
    restoreDeliveries: (deliveries) => asPayment(restoreDeliveries(sql, deliveries))
  } satisfies Pick<Settlements["Service"], "claimDelivery" | "endDeliveries" | "restoreDeliveries">
})
