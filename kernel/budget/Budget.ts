// The sponsor's limit on network fees, in stroops per UTC day: per principal and in total, with half of the total kept
// for keyed principals. The maximum cost of a transaction is reserved when it is recorded, and replaced by the ledger's
// charge when it ends, both on the day of the reservation; failed transactions count. The total is spread over shards,
// so that no row is hot. Reservations made in the same instant may therefore together pass the total by their own size;
// a principal's bound is exact.
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { Limits } from "../config/Limits.ts"
import { contract } from "../contract/Contract.ts"
import { monotonicMillis } from "../time/monotonicMillis.ts"
import { withSpanIfSampled } from "../effect/withSpanIfSampled.ts"
import { committing, reserving } from "./budgetStatements.ts"
import { batchSpendReads } from "./batchSpendReads.ts"
import type { BudgetPrincipal, DayBounds, Reservation } from "./Reservation.ts"
import { type AllSpent, BudgetSpendCache, fitsWithin, principalsMax } from "./BudgetSpendCache.ts"

/** Rows over which a day's total is spread, for each of keyed and anonymous. */
const shards = 8

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

/**
 * The time that determines the day, Unix milliseconds: the ledger's if there is one, so that a wrong machine clock
 * neither opens a second budget nor closes the first.
 */
export const BudgetTime = Context.Reference<Effect.Effect<number>>("tollkeeper/budget/BudgetTime", {
  defaultValue: () => Clock.currentTimeMillis
})

/** Usage of a bound: reserved and charged, stroops. */
export interface Usage {
  readonly usedStroops: bigint
  readonly maxStroops: bigint
}

export interface BudgetStatus {
  /** UTC day, `YYYY-MM-DD`. */
  readonly day: string
  readonly all: Usage
  /** Usage of all keyless callers together. */
  readonly anonymous: Usage
  /** Keyed principals with usage today, the nearest to their bound first; at most 100. */
  readonly keyed: ReadonlyArray<Usage & { readonly principal: string }>
}

/** When the day's bounds start again. */
export interface BudgetReset {
  /** Unix milliseconds of the ledger's time. */
  readonly at: number
  readonly inMillis: number
}

/** Maximum number of keyed principals in one status. */
const keyedMax = 100

const charge = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  day: string,
  principal: BudgetPrincipal,
  stroops: bigint,
  spread: number
) {
  const shard = Math.abs(spread) % shards
  yield* sql`insert into kernel_sponsor_budget as b (day, principal, committed_stroops)
    values (${day}::date, ${principal.id}, ${stroops}::int8)
    on conflict (day, principal) do update
    set committed_stroops = b.committed_stroops + excluded.committed_stroops`
  yield* sql`insert into kernel_sponsor_budget_total as t (day, keyed, shard, committed_stroops)
    values (${day}::date, ${principal.keyed}, ${shard}, ${stroops}::int8)
    on conflict (day, keyed, shard) do update
    set committed_stroops = t.committed_stroops + excluded.committed_stroops`
  return { day, principal: principal.id, keyed: principal.keyed, shard, stroops }
}, withSpanIfSampled("Budget.charge"))

const commit = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { day, keyed, principal, shard, stroops }: Reservation,
  charged: bigint
) {
  yield* sql`with settled as (select ${day}::date as budget_day, ${principal}::text as budget_of,
      ${keyed}::boolean as budget_keyed, ${shard}::int as budget_shard, ${stroops}::int8 as budget_stroops,
      ${charged}::int8 as charged),
    ${committing(sql, "settled")}
    select 1`
}, withSpanIfSampled("Budget.commit"))

interface UsedRow {
  readonly all: bigint
  readonly anonymous: bigint
  readonly principal: string | null
  readonly used: bigint
}

/** The totals of a day, and the principals that have spent most of it, those with a key first. */
const readUsed = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, day: string) {
  // Each row repeats the totals; if no key was used, they are in a separate row.
  const rows = yield* sql<UsedRow>`select total.*, spender.* from (
      select coalesce(sum(reserved_stroops + committed_stroops), 0)::int8 as all,
        coalesce(sum(reserved_stroops + committed_stroops) filter (where not keyed), 0)::int8 as anonymous
      from kernel_sponsor_budget_total where day = ${day}::date
    ) as total left join (
      select principal, reserved_stroops + committed_stroops as used from kernel_sponsor_budget
      where day = ${day}::date order by principal like 'key:%' desc, used desc limit ${principalsMax}
    ) as spender on true`
  const of = rows.flatMap(({ principal, used }) => (principal === null ? [] : [[principal, used] as const]))
  return { inAll: rows[0]!.all, anonymous: rows[0]!.anonymous, of: new Map(of) }
}, withSpanIfSampled("Budget.status"))

const statusOf = (
  day: string,
  spent: AllSpent,
  inAll: bigint,
  boundOf: (principal: string) => bigint
): BudgetStatus => {
  const keyed = [...spent.of].filter(([principal]) => principal.startsWith("key:")).slice(0, keyedMax)
  return {
    day,
    all: { usedStroops: spent.inAll, maxStroops: inAll },
    anonymous: { usedStroops: spent.anonymous, maxStroops: inAll / 2n },
    keyed: keyed.map(([principal, usedStroops]) => ({ principal, usedStroops, maxStroops: boundOf(principal) }))
  }
}

/** Whether an amount fits: by a read of the last second, or by the last read. */
const makeFits = Effect.fnUntraced(function* (
  lately: BudgetSpendCache,
  today: Effect.Effect<string>,
  boundsOf: (principal: string) => DayBounds
) {
  const spentOn = yield* batchSpendReads

  const fitsNow = Effect.fnUntraced(function* (principal: BudgetPrincipal, stroops: bigint, day: string) {
    const at = { day, now: yield* monotonicMillis }
    const spent = yield* spentOn(day, principal.id)
    lately.read(principal, spent, at)
    return fitsWithin(spent, boundsOf(principal.id), principal.keyed, stroops)
  })

  const fits = Effect.fnUntraced(function* (principal: BudgetPrincipal, stroops: bigint) {
    const at = { day: yield* today, now: yield* monotonicMillis }
    return lately.fits(principal, stroops, boundsOf(principal.id), at) || (yield* fitsNow(principal, stroops, at.day))
  }, withSpanIfSampled("Budget.fits"))

  const fitsAsRead = Effect.fnUntraced(function* (principal: BudgetPrincipal, stroops: bigint) {
    const day = yield* today
    return lately.fitted(principal, stroops, boundsOf(principal.id), day) || (yield* fitsNow(principal, stroops, day))
  })

  return { fits, fitsAsRead }
})

/** The end of a UTC day, Unix milliseconds. */
const endOf = (day: string): number => Date.parse(day) + 86_400_000

/** The next reset after a time, Unix milliseconds. */
export const resetAfter = (now: number): BudgetReset => {
  const at = endOf(new Date(now).toISOString().slice(0, 10))
  return { at, inMillis: at - now }
}

export class Budget extends Context.Service<
  Budget,
  {
    /** A cheap early check, up to one second stale: would this amount still fit? Reserves nothing. */
    readonly fits: (principal: BudgetPrincipal, stroops: bigint) => Sql<boolean>
    /**
     * The same by the last read, regardless of its age, and this process's reservations since. It runs a statement only
     * before it answers false. `status` reads.
     */
    readonly fitsAsRead: (principal: BudgetPrincipal, stroops: bigint) => Sql<boolean>
    /** The latest time at which a payment that does not fit now will fit. */
    readonly resets: Effect.Effect<BudgetReset>
    /**
     * The same as a part of the caller's statement: it reserves once `given` has a row, and `budget_reserved` has a row
     * if it fits.
     */
    readonly reserving: (
      principal: BudgetPrincipal,
      stroops: bigint,
      spread: number,
      given: string
    ) => Effect.Effect<{ readonly reservation: Reservation; readonly part: Statement.Fragment }>
    /** Reserves inside the caller's transaction; None if it does not fit. `spread` picks the shard. */
    readonly reserve: (principal: BudgetPrincipal, stroops: bigint, spread: number) => Sql<Reservation | undefined>
    /**
     * Records a charge without a reservation, inside the caller's transaction. The fee is already paid, so no limit
     * applies.
     */
    readonly charge: (principal: BudgetPrincipal, stroops: bigint, spread: number) => Sql<Reservation>
    /** Replaces a reservation with the charged amount, inside the caller's transaction. */
    readonly commit: (reservation: Reservation, chargedStroops: bigint) => Sql<void>
    /** The UTC day that a current payment is charged to, `YYYY-MM-DD`. */
    readonly today: Effect.Effect<string>
    /** The usage of today's limits, and the limits; `fitsAsRead` uses this reading until the next one. */
    readonly status: Sql<BudgetStatus>
  }
>()("tollkeeper/budget/Budget") {
  static readonly layer = Layer.effect(
    Budget,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const limits = yield* Limits
      const time = yield* BudgetTime
      /** The UTC day that a current payment is charged to. */
      const today = Effect.map(time, (now) => new Date(now).toISOString().slice(0, 10))
      const boundOf = (principal: string): bigint =>
        limits.sponsoredByKeyPerDayStroopsMax?.get(principal) ?? limits.sponsoredPerPrincipalPerDayStroopsMax

      const lately = new BudgetSpendCache()
      const boundsOf = (principal: string): DayBounds => ({
        own: boundOf(principal),
        inAll: limits.sponsoredPerDayStroopsMax
      })

      const { fits, fitsAsRead } = yield* makeFits(lately, today, boundsOf)
      const status = Effect.gen(function* () {
        const at = { day: yield* today, now: yield* monotonicMillis }
        const spent = yield* readUsed(sql, at.day)
        lately.readAll(spent, at)
        return statusOf(at.day, spent, limits.sponsoredPerDayStroopsMax, boundOf)
      })

      const reservingPart = Effect.fnUntraced(function* (
        principal: BudgetPrincipal,
        stroops: bigint,
        spread: number,
        given: string
      ) {
        const { id, keyed } = principal
        const reservation = { day: yield* today, principal: id, keyed, shard: Math.abs(spread) % shards, stroops }
        lately.reserving(principal, stroops)
        return { reservation, part: reserving(sql, reservation, boundsOf(id), given) }
      })

      const reserve = Effect.fnUntraced(function* (principal: BudgetPrincipal, stroops: bigint, spread: number) {
        const { part, reservation } = yield* reservingPart(principal, stroops, spread, "given")
        const rows = yield* sql`with given as (select 1), ${part} select 1 from budget_reserved`
        return rows.length === 0 ? undefined : reservation
      }, withSpanIfSampled("Budget.reserve"))

      return Budget.of({
        fits,
        reserve,
        reserving: reservingPart,
        today,
        status,
        fitsAsRead,
        resets: Effect.map(time, resetAfter),
        charge: (principal, stroops, spread) =>
          Effect.flatMap(today, (day) => charge(sql, day, principal, stroops, spread)),
        commit: (reservation, chargedStroops) => commit(sql, reservation, chargedStroops)
      })
    })
  )
}

export const budgetContract = contract("budget", Budget)
