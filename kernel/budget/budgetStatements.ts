// CTEs that reserve, or settle a reservation. The caller puts them into the statement that records or ends a
// settlement. So the rows of a day, which all replicas share, are locked only until that statement commits.
import type { SqlClient, Statement } from "effect/sql"
import type { DayBounds, Reservation } from "./Reservation.ts"

/**
 * Reserves once `given`, a relation, has a row: `budget_reserved` then has one, unless a bound is reached. A
 * principal's bound is checked under the lock of its row, the total as of the statement's beginning.
 */
export const reserving = (
  sql: SqlClient.SqlClient,
  { day, keyed, principal, shard, stroops }: Reservation,
  bounds: DayBounds,
  given: string
): Statement.Fragment => sql`budget_spent as (
    select coalesce(sum(reserved_stroops + committed_stroops), 0) as in_all,
      coalesce(sum(reserved_stroops + committed_stroops) filter (where not keyed), 0) as anonymous
    from kernel_sponsor_budget_total where day = ${day}::date),
  budget_reserved as (
    insert into kernel_sponsor_budget as b (day, principal, reserved_stroops)
    select ${day}::date, ${principal}, ${stroops}::int8 from budget_spent, ${sql.literal(given)}
    where ${stroops}::int8 <= ${bounds.own}::int8 and in_all + ${stroops}::int8 <= ${bounds.inAll}::int8
      and (${keyed}::boolean or anonymous + ${stroops}::int8 <= ${bounds.inAll / 2n}::int8)
    on conflict (day, principal) do update set reserved_stroops = b.reserved_stroops + excluded.reserved_stroops
    where b.reserved_stroops + b.committed_stroops + excluded.reserved_stroops <= ${bounds.own}::int8
    returning 1),
  budget_reserved_total as (
    insert into kernel_sponsor_budget_total as t (day, keyed, shard, reserved_stroops)
    select ${day}::date, ${keyed}, ${shard}, ${stroops}::int8 from budget_reserved
    on conflict (day, keyed, shard) do update
    set reserved_stroops = t.reserved_stroops + excluded.reserved_stroops)`

/**
 * Replaces the reservations of the rows of `ended`, a relation with the columns `budget_day`, `budget_of`,
 * `budget_keyed`, `budget_shard`, `budget_stroops`, by their `charged`; each row of a day is updated once. A
 * principal's row is locked before the total's, in the same order as in a reservation, and rows of one table by their
 * keys, if the planner keeps that order. In another order two statements would deadlock until the database ends one of
 * them, which is then retried.
 */
export const committing = (sql: SqlClient.SqlClient, ended: string): Statement.Fragment =>
  sql.literal(`budget_own as (
    update kernel_sponsor_budget as b set reserved_stroops = b.reserved_stroops - e.reserved,
      committed_stroops = b.committed_stroops + e.charged
    from (select budget_day, budget_of, sum(budget_stroops)::int8 as reserved, sum(charged)::int8 as charged
      from ${ended} group by budget_day, budget_of order by budget_day, budget_of) as e
    where b.day = e.budget_day and b.principal = e.budget_of returning 1),
  budget_all as (
    update kernel_sponsor_budget_total as t set reserved_stroops = t.reserved_stroops - e.reserved,
      committed_stroops = t.committed_stroops + e.charged
    from (select budget_day, budget_keyed, budget_shard, sum(budget_stroops)::int8 as reserved,
        sum(charged)::int8 as charged
      from ${ended} where (select count(*) from budget_own) >= 0
      group by budget_day, budget_keyed, budget_shard order by budget_day, budget_keyed, budget_shard) as e
    where t.day = e.budget_day and t.keyed = e.budget_keyed and t.shard = e.budget_shard)`)
