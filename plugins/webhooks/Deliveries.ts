// The queue of deliveries, in the database. An event is delivered to a receiver at least once. The events of one
// settlement are delivered in order: the next one is due only after the previous one has ended. A sender holds a row by
// a lease with a fence, so two replicas never send it concurrently, and a crash costs one repetition.
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { SettlementEvent } from "../../kernel/settlement/operators/SettlementEvents.ts"
import type { Receiver } from "./Config.ts"

export interface Delivery {
  readonly id: bigint
  readonly receiver: string
  readonly type: string
  readonly settlement: string
  readonly toldAt: Date
  /** Null for a delivery queued without a body, until its first attempt fixes it. */
  readonly body: string | null
  /** Milliseconds since it was queued, by the database's clock: a process's clock may be hours off. */
  readonly ageMillis: number
  /** Including this one. */
  readonly attempts: number
  readonly fence: bigint
}

export type AttemptResult =
  | { readonly _tag: "Delivered"; readonly answer: string }
  /** Retried after the pause. A pause that the receiver asked for holds its other events too. */
  | { readonly _tag: "Failed"; readonly answer: string; readonly pauseMillis: number; readonly isAsked: boolean }
  | { readonly _tag: "GivenUp"; readonly answer: string }
  /** The receiver answered that it is gone. Nothing is sent to it until an operator enables it. */
  | { readonly _tag: "Disabled"; readonly answer: string }

interface PendingDelivery {
  readonly receiver: string
  readonly position: bigint
  readonly type: string
  readonly settlement: string
  /** The settlement's owner. */
  readonly principal: string | null
  readonly at: Date
  /** Its message's body, fixed from now on; null if it cannot be made yet. */
  readonly body: string | null
}

interface ReceiverStatus {
  readonly receiver: string
  readonly due: number
  readonly delivered: number
  readonly given_up: number
  readonly oldest_due: Date | null
  /** End of the pause that the receiver asked for. */
  readonly resting_until: Date | null
  /** Time of its 410 answer; nothing is sent since then. */
  readonly disabled_at: Date | null
  readonly last_answer: string | null
}

/** A receiver in the settings of a replica; without a principal it gets all settlements. */
export type NamedReceiver = Pick<Receiver, "name" | "principal">

/** How long a replica's receivers count after it renewed them last: longer than its restart. */
const announcedMinutes = 10

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

export class Deliveries extends Context.Service<
  Deliveries,
  {
    /** Renews the rows of this replica's receivers. */
    readonly announce: (receivers: ReadonlyArray<NamedReceiver>) => Sql<void>
    /** The receivers of every replica that renewed them lately. */
    readonly announced: Sql<ReadonlyArray<NamedReceiver>>
    /** Queues deliveries; existing ones stay unchanged. */
    readonly owe: (owed: ReadonlyArray<PendingDelivery>) => Sql<void>
    /**
     * Leases a receiver's due deliveries, at most one event of each settlement, of this principal or of all. None
     * during a pause or while it is disabled.
     */
    readonly lease: (
      receiver: string,
      limit: number,
      leaseMillis: number,
      principal?: string | undefined
    ) => Sql<ReadonlyArray<Delivery>>
    /** Records the result of an attempt; has no effect if its lease was lost. */
    readonly note: (delivery: Delivery, attempted: AttemptResult) => Sql<void>
    /** Fixes the body of a delivery that was queued without one. */
    readonly fix: (delivery: Delivery, body: string) => Sql<void>
    /** Makes deliveries that wait for their backoff due now. */
    readonly hurry: (receiver: string) => Sql<void>
    /** Ends the pause that a receiver has asked for. */
    readonly resume: (receiver: string) => Sql<void>
    /** Enables a receiver that answered 410; returns whether it was disabled. Its due deliveries are sent. */
    readonly enable: (receiver: string) => Sql<boolean>
    readonly disabled: Sql<ReadonlyArray<string>>
    /**
     * Gives up deliveries that a disabled receiver, or one that is no longer in the settings, did not get in time, and
     * deletes deliveries that ended `keepMillis` ago; returns the number of deletions.
     */
    readonly forget: (keepMillis: number, giveUpAfterMillis: number) => Sql<number>
    /** Makes events due again, as if they had just happened; returns the number of events. */
    readonly replay: (receiver: string, events: ReadonlyArray<SettlementEvent>) => Sql<number>
    readonly receiverStatuses: Sql<ReadonlyArray<ReceiverStatus>>
  }
>()("tollkeeper/webhooks/Deliveries") {
  static readonly layer = Layer.effect(
    Deliveries,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const insert = (owed: ReadonlyArray<PendingDelivery>) => {
        const rows = owed.map(({ at, body, position, principal, receiver, settlement, type }) => ({
          receiver,
          position: String(position),
          type,
          settlement,
          principal,
          at,
          body
        }))
        return sql`insert into webhooks_deliveries as d (receiver, position, type, settlement, principal, told_at, body)
          select receiver, position, type, settlement, principal, at, body
          from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as r (receiver text, position bigint, type text,
            settlement uuid, principal text, at timestamptz, body text)`
      }

      return Deliveries.of({
        ...announcingOf(sql),
        owe: (owed) => (owed.length === 0 ? Effect.void : Effect.asVoid(sql`${insert(owed)} on conflict do nothing`)),
        lease: leaseOf(sql),
        fix: (delivery, body) =>
          Effect.asVoid(sql`update webhooks_deliveries set body = ${body} where ${heldBy(sql, delivery)}`),
        note: noteOf(sql),
        hurry: (receiver) =>
          Effect.asVoid(sql`update webhooks_deliveries set due_at = clock_timestamp()
            where receiver = ${receiver} and state = 'due' and due_at > clock_timestamp()`),
        resume: (receiver) => Effect.asVoid(sql`delete from webhooks_pauses where receiver = ${receiver}`),
        forget: Effect.fnUntraced(function* (keepMillis, giveUpAfterMillis) {
          yield* sql`update webhooks_deliveries set state = 'given_up', ended_at = clock_timestamp()
            where state = 'due' and queued_at < clock_timestamp() - ${giveUpAfterMillis} * interval '1 millisecond'
              and (receiver in (select receiver from webhooks_disabled)
                or not exists (select 1 from webhooks_receivers r where r.receiver = webhooks_deliveries.receiver
                  and (r.principal = '' or webhooks_deliveries.principal is null
                    or r.principal = webhooks_deliveries.principal)))`
          yield* sql`delete from webhooks_receivers
            where seen_at < clock_timestamp() - ${giveUpAfterMillis} * interval '1 millisecond' - interval '1 day'`
          const rows = yield* sql`delete from webhooks_deliveries where state <> 'due'
              and ended_at < clock_timestamp() - ${keepMillis} * interval '1 millisecond' returning 1`
          return rows.length
        }),
        replay: (receiver, events) =>
          events.length === 0
            ? Effect.succeed(0)
            : Effect.map(
                sql`${insert(
                  events.map(({ settlement, ...event }) => ({
                    ...event,
                    receiver,
                    settlement: settlement.id,
                    principal: settlement.principal,
                    body: null
                  }))
                )}
                on conflict (receiver, position) do update set state = 'due', queued_at = clock_timestamp(),
                  due_at = clock_timestamp(), attempts = 0, ended_at = null, principal = excluded.principal
                returning 1`,
                ({ length }) => length
              ),
        ...disablingOf(sql),
        receiverStatuses: receiverStatuses(sql)
      })
    })
  )
}

/**
 * First attempts come before retries, except that a lease of several has a place for a retry: events that the receiver
 * never accepts delay no other event.
 */
const leaseOf =
  (sql: SqlClient.SqlClient): Deliveries["Service"]["lease"] =>
  (receiver, limit, leaseMillis, principal = "") => {
    const isDue = sql`d.receiver = ${receiver} and d.state = 'due' and d.due_at <= clock_timestamp()
      and (${principal} = '' or d.principal is null or d.principal = ${principal})
      and (d.leased_until is null or d.leased_until <= clock_timestamp())
      and not exists (select 1 from webhooks_pauses p where p.receiver = d.receiver and p.until > clock_timestamp())
      and not exists (select 1 from webhooks_disabled g where g.receiver = d.receiver)
      and not exists (select 1 from webhooks_deliveries e where e.receiver = d.receiver
        and e.settlement = d.settlement and e.state = 'due' and e.position < d.position)`
    return sql<Delivery>`with first as materialized (
        select d.id from webhooks_deliveries d where ${isDue} and d.attempts = 0
        order by d.due_at limit ${Math.max(1, limit - 1)} for update skip locked
      ), again as materialized (
        select d.id from webhooks_deliveries d where ${isDue} and d.attempts > 0
        order by d.due_at limit ${limit}::int8 - (select count(*) from first) for update skip locked
      )
      update webhooks_deliveries set attempts = attempts + 1, fence = fence + 1,
        leased_until = clock_timestamp() + ${leaseMillis} * interval '1 millisecond'
      where id in (select id from first union all select id from again)
      returning id, receiver, type, settlement::text as settlement, told_at as "toldAt", body,
        (extract(epoch from clock_timestamp() - queued_at) * 1000)::float8 as "ageMillis", attempts, fence`
  }

/**
 * The row that a lease holds. A database that lost its last commits may assign an id and fence again, so the condition
 * includes the subject.
 */
const heldBy = (sql: SqlClient.SqlClient, { fence, id, receiver, settlement, type }: Delivery) =>
  sql`id = ${id} and fence = ${fence} and receiver = ${receiver} and settlement = ${settlement}::uuid
    and type = ${type}`

/** Records an attempt. If the receiver asked for a pause, its other events wait too. */
const noteOf =
  (sql: SqlClient.SqlClient): Deliveries["Service"]["note"] =>
  (delivery, attempted) => {
    const own = sql`${heldBy(sql, delivery)} and state = 'due'`
    if (attempted._tag === "Disabled")
      return Effect.asVoid(sql`with gone as (update webhooks_deliveries set leased_until = null,
          last_answer = ${attempted.answer} where ${own} returning receiver)
        insert into webhooks_disabled (receiver) select receiver from gone on conflict do nothing`)
    if (attempted._tag !== "Failed")
      return Effect.asVoid(sql`update webhooks_deliveries set leased_until = null, last_answer = ${attempted.answer},
        state = ${attempted._tag === "Delivered" ? "delivered" : "given_up"}, ended_at = clock_timestamp()
        where ${own}`)
    const next = sql`clock_timestamp() + ${attempted.pauseMillis} * interval '1 millisecond'`
    const failed = sql`update webhooks_deliveries set leased_until = null, last_answer = ${attempted.answer},
      due_at = ${next} where ${own} returning receiver`
    return Effect.asVoid(
      attempted.isAsked
        ? sql`with failed as (${failed})
            insert into webhooks_pauses (receiver, until) select receiver, ${next} from failed
            on conflict (receiver) do update set until = greatest(webhooks_pauses.until, excluded.until)`
        : failed
    )
  }

const announcingOf = (sql: SqlClient.SqlClient): Pick<Deliveries["Service"], "announce" | "announced"> => ({
  announce: (receivers) => {
    if (receivers.length === 0) return Effect.void
    const rows = receivers.map(({ name, principal = "" }) => ({ receiver: name, principal }))
    return Effect.asVoid(sql`insert into webhooks_receivers (receiver, principal)
        select receiver, principal from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
          as r (receiver text, principal text)
        on conflict (receiver, principal) do update set seen_at = clock_timestamp()`)
  },
  announced: Effect.map(
    sql<{ receiver: string; principal: string }>`select receiver, principal from webhooks_receivers
        where seen_at > clock_timestamp() - make_interval(mins => ${announcedMinutes}::int)`,
    (rows) => rows.map(({ principal, receiver }) => ({ name: receiver, principal: principal || undefined }))
  )
})

const disablingOf = (sql: SqlClient.SqlClient): Pick<Deliveries["Service"], "enable" | "disabled"> => ({
  enable: (receiver) =>
    Effect.map(sql`delete from webhooks_disabled where receiver = ${receiver} returning 1`, (rows) => rows.length > 0),
  disabled: Effect.map(sql<{ receiver: string }>`select receiver from webhooks_disabled order by receiver`, (rows) =>
    rows.map(({ receiver }) => receiver)
  )
})

const receiverStatuses = (sql: SqlClient.SqlClient) =>
  sql<ReceiverStatus>`select r.receiver, count(*) filter (where state = 'due')::int as due,
      count(*) filter (where state = 'delivered')::int as delivered,
      count(*) filter (where state = 'given_up')::int as given_up,
      min(told_at) filter (where state = 'due') as oldest_due,
      (select p.until from webhooks_pauses p where p.receiver = r.receiver
        and p.until > clock_timestamp()) as resting_until,
      (select g.disabled_at from webhooks_disabled g where g.receiver = r.receiver) as disabled_at,
      (array_agg(last_answer order by id desc) filter (where last_answer is not null))[1] as last_answer
    from (select receiver from webhooks_deliveries union select receiver from webhooks_disabled) r
    left join webhooks_deliveries d on d.receiver = r.receiver group by r.receiver order by r.receiver`
