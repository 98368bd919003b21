// Restricts every report to the payments of one key. Each statement of the report runs with common table expressions
// that shadow the tables by name: the settlements of that key, and the rollups as sums over these. So no report needs a
// second version for one key, and a new report is scoped without extra code. A key owns the payments that it settled.
// It owns listings and their observations through the recipients that signed for it, since anyone may pay to any
// recipient. Only operators see verifications, because their rollup has no key.
import { Effect } from "effect"
import { Statement } from "effect/sql"

const counted = `count(*) as transactions, count(*) filter (where status = 'success') as successful`
const moved = `coalesce(sum(amount) filter (where status = 'success'), 0) as amount`
const bounded = `min(occurred_at) as first_at, max(occurred_at) as last_at`
const dayOf = `(occurred_at at time zone 'UTC')::date`
const roles = `lateral (values ('buyer', payer, pay_to), ('seller', pay_to, payer)) r (role, address, partner)`
const widths = `(values ('hour'), ('day')) w (width)`
const startOf = `date_trunc(w.width, occurred_at, 'UTC')`

/** The rollups over `tenant_shown`, each with the columns of its table that a report reads. */
const rollups: Readonly<Record<string, string>> = {
  analytics_totals: `select w.width, ${startOf} as starts_at, network, scheme, asset, status,
      count(*) as transactions, ${moved}, coalesce(sum(fee_stroops), 0) as fee_stroops,
      count(*) filter (where organic and status = 'success') as organic_transactions,
      coalesce(sum(amount) filter (where organic and status = 'success'), 0) as organic_amount
    from tenant_shown, ${widths} group by 1, 2, 3, 4, 5, 6`,
  analytics_standings: `select role, d.day, address, asset, array_agg(distinct network) as networks,
      array_agg(distinct scheme) as schemes, array_agg(distinct facilitator_id) as facilitators, ${counted},
      count(*) filter (where status = 'failed') as failed, ${moved}, ${bounded}
    from tenant_shown, ${roles}, lateral (values (${dayOf}), ('-infinity'::date)) d (day) group by 1, 2, 3, 4`,
  analytics_pairs: `select payer, pay_to, asset, ${counted}, ${moved}, ${bounded} from tenant_shown group by 1, 2, 3`,
  analytics_resources: `select resource_id, asset, max(resource_origin) as origin, ${counted}, ${moved}, ${bounded}
    from tenant_shown where resource_id is not null group by 1, 2`,
  analytics_reasons: `select ${dayOf} as day, error_reason as reason, asset, status, count(*) as transactions,
      coalesce(sum(fee_stroops), 0) as fee_stroops
    from tenant_shown where error_reason is not null group by 1, 2, 3, 4`,
  analytics_members: `select m.kind, m.name, max(k.pseudonym) as pseudonym, max(${dayOf}) as last_day
    from tenant_shown, lateral (values ('buyer', payer), ('seller', pay_to), ('facilitator', facilitator_id),
      ('network', network), ('resource', resource_id::text)) m (kind, name)
    left join analytics_members k on k.kind = m.kind and k.name = m.name where m.name is not null group by 1, 2`,
  analytics_member_days: `select kind, last_day, count(*) as members from analytics_members group by 1, 2`,
  analytics_partner_days: `select role, address, last_day, count(*) as members from (
      select role, address, partner, max(${dayOf}) as last_day from tenant_shown, ${roles} group by 1, 2, 3) p
    group by 1, 2, 3`,
  analytics_attendance: `select w.width, ${startOf} as starts_at, role, count(distinct address) as members
    from tenant_shown, ${widths}, ${roles} group by 1, 2, 3`,
  analytics_ranking_windows: "select since from analytics_ranking_windows where false",
  analytics_rankings: "select * from analytics_rankings where false",
  analytics_verifications: "select * from analytics_verifications where false"
}

const shadowed = (sql: Statement.Constructor, principal: string) => {
  const recipients = sql`(select pay_to from catalog_recipients where principal = ${principal})`
  const own = {
    analytics_settlements: sql`select * from analytics_settlements where principal = ${principal}`,
    tenant_shown: sql`select * from analytics_settlements where status <> 'open'`,
    analytics_refusals: sql`select * from analytics_refusals where principal = ${principal}`,
    kernel_settlements: sql`select * from kernel_settlements where principal = ${principal}`,
    catalog_resources: sql`select * from catalog_resources where pay_tos && array${recipients}`,
    catalog_observations: sql`select * from catalog_observations where pay_to in ${recipients}`,
    ...Object.fromEntries(Object.entries(rollups).map(([name, text]) => [name, sql`${sql.literal(text)}`]))
  }
  const tables = Object.entries(own).map(([name, select]) => sql`${sql.literal(name)} as not materialized (${select})`)
  return Statement.join(", ", false)(tables)
}

/**
 * SQL allows one list of such expressions per level: a statement's own list is appended to ours; a recursive one is
 * nested.
 */
const behind = (sql: Statement.Constructor, tables: Statement.Fragment, { segments }: Statement.Fragment) => {
  const [first, ...rest] = segments
  const text = first?._tag === "Literal" ? first.value.trimStart() : ""
  if (/^with\s+recursive\s/i.test(text)) return sql`with ${tables} select * from (${Statement.fragment(segments)}) r`
  return /^with\s/i.test(text)
    ? sql`with ${tables}, ${Statement.fragment([Statement.literal(text.slice("with".length)), ...rest])}`
    : sql`with ${tables} ${Statement.fragment(segments)}`
}

const transformer =
  (principal: string): Statement.Transformer =>
  (self, sql) =>
    Effect.succeed(behind(sql, shadowed(sql, principal), self))

/** Runs a report's statements over the payments of one principal. They must not write. */
export const ofTenant = <A, E, R>(principal: string, report: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(report, Statement.CurrentTransformer, transformer(principal))

/**
 * A part of a report that several readers share and that does not depend on payments: runs over all data for each
 * reader.
 */
export const ofAll = <A, E, R>(part: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(part, Statement.CurrentTransformer, undefined)
