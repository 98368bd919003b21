// Reservations in the tool servers' own PostgreSQL, shared by replicas (S303). The store decides a reservation in one
// transaction under a lock of its agent, so that two replicas cannot exceed a ceiling together. A state change is one
// conditional update. Ended reservations are deleted by age, after every ceiling and repetition window has passed. Ages
// use the database's clock: replicas with different clocks count the same minute, and none deletes a reservation that
// another has just made.
import { Clock, Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { as, columns, computed, count, float, optional, type Row, text, units } from "../../../kernel/database/table.ts"
import {
  BudgetStore,
  BudgetUnavailable,
  contentLengthsMax,
  type SealedContents,
  receiptsMax,
  type ReserveResult
} from "./BudgetStore.ts"
import {
  type Ceilings,
  type Grade,
  mayTransition,
  minuteMillis,
  releasedMax,
  type Reservation,
  type ReservationState,
  reservationStates,
  undelivered
} from "./Reservation.ts"

const reservations = columns({
  id: text,
  day: { ...text, cast: "text" },
  agent: text,
  session: text,
  invocation: text,
  network: text,
  asset: text,
  payTo: text,
  origin: optional(text),
  grade: optional(as<Grade>(text)),
  amount: units,
  state: as<ReservationState>(text),
  payer: optional(text),
  nonce: optional(units),
  expirationLedger: optional(count),
  transaction: optional(text),
  receipt: optional(text),
  /** Milliseconds since the reservation was made. */
  age: computed("(extract(epoch from clock_timestamp() - created_at) * 1000)::float8", float),
  /** Milliseconds since the acknowledgement. */
  acknowledged: computed("(extract(epoch from clock_timestamp() - acknowledged_at) * 1000)::float8", optional(float))
})

/** Converts to this process's clock: now minus the creation time is the age by the database's clock. */
const toReservation = (row: Row, now: number): Reservation => {
  const { acknowledged, age, expirationLedger, nonce, payer, ...stored } = reservations.decode(row)
  return {
    ...stored,
    createdAtMillis: Math.round(now - age),
    authorization:
      payer === undefined || nonce === undefined || expirationLedger === undefined
        ? undefined
        : { payer, nonce, expirationLedger },
    acknowledgedAtMillis: acknowledged === undefined ? undefined : Math.round(now - acknowledged)
  }
}

const statesBefore = (to: ReservationState) => reservationStates.filter((from) => mayTransition(from, to))

const openMax = 1_000

/** Amounts spent in the day, in atomic units of the asset. */
interface SpentAmounts {
  readonly day: string
  readonly session: string
  readonly recipient: string
  readonly origin: string
  readonly grade: string
}

const fitsBelow = (
  { perDay, perGrade, perOrigin, perRecipient, perSession }: Ceilings,
  { amount, grade, origin }: Reservation,
  spent: SpentAmounts
): boolean => {
  const optional = [
    [perRecipient, spent.recipient],
    [origin === undefined ? 0n : perOrigin, spent.origin],
    [grade === undefined ? 0n : perGrade[grade], spent.grade]
  ] as const
  return (
    BigInt(spent.day) + amount <= perDay &&
    BigInt(spent.session) + amount <= perSession &&
    optional.every(([ceiling, already]) => ceiling === 0n || BigInt(already) + amount <= ceiling)
  )
}

/** Oldest row that the rate limit reads, by the database's clock. It bounds the scan; no clock is off by a day. */
const lateMillis = 86_400_000

const ago = (sql: SqlClient.SqlClient, millis: number) =>
  sql`clock_timestamp() - ${millis}::float8 * interval '1 millisecond'`

const readReservations = (
  sql: SqlClient.SqlClient,
  which: Statement.Fragment
): Effect.Effect<ReadonlyArray<Reservation>, SqlError.SqlError> =>
  Effect.flatMap(sql`select ${sql.literal(reservations.selected)} from mcp_tools_reservations where ${which}`, (rows) =>
    Effect.map(Clock.currentTimeMillis, (now) => rows.map((row) => toReservation(row, now)))
  )

const madeFor = (sql: SqlClient.SqlClient, invocation: string) =>
  Effect.map(
    sql<{ made: bigint }>`select count(*) as made from mcp_tools_reservations where invocation = ${invocation}`,
    ([row]) => Number(row?.made ?? 0n)
  )

/** Runs in one transaction. The lock of the agent also covers its invocations. */
const reserveIn = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  one: Reservation,
  ceilings: Ceilings,
  made: number
): Effect.fn.Return<ReserveResult, SqlError.SqlError> {
  const lock = `mcp-tools ${one.agent}`
  yield* sql`select pg_advisory_xact_lock(hashtextextended(${lock}, 0))`
  if ((yield* madeFor(sql, one.invocation)) !== made) return "changed"
  const [spent] = yield* sql<SpentAmounts>`select
    coalesce(sum(amount), 0)::text as day,
    coalesce(sum(amount) filter (where session = ${one.session}), 0)::text as session,
    coalesce(sum(amount) filter (where pay_to = ${one.payTo}), 0)::text as recipient,
    coalesce(sum(amount) filter (where origin = ${one.origin ?? null}), 0)::text as origin,
    coalesce(sum(amount) filter (where grade = ${one.grade ?? null}), 0)::text as grade
    from mcp_tools_reservations
    where day = ${one.day}::date and agent = ${one.agent} and network = ${one.network}
      and asset = ${one.asset} and state <> 'released'`
  const [lately] = yield* sql<{ count: bigint }>`select count(*) as count from mcp_tools_reservations
    where agent = ${one.agent} and state <> 'released' and created_at > ${ago(sql, lateMillis)}
      and case when ledger_seconds is null or ${one.ledgerSeconds ?? null}::int8 is null
        then created_at > ${ago(sql, minuteMillis)}
        else ledger_seconds > ${one.ledgerSeconds ?? null}::int8 - ${minuteMillis / 1_000}::int8 end`
  if (spent === undefined || lately === undefined) return "over"
  const { paymentsPerMinute } = ceilings
  if (paymentsPerMinute > 0 && lately.count >= BigInt(paymentsPerMinute)) return "over"
  if (!fitsBelow(ceilings, one, spent)) return "over"
  yield* sql`insert into mcp_tools_reservations
    (id, day, agent, session, invocation, network, asset, pay_to, origin, grade, amount, state, created_at,
      ledger_seconds)
    values (${one.id}, ${one.day}::date, ${one.agent}, ${one.session}, ${one.invocation}, ${one.network},
      ${one.asset}, ${one.payTo}, ${one.origin ?? null}, ${one.grade ?? null},
      ${one.amount.toString()}::numeric, 'reserved', clock_timestamp(), ${one.ledgerSeconds ?? null}::int8)`
  return "kept"
})

const forgottenMax = 1_000

/**
 * Deletes ended reservations of that age; true if there may be more. Spent and undelivered ones stay, so that they are
 * not paid for again. Settled ones stay until their day is three days before the newest counted day, whatever this
 * machine's clock shows.
 */
export const forgetReservations = Effect.fnUntraced(function* (keepMillis: number) {
  const sql = yield* SqlClient.SqlClient
  const deleted = yield* sql`delete from mcp_tools_reservations where id in (
    select id from mcp_tools_reservations where state in ('settled', 'released')
      and created_at < ${ago(sql, keepMillis)} and (state = 'released'
        or day <= (select max(day) from mcp_tools_reservations where state <> 'released') - 3)
    order by created_at limit ${forgottenMax}) returning 1`
  return deleted.length === forgottenMax
})

/** Reservations of one invocation. The count is read first, so that `reserve` detects a reservation made after it. */
const knownOf = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, invocation: string) {
  const made = yield* madeFor(sql, invocation)
  const waiting = yield* readReservations(
    sql,
    sql`invocation = ${invocation} and (state in ${sql.in(undelivered)} or content is not null)
      order by created_at desc limit 10`
  )
  const released = yield* sql<{ id: string }>`select id from mcp_tools_reservations r
    where invocation = ${invocation} and state = 'released' and nonce is not null and not exists (
      select 1 from mcp_tools_reservations later where later.invocation = r.invocation
        and later.state = 'settled' and later.created_at > r.created_at)
    order by created_at desc limit ${releasedMax}`
  return { made, undelivered: waiting, released: released.map(({ id }) => id) }
})

/** One statement. Rejects content that does not fit. */
const keepOnce = (sql: SqlClient.SqlClient, id: string, { content, payment }: SealedContents, lengthsMax: number) =>
  Effect.map(
    sql<{ id: string }>`update mcp_tools_reservations set payment = coalesce(${payment ?? null}::text, payment),
      content = coalesce(${content ?? null}::text, content)
      where id = ${id} and state in ${sql.in(undelivered)} and (${content ?? null}::text is null
        or (select coalesce(sum(octet_length(content)), 0) from mcp_tools_reservations where content is not null)
          + ${content?.length ?? 0}::int8 <= ${lengthsMax}::int8) returning id`,
    (rows) => rows.length === 1
  )

/**
 * Drops the oldest content of the agent with the most, if that is more than the agent of `id` will have; false if none
 * was dropped.
 */
const dropOfLargest = (sql: SqlClient.SqlClient, id: string, length: number) =>
  Effect.map(
    sql<{ id: string }>`with held as (
        select agent, sum(octet_length(content)) as length from mcp_tools_reservations where content is not null
          group by agent
      ), own as (select agent from mcp_tools_reservations where id = ${id}),
      largest as (
        select agent from held where length > ${length}::int8
          + coalesce((select length from held where agent = (select agent from own)), 0)
          order by length desc, agent limit 1
      )
      update mcp_tools_reservations set content = null where id = (
        select id from mcp_tools_reservations where content is not null and agent = (select agent from largest)
          order by created_at, id limit 1) returning id`,
    (rows) => rows.length === 1
  )

/** In a full store, drops contents of acknowledged payments, then of agents that have more, and tries again. */
const keep = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  id: string,
  kept: SealedContents,
  lengthsMax: number
) {
  if (yield* keepOnce(sql, id, kept, lengthsMax)) return true
  if (kept.content === undefined || kept.content.length > lengthsMax) return false
  yield* sql`update mcp_tools_reservations set content = null
    where state = 'acknowledged' and content is not null`
  while (!(yield* keepOnce(sql, id, kept, lengthsMax)))
    if (!(yield* dropOfLargest(sql, id, kept.content.length))) return false
  return true
})

const keptOf = (sql: SqlClient.SqlClient, id: string) =>
  Effect.map(
    sql<{ payment: string | null; content: string | null }>`select payment, content from mcp_tools_reservations
      where id = ${id}`,
    ([row]): SealedContents => ({ payment: row?.payment ?? undefined, content: row?.content ?? undefined })
  )

const unshared = new BudgetUnavailable({ cause: "payment channels are not shared" })

export const postgresStore = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const guarded = <A>(effect: Effect.Effect<A, SqlError.SqlError, SqlClient.SqlClient>) =>
    effect.pipe(
      Effect.provideService(SqlClient.SqlClient, sql),
      Effect.mapError((cause) => new BudgetUnavailable({ cause }))
    )

  return BudgetStore.of({
    reserve: (one, ceilings, made) => guarded(inTransaction(reserveIn(sql, one, ceilings, made))),
    move: (id, { authorization, from, receipt, state, transaction }) =>
      guarded(
        Effect.map(
          sql<{ id: string }>`update mcp_tools_reservations set state = ${state},
          payer = coalesce(${authorization?.payer ?? null}::text, payer),
          nonce = coalesce(${authorization?.nonce.toString() ?? null}::numeric, nonce),
          expiration_ledger = coalesce(${authorization?.expirationLedger ?? null}::int8, expiration_ledger),
          transaction = coalesce(${transaction ?? null}::text, transaction),
          receipt = coalesce(${receipt ?? null}::text, receipt),
          payment = case when ${state}::text = 'settled' or (${state}::text = 'released' and content is null)
            then null else payment end,
          content = case when ${state}::text = 'settled' then null else content end,
          acknowledged_at = case when ${state}::text = 'acknowledged' then clock_timestamp() else acknowledged_at end
          where id = ${id} and state in ${sql.in(statesBefore(state))}
            and (${from ?? null}::text is null or state = ${from ?? null}) returning id`,
          (rows) => rows.length === 1
        )
      ),
    open: guarded(
      readReservations(sql, sql`state in ('reserved', 'signed', 'unknown') order by created_at limit ${openMax}`)
    ),
    ofInvocation: (invocation) => guarded(knownOf(sql, invocation)),
    settleAcknowledged: (ageMillis) =>
      guarded(
        Effect.asVoid(
          sql`update mcp_tools_reservations set state = 'settled', payment = null, content = null
            where state = 'acknowledged' and acknowledged_at <= ${ago(sql, ageMillis)}`
        )
      ),
    keep: (id, kept, lengthsMax = contentLengthsMax) => guarded(keep(sql, id, kept, lengthsMax)),
    kept: (id) => guarded(keptOf(sql, id)),
    receipts: (agent) =>
      guarded(
        readReservations(
          sql,
          sql`agent = ${agent} and receipt is not null order by created_at desc limit ${receiptsMax}`
        )
      ),
    forget: (id) =>
      guarded(
        Effect.asVoid(
          sql`update mcp_tools_reservations set payment = null, content = null where id = ${id} and state = 'released'`
        )
      ),
    // One process counts a channel's total, so the settings do not allow payment channels with this store.
    totals: () => Effect.fail(unshared),
    keepTotals: () => Effect.fail(unshared),
    channels: Effect.succeed([]),
    keepChannel: () => Effect.fail(unshared),
    forgetChannel: () => Effect.void,
    holdChannel: () => Effect.fail(unshared),
    isShared: true
  })
})
