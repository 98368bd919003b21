// A long history for `bench -- views`, written by SQL: settlements of analytics and of the kernel with their attempts
// and facts, and the rollups as the reader of facts would have made them. Older settlements are rarer, buyers and
// sellers are of all sizes, one settlement of ten failed and a few lack an outcome.
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"

export interface Size {
  readonly settlements: number
  readonly buyers: number
  readonly sellers: number
  readonly resources: number
  readonly historyDays: number
}

const chunk = 100_000

/** An address made from a number, as SQL. */
const address = (kind: string, number: string) =>
  `'G' || '${kind}' || translate(lpad((${number})::text, 54, 'A'), '0189', 'WXYZ')`

/** Listed resources, each of the seller with the same number. */
export const listResources = (sql: SqlClient.SqlClient, { resources }: Size) =>
  Effect.gen(function* () {
    yield* sql`insert into catalog_resources (key, resource_key, type, resource, origin, state, state_changed_at,
      verification, pay_tos, version, version_hash, declaration, extensions, document, first_seen_at, updated_at)
      select 'k' || n, encode(sha256(convert_to('"https://s' || n % 100 || '.example.com/r' || n || '"', 'UTF8')),
        'hex'), 'http', 'https://s' || n % 100 || '.example.com/r' || n, 'https://s' || n % 100 || '.example.com',
        'active', now(), 'payment_observed', array[${sql.literal(address("S", "n"))}], 1, 'h' || n,
        '{"about":{},"operations":[],"sentKey":"catalog","extensions":["catalog"]}'::jsonb, array['catalog'],
        json_build_object('resource', 'https://s' || n % 100 || '.example.com/r' || n, 'type', 'http', 'x402Version', 2,
          'accepts', '[]'::json)::text, now(), now()
      from generate_series(1, ${resources}::int) n`
    yield* sql`insert into catalog_activity (resource_id, last_seen_at) select id, now() from catalog_resources`
    yield* sql`insert into catalog_impressions (at, session, mode, first_position, resource_ids, milliseconds, missing,
      reranking) select now() - n * interval '25 seconds', 's' || n % 5000, 'lexical', 1,
        array[1 + n % ${resources}::int, 1 + (n * 7) % ${resources}::int, 1 + (n * 13) % ${resources}::int]::bigint[],
        5, '{}', 'off'
      from generate_series(1, 100000) n`
  })

/** Queries without results: the maximum kept for each day, most of them once, some by many. */
export const fillMissed = (sql: SqlClient.SqlClient) =>
  sql`insert into catalog_missed_searches (day, words, session, times, last_at)
    select day::date, 'words ' || floor(power(random(), 3) * 20000)::int, 's' || n, 1 + n % 3,
      day + n * interval '4 seconds'
    from generate_series(now() at time zone 'UTC' - interval '29 days', now() at time zone 'UTC', '1 day') day,
      generate_series(1, 20000) n on conflict do nothing`.unprepared

/** Refusals of ninety days by reason and key, and the deliveries of a hundred thousand settlements to two receivers. */
export const fillLists = (sql: SqlClient.SqlClient) =>
  Effect.gen(function* () {
    yield* sql`insert into analytics_refusals (day, operation, reason, principal, refused, first_at, last_at, samples)
      select current_date - d, operation, 'settle_ledger_reason_' || r, 'key:shop-' || k, 1 + (r * 7 + k) % 40,
        now() - make_interval(days => d), now() - make_interval(days => d),
        jsonb_build_array(jsonb_build_object('at', now(), 'network', 'ledger:testnet', 'scheme', 'exact',
          'asset', 'CUSDC', 'amount', '10', 'payer', ${sql.literal(address("B", "k"))},
          'pay_to', ${sql.literal(address("S", "r"))},
          'resource_url', 'https://s1.example.com/r1', 'message', 'refused'))
      from generate_series(0, 89) d, generate_series(1, 12) r, generate_series(1, 20) k,
        (values ('verify'), ('settle')) o (operation)`.unprepared
    yield* sql`insert into webhooks_deliveries (receiver, position, type, settlement, told_at, state, attempts,
        last_answer, ended_at)
      select receiver, n, 'settlement.settled', ('00000000-0000-4000-a000-' || lpad(to_hex(n), 12, '0'))::uuid,
        now() - n * interval '25 seconds', case when n % 500 = 0 then 'given_up' else 'delivered' end, 1, '204', now()
      from generate_series(1, 100000) n, (values ('shop'), ('books')) r (receiver)`.unprepared
  })

export const fillSettlements = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, size: Size) {
  const { buyers, historyDays, resources, sellers, settlements } = size
  for (let from = 1; from <= settlements; from += chunk) {
    yield* sql`with made as (
        select n, ('00000000-0000-4000-a000-' || lpad(to_hex(n), 12, '0'))::uuid as id, random() as fate,
          1 + floor(power(random(), 2) * ${buyers}::int)::int as buyer,
          1 + floor(power(random(), 2) * ${sellers}::int)::int as seller,
          now() - make_interval(secs => 60 + ${historyDays * 86_400}::float8
            * power(1 - n::float8 / ${settlements + 1}::float8, 1.5)) as at
        from generate_series(${from}::int, ${Math.min(settlements, from + chunk - 1)}::int) n
      )
      insert into analytics_settlements (id, occurred_at, due_at, network, scheme, asset, payer, pay_to, amount_max,
        amount_meant, amount, fee_stroops, transaction_hash, status, facilitator_id, resource_id, resource_origin,
        resource_url, error_reason, organic, principal)
      select id, at, at + interval '25 seconds', 'ledger:testnet', case when n % 9 = 0 then 'upto' else 'exact' end,
        case when n % 5 = 0 then 'CXLM' else 'CUSDC' end, ${sql.literal(address("B", "buyer"))},
        ${sql.literal(address("S", "seller"))}, n % 10000 + 1, n % 10000 + 1,
        case when fate < 0.9 then n % 10000 + 1 when fate < 0.995 then 0 end, 23000, lpad(to_hex(n), 64, '0'),
        case when fate < 0.9 then 'success' when fate < 0.995 then 'failed' else 'unknown' end, 'replica-' || n % 3,
        case when seller <= ${resources}::int then seller end,
        case when seller <= ${resources}::int then 'https://s' || seller % 100 || '.example.com' end,
        case when seller <= ${resources}::int
          then 'https://s' || seller % 100 || '.example.com/r' || seller || '?n=' || n end,
        case when fate >= 0.9 and fate < 0.995 then (array['settle_ledger_transaction_failed',
          'settle_ledger_transaction_expired', 'settle_ledger_authorization_spent'])[1 + n % 3] end, n % 20 <> 0,
        'shop-' || n % 20
      from made`.unprepared
  }
  yield* sql`analyze analytics_settlements`.unprepared
})

const moved = "sum(case when status = 'success' then amount else 0 end)"

/** The statements that compute every rollup of analytics from its settlements; all settlements have ended. */
const rollups: ReadonlyArray<string> = [
  `insert into analytics_totals select width, date_trunc(width, occurred_at at time zone 'UTC') at time zone 'UTC',
    network, scheme, asset, status, count(*), ${moved}, sum(fee_stroops),
    count(*) filter (where organic and status = 'success'),
    coalesce(sum(amount) filter (where organic and status = 'success'), 0)
    from analytics_settlements cross join (values ('hour'), ('day')) w (width) group by 1, 2, 3, 4, 5, 6`,
  `insert into analytics_attendance select width, date_trunc(width, occurred_at at time zone 'UTC') at time zone 'UTC',
    role, count(distinct case role when 'buyer' then payer else pay_to end)
    from analytics_settlements cross join (values ('hour'), ('day')) w (width)
    cross join (values ('buyer'), ('seller')) r (role) group by 1, 2, 3`,
  `insert into analytics_members select kind, name, 'p_' || left(md5(name), 24),
    (max(occurred_at) at time zone 'UTC')::date
    from analytics_settlements cross join lateral (values ('buyer', payer), ('seller', pay_to),
      ('facilitator', facilitator_id), ('network', network), ('resource', resource_id::text)) m (kind, name)
    where name is not null group by kind, name`,
  `insert into analytics_member_days select kind, last_day, count(*) from analytics_members group by kind, last_day`,
  ...["(occurred_at at time zone 'UTC')::date", "'-infinity'::date"].map(
    (day) => `insert into analytics_standings select role, ${day}, address, asset, array_agg(distinct network),
      array_agg(distinct scheme), array_agg(distinct facilitator_id), count(*),
      count(*) filter (where status = 'success'), count(*) filter (where status = 'failed'), ${moved},
      min(occurred_at), max(occurred_at)
      from analytics_settlements cross join lateral (values ('buyer', payer), ('seller', pay_to)) r (role, address)
      group by 1, 2, 3, 4`
  ),
  `insert into analytics_pairs select payer, pay_to, asset, count(*), count(*) filter (where status = 'success'),
    ${moved}, min(occurred_at), max(occurred_at) from analytics_settlements group by 1, 2, 3`,
  `insert into analytics_resources select resource_id, min(resource_origin), asset, count(*),
    count(*) filter (where status = 'success'), ${moved}, min(occurred_at), max(occurred_at)
    from analytics_settlements where resource_id is not null group by resource_id, asset`,
  `insert into analytics_reasons select (occurred_at at time zone 'UTC')::date, error_reason, asset, status, count(*),
    sum(fee_stroops) from analytics_settlements where error_reason is not null group by 1, 2, 3, 4`,
  `insert into analytics_rankings select role, w.since, address, asset, sum(transactions), sum(amount)
    from analytics_standings s join analytics_ranking_windows w
      on case when w.since = '-infinity' then s.day = w.since else s.day >= w.since end
    group by role, w.since, address, asset`,
  `insert into analytics_partner_days select role, address, last_day, count(*) from (
      select payer, pay_to, (max(last_at) at time zone 'UTC')::date as last_day from analytics_pairs
      group by payer, pay_to) p
    cross join lateral (values ('buyer', payer), ('seller', pay_to)) r (role, address)
    group by role, address, last_day`
]

export const fillRollups = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  for (const statement of rollups) yield* sql.unsafe(statement).unprepared
})

/** The same settlements in the kernel's tables, and their facts; the readers of facts have read all of them. */
export const fillKernel = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  yield* sql`insert into kernel_settlements (id, network, scheme, authorization_key, authorization_expires_ledger,
      fingerprint, principal, identifier, payer, pay_to, asset, amount_max, amount, resource_url, inner_hash, sponsor,
      channel,
      channel_sequence, resource_fee_stroops, recorded_ledger, recorded_at, deadline_at, budget_day, budget_stroops,
      budget_shard, budget_keyed, state, resolved_at, ledger, closed_at, moved, fee_charged_stroops, reason,
      delivered_at, ended_by)
    select id, network, scheme, 'key ' || transaction_hash, 2000, transaction_hash, 'shop-' || right(pay_to, 1),
      'order-' || right(transaction_hash, 20), payer,
      pay_to, asset, amount_max, amount_meant, resource_url, transaction_hash, 'GSPONSOR', 'GCHANNEL',
      row_number() over (), 20000, 1000, occurred_at, due_at, occurred_at::date, 30000, 0, false,
      case status when 'success' then 'settled' when 'failed' then 'failed' else 'unresolved' end,
      occurred_at + interval '5 seconds', 1001, occurred_at + interval '4 seconds',
      case when status = 'success' then amount end, fee_stroops, error_reason,
      case when status = 'success' then occurred_at + interval '6 seconds' end,
      case when status <> 'unknown' then transaction_hash end
    from analytics_settlements`.unprepared
  yield* sql`insert into kernel_attempts (settlement, number, kind, inner_hash, outer_hash, envelope, inclusion_stroops,
      recorded_ledger)
    select id, 1, 'payment', inner_hash, md5(inner_hash) || md5(fingerprint || 'o'), '\\x00', 100, 1000
    from kernel_settlements`.unprepared
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`insert into kernel_facts (at, type, version, subject, data, position, principal)
        select case step when 1 then s.recorded_at else s.resolved_at end,
          case step when 1 then 'settlement.recorded' else 'settlement.' || s.state end, 1, s.id::text,
          case step when 1 then jsonb_build_object('network', s.network, 'scheme', s.scheme, 'asset', s.asset,
            'payer', s.payer, 'payTo', s.pay_to, 'amountMax', s.amount_max::text, 'transaction', s.inner_hash,
            'resourceUrl', s.resource_url, 'principal', s.principal)
          else jsonb_build_object('transaction', s.inner_hash, 'moved', s.moved::text, 'feeChargedStroops', '23000',
            'ledger', 1001, 'reason', s.reason) end,
          (select coalesce(max(position), 0) from kernel_facts) + row_number() over (order by s.resolved_at, step),
          s.principal
        from kernel_settlements s cross join (values (1), (2)) t (step)`.unprepared
      yield* sql`update kernel_fact_cursors set position = (select max(position) from kernel_facts)`
    })
  )
})
