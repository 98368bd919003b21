// Deliveries as operators list them, newest first, by cursor: pending, sent and given-up ones for each receiver. A page
// costs its rows, because the order is the table's own key.
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import {
  as,
  columns,
  computed,
  count,
  moment,
  nullable,
  text as textColumn,
  uuid,
  whole
} from "../../kernel/database/table.ts"
import { countedFields, text, time } from "../../kernel/http/wireSchema.ts"

/** The filter of the list; absent members do not filter. */
export interface DeliveryFilter {
  readonly receiver?: string | undefined
  readonly state?: string | undefined
  readonly type?: string | undefined
  readonly settlement?: string | undefined
  /** Time of the event, `from` inclusive and `to` exclusive; ISO 8601. */
  readonly from?: string | undefined
  readonly to?: string | undefined
}

export interface DeliveryPage {
  readonly limit: number
  /** The id of the previous page's last delivery. */
  readonly cursor?: string | undefined
}

const ListedDelivery = Schema.Struct({
  id: text("Its number."),
  receiver: text("Name of the receiver in the settings."),
  type: text("The event, such as `settlement.settled`."),
  settlement: text("The settlement's id."),
  event_at: time("When it happened."),
  state: Schema.Literals(["due", "delivered", "given_up"]),
  attempts: Schema.Int,
  last_answer: Schema.NullOr(text("Result of the last attempt: an HTTP status, or why there was none.")),
  next_at: Schema.NullOr(time("Time of the next attempt; null once it has ended.")),
  ended_at: Schema.NullOr(time("When the receiver accepted it, or it was given up."))
}).annotate({ identifier: "WebhookDelivery" })

export const ListedDeliveries = Schema.Struct({
  items: Schema.Array(ListedDelivery),
  receivers: Schema.Array(text("Name of each receiver that has deliveries.")),
  pagination: Schema.Struct(countedFields)
}).annotate({ identifier: "WebhookDeliveries" })

const deliveries = columns({
  id: whole,
  receiver: textColumn,
  type: textColumn,
  settlement: uuid,
  eventAt: computed("told_at", moment),
  state: as<"due" | "delivered" | "given_up">(textColumn),
  attempts: count,
  lastAnswer: nullable(textColumn),
  endedAt: nullable(moment),
  dueAt: computed(
    `greatest(due_at,
      (select p.until from webhooks_pauses p where p.receiver = webhooks_deliveries.receiver))`,
    moment
  )
})

/** Maximum number of counted matches; above it the answer is “more than”. */
const countedMax = 1_000
/** Maximum number of receiver names in a list. */
const receiversMax = 100

const conditionOf = (sql: SqlClient.SqlClient, filter: DeliveryFilter) => {
  const { from, receiver, settlement, state, to, type } = filter
  return sql.and([
    sql`true`,
    ...(receiver === undefined ? [] : [sql`receiver = ${receiver}`]),
    ...(state === undefined ? [] : [sql`state = ${state}`]),
    ...(type === undefined ? [] : [sql`type = ${type}`]),
    ...(settlement === undefined ? [] : [sql`settlement = ${settlement}::uuid`]),
    ...(from === undefined ? [] : [sql`told_at >= ${from}::timestamptz`]),
    ...(to === undefined ? [] : [sql`told_at < ${to}::timestamptz`])
  ])
}

const shown = (row: ReturnType<typeof deliveries.decode>): typeof ListedDelivery.Type => ({
  id: row.id.toString(),
  receiver: row.receiver,
  type: row.type,
  settlement: row.settlement,
  event_at: row.eventAt.toISOString(),
  state: row.state,
  attempts: row.attempts,
  last_answer: row.lastAnswer,
  next_at: row.state === "due" ? row.dueAt.toISOString() : null,
  ended_at: row.endedAt?.toISOString() ?? null
})

export const listDeliveries = Effect.fn("Webhooks.list")(function* (filter: DeliveryFilter, page: DeliveryPage) {
  const sql = yield* SqlClient.SqlClient
  const kept = conditionOf(sql, filter)
  const behind = page.cursor === undefined ? sql`true` : sql`id < ${page.cursor}::bigint`
  const rows = yield* sql`select ${sql.literal(deliveries.selected)}
    from webhooks_deliveries where ${kept} and ${behind} order by id desc limit ${page.limit + 1}`.unprepared
  const counted =
    page.cursor === undefined
      ? yield* sql<{ total: bigint }>`select count(*) as total from (select 1 from webhooks_deliveries
          where ${kept} limit ${countedMax + 1}) s`.unprepared
      : []
  // Each name is one step along the index of (receiver, position).
  const receivers = yield* sql<{ receiver: string }>`with recursive name as (
      (select receiver, 1 as step from webhooks_deliveries order by receiver limit 1)
      union all
      select (select d.receiver from webhooks_deliveries d where d.receiver > name.receiver
        order by d.receiver limit 1), step + 1
      from name where name.receiver is not null and step < ${receiversMax}
    ) select receiver from name where receiver is not null`
  const items = rows.slice(0, page.limit).map(deliveries.decode)
  const total = counted[0] === undefined ? undefined : Number(counted[0].total)
  return {
    items: items.map(shown),
    receivers: receivers.map(({ receiver }) => receiver),
    pagination: {
      limit: page.limit,
      cursor: rows.length > page.limit ? items.at(-1)!.id.toString() : null,
      ...(total === undefined ? {} : { total: Math.min(total, countedMax), more: total > countedMax })
    }
  } satisfies typeof ListedDeliveries.Type
})
