// Rows of resources and the steps that all their changes share: an option that begins or ends, a version that is added,
// a change of state or owner with its decision, and the fact that notifies indexes of it. Everything here runs in the
// caller's transaction.
import { Effect } from "effect"
import type { SqlClient, Statement } from "effect/sql"
import type { Facts } from "../../../kernel/facts/Facts.ts"
import type { CatalogValues } from "../Config.ts"
import { changedFact, type ResourceState, type ResourceType } from "../contract.ts"
import type { Grade } from "../declaration/Grade.ts"
import type { StoredBody } from "./ResourceWire.ts"
import type { LiveOption } from "./mergeDeclaration.ts"

export interface ResourceRow {
  readonly id: bigint
  readonly type: ResourceType
  readonly resource: string
  readonly tool_name: string
  readonly origin: string | null
  readonly state: ResourceState
  readonly state_reason: string | null
  readonly verification: "unverified" | "payment_observed"
  readonly ownership: "provisional" | "proven"
  readonly pay_tos: ReadonlyArray<string>
  readonly version: number
  readonly version_hash: string
  readonly declaration: StoredBody
  /** The source of the words it shows. */
  readonly grade: Grade
  readonly stateHash: string
  /** Its recipient's key, its origin or a settled payment that counts confirms it. */
  readonly has_evidence: boolean
}

/**
 * A hash of everything that decides the outcome of a declaration: while it is the same, so is the outcome of the same
 * declaration. The owner, the state, the words and their source.
 */
const stateHash = "md5(concat_ws(' ', state, verification, grade, version_hash, array_to_string(pay_tos, ' ')))"

const rowColumns =
  "id, type, resource, tool_name, origin, state, state_reason, verification, ownership, " +
  `pay_tos, version, version_hash, declaration, grade, ${stateHash} as "stateHash", ` +
  "standing_at is not null as has_evidence"

/** The state of each of these resources, by its id. */
export const readStates = (sql: SqlClient.SqlClient, ids: ReadonlyArray<bigint>) =>
  Effect.map(
    sql<{ id: bigint; stateHash: string }>`select id, ${sql.literal(stateHash)} as "stateHash" from catalog_resources
      where id in (select value::bigint from jsonb_array_elements_text(${JSON.stringify(ids.map(String))}::jsonb))`,
    (rows) => new Map(rows.map((row) => [row.id, row.stateHash]))
  )

/** A resource locked for the rest of the transaction. */
export const lockResource = (sql: SqlClient.SqlClient, by: { readonly key: string } | { readonly id: bigint }) =>
  Effect.map(
    "key" in by
      ? sql<ResourceRow>`select ${sql.literal(rowColumns)} from catalog_resources where key = ${by.key} for update`
      : sql<ResourceRow>`select ${sql.literal(rowColumns)} from catalog_resources where id = ${by.id} for update`,
    (rows) => rows[0]
  )

export const liveOptions = (sql: SqlClient.SqlClient, id: bigint) =>
  sql<LiveOption>`select id, operation, scheme, network, asset, pay_to as "payTo", amount::text as amount,
      option from catalog_options
    where resource_id = ${id} and retired_at is null order by id`

/** The actor of a change: this program by its rules, an origin by its statement, or an operator's label. */
export type Actor = "facilitator" | "origin" | `operator:${string}`

export interface StateChange {
  readonly by: Actor
  /** Past tense, such as `listed`, `displaced`, `proven`, `quarantined`, `restored`, `went_stale`, `moved`. */
  readonly move: string
  readonly from: ResourceState | null
  readonly to: ResourceState
  readonly reason: string
  /** For operators only. */
  readonly detail?: string
}

export const publishChange = (facts: Facts["Service"], id: bigint, change: string) =>
  facts.publish({ type: changedFact, version: 1, subject: String(id), data: { resourceId: String(id), change } })

export const recordMove = (
  sql: SqlClient.SqlClient,
  id: bigint,
  now: Date,
  { by, detail, from, move, reason, to }: StateChange
) =>
  sql`insert into catalog_decisions
    ${sql.insert({
      resource_id: id,
      at: now,
      by,
      move,
      from_state: from,
      to_state: to,
      reason,
      detail: detail ?? null
    })}`

/** Moves a resource's state, with its decision and fact. */
export const moveState = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  facts: Facts["Service"],
  id: bigint,
  now: Date,
  move: StateChange
) {
  yield* sql`update catalog_resources set state = ${move.to}, state_reason =
    ${move.to === "active" ? null : move.reason}, state_changed_at = ${now} where id = ${id}`
  yield* recordMove(sql, id, now, move)
  yield* publishChange(facts, id, move.move)
})

/** A probe found no endpoint there that asks to be paid. */
export const isDead = ({ state, state_reason }: Pick<ResourceRow, "state" | "state_reason">): boolean =>
  state === "stale" && (state_reason ?? "not_seen") !== "not_seen"

/**
 * The dead probes of a listing are void: they were of other words, of another operation, or a settlement refutes them.
 */
const voidDeadProbes = (sql: SqlClient.SqlClient, id: bigint) =>
  sql`update catalog_probes set dead = 0 where resource_id = ${id} and dead > 0`

/** Returns a listing that probes found dead. */
export const revive = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  facts: Facts["Service"],
  { id, state }: Pick<ResourceRow, "id" | "state">,
  now: Date,
  reason: string
) {
  yield* voidDeadProbes(sql, id)
  yield* moveState(sql, facts, id, now, { by: "facilitator", move: "returned", from: state, to: "active", reason })
})

type Probing = Pick<CatalogValues, "probeOrigins" | "probePauseSeconds">

/** Makes probes due soon for the resources of `catalog_resources` that match the condition; returns one row each. */
const makeDue = (
  sql: SqlClient.SqlClient,
  condition: Statement.Fragment,
  { probePauseSeconds }: Probing,
  { isFree, now }: { readonly isFree: boolean; readonly now: Date }
) => {
  const soon = sql`greatest(${now}, coalesce(p.asked_at + ${probePauseSeconds} * interval '1 second', ${now}))`
  return sql`insert into catalog_probes as p (resource_id, due_at, stands, free)
      select id, ${now}, standing_at is not null, ${isFree} from catalog_resources where ${condition} order by id
    on conflict (resource_id) do update set stands = excluded.stands,
      free = excluded.free and (p.free or p.due_at > ${soon}), due_at = least(p.due_at, ${soon}) returning 1`
}

/**
 * Makes a probe of the origin due soon, but not before the pause after the last one has passed, and in the listing's
 * own queue. A free request never marks a probe as free that is due for another reason, or due as soon.
 */
export const requestProbe = (
  sql: SqlClient.SqlClient,
  id: bigint,
  config: Probing,
  asked: { readonly isFree: boolean; readonly now: Date }
) => (config.probeOrigins ? makeDue(sql, sql`id = ${id}`, config, asked) : Effect.void)

/** Like `requestProbe`, free, for the listings of an origin, hidden ones first; returns their number. */
export const requestProbesOf = (
  sql: SqlClient.SqlClient,
  { max, origin }: { readonly origin: string; readonly max: number },
  config: Probing,
  now: Date
) => {
  if (!config.probeOrigins) return Effect.succeed(0)
  const listings = sql`id in (select id from catalog_resources where origin = ${origin} and state <> 'removed'
    order by state = 'active', last_look_at nulls first, id limit ${max})`
  return Effect.map(makeDue(sql, listings, config, { isFree: true, now }), (rows) => rows.length)
}

/** Like `requestProbe`, free, for those of these listings that were not probed since; the longest ago first. */
export const requestProbesAmong = (
  sql: SqlClient.SqlClient,
  { ids, max, since }: { readonly ids: ReadonlyArray<bigint>; readonly max: number; readonly since: Date },
  config: Probing,
  now: Date
) => {
  const listings = sql`id in (select r.id from catalog_resources r left join catalog_probes p on p.resource_id = r.id
    where r.id = any(${`{${ids.join(",")}}`}::int8[]) and r.state = 'active'
      and (p.asked_at is null or p.asked_at < ${since}) order by p.asked_at nulls first, r.id limit ${max})`
  return Effect.map(makeDue(sql, listings, config, { isFree: true, now }), (rows) => rows.length)
}
