// Visibility and filters of discovery, as SQL over `catalog_resources r`. A filter on the terms of payment holds for
// one and the same option. Statements with such a filter are sent unprepared, so that PostgreSQL plans each for the
// values it is given: a rare recipient is found by index, a common network is not (S107, S114).
import type { SqlClient, Statement } from "effect/sql"
import type { CatalogValues } from "../Config.ts"
import type { Filters } from "../contract.ts"
import { youngText } from "../store/ResourceWire.ts"

export const visible = (sql: SqlClient.SqlClient, config: CatalogValues): Statement.Fragment =>
  sql.and([
    config.includeStale ? sql`r.state in ('active', 'stale')` : sql`r.state = 'active'`,
    ...(config.includeUnverified ? [] : [sql`r.verification = 'payment_observed'`])
  ])

/** It had evidence at that time (milliseconds, or an expression of SQL). */
export const hadEvidence = (sql: SqlClient.SqlClient, asOf: number | Statement.Fragment): Statement.Fragment =>
  sql`r.standing_at <= ${typeof asOf === "number" ? new Date(asOf) : asOf}`

/** Its only evidence is payments, and they risked too little, too recently. A condition on `r`. */
export const isYoung = (sql: SqlClient.SqlClient): Statement.Fragment => sql`${sql.literal(youngText)}`

const evidenceOf = (sql: SqlClient.SqlClient, of: Required<Filters>["evidence"]): Statement.Fragment => {
  if (of === "any") return sql`r.standing_at is not null`
  const isEstablished = sql`r.standing_at is not null and not ${isYoung(sql)}`
  return of === "established" ? sql`(${isEstablished})` : sql`(r.standing_at < ${of} or (${isEstablished}))`
}

/** The values of the filters decide the plan. */
export const isPlannedByValue = ({ type: _, ...selective }: Filters): boolean =>
  Object.values(selective).some((value) => value !== undefined)

const optionConditions = (
  sql: SqlClient.SqlClient,
  { asset, maxPrice, network, payTo, scheme }: Filters
): ReadonlyArray<Statement.Fragment> => [
  ...(payTo === undefined ? [] : [sql`o.pay_to = ${payTo}`]),
  ...(asset === undefined ? [] : [sql`o.asset = ${asset}`]),
  ...(maxPrice === undefined ? [] : [sql`o.amount <= ${maxPrice.toString()}::numeric`]),
  ...(network === undefined ? [] : [sql`o.network = ${network}`]),
  ...(scheme === undefined ? [] : [sql`o.scheme = ${scheme}`])
]

export const conditionOf = (
  sql: SqlClient.SqlClient,
  config: CatalogValues,
  filters: Filters,
  snapshot?: bigint
): Statement.Fragment => {
  const options = optionConditions(sql, filters)
  return sql.and([
    visible(sql, config),
    ...(snapshot === undefined ? [] : [sql`r.id <= ${snapshot}`]),
    ...(filters.evidence === undefined ? [] : [evidenceOf(sql, filters.evidence)]),
    ...(filters.type === undefined ? [] : [sql`r.type = ${filters.type}`]),
    ...(filters.extension === undefined ? [] : [sql`r.extensions @> array[${filters.extension}]::text[]`]),
    ...(options.length === 0
      ? []
      : [
          sql`exists (select 1 from catalog_options o where o.resource_id = r.id and o.retired_at is null
            and ${sql.and([...options])})`
        ])
  ])
}

/** Start of a page (`BrowsePosition`), as values or SQL expressions; `first` is an array of ids. */
export interface Behind {
  readonly asOf: number | Statement.Fragment
  readonly below: bigint | Statement.Fragment
  readonly first: Statement.Fragment
}

/** Rows after a position, either among the resources with evidence or among the others. A condition on `r`. */
export const following = (
  sql: SqlClient.SqlClient,
  config: CatalogValues,
  hasEvidence: boolean,
  { asOf, below, first }: Behind,
  filters: Filters
): Statement.Fragment =>
  sql.and([
    hasEvidence ? hadEvidence(sql, asOf) : sql`(${hadEvidence(sql, asOf)}) is not true`,
    sql`r.id < ${below}`,
    sql`r.id <> all (${first})`,
    conditionOf(sql, config, filters)
  ])
