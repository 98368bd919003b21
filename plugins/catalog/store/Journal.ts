// What is written behind the payments: when resources were last seen, how often they were paid and by whom, and what
// came of observations. It gathers in memory, an actor stores it in batches every second; a crash loses at most that
// second, and a database that is away loses what is over the bounds, counted. A settled payment counts once, by its
// transaction, whichever replica saw it. No payment waits for any of it.
import { Effect, Metric } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Hex } from "effect/encoding"
import { inTransaction } from "../../../kernel/database/Database.ts"
import type { Facts } from "../../../kernel/Facts.ts"
import { canonicalJson } from "../../../kernel/payment/canonicalJson.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import { type Sold as SoldData, soldFact } from "../contract.ts"
import { moveState } from "./Resources.ts"
import type { Recorded } from "./recordDeclaration.ts"

const touchesMax = 20_000
const salesMax = 20_000
const observationsMax = 5_000
/**
 * Rows of observations that one payer may make in a UTC day: a payment that is only verified costs its payer nothing.
 */
const rowsPerPayerMax = 2_000
const payersMax = 50_000
/** Settled payments told in one fact. */
const toldMax = 500

export interface Observation {
  readonly resourceKey: string | undefined
  readonly resourceId: bigint | undefined
  readonly url: string
  readonly type: string | undefined
  readonly toolName: string | undefined
  readonly payTo: string
  /** Not stored. */
  readonly payer: string
  readonly stage: "verified" | "settled"
  readonly decision: Recorded["decision"]
  readonly reason: string | undefined
  readonly detail: string | undefined
  readonly at: Date
  readonly lagMillis: number
}

interface Touch {
  lastSeenAt: Date
  observed: number
}

/** A settled payment. */
export interface Sale {
  /** Inner hash, hex. */
  readonly transaction: string
  readonly payer: string
}

interface Sold extends Sale {
  readonly resourceId: bigint
  readonly at: Date
}

const dropped = Metric.counter("tollkeeper_catalog_dropped_total", {
  description: "Observations and settled payments that could not be stored because too many waited.",
  incremental: true
})

export interface Journal {
  /** A listed resource was observed, with its sale when the payment is settled. Never waits. */
  readonly touch: (id: bigint, at: Date, sale: Sale | undefined) => Effect.Effect<void>
  readonly observe: (observation: Observation) => Effect.Effect<void>
  /** Stores what has gathered. What fails is kept for the next time. */
  readonly flush: Effect.Effect<void, SqlError.SqlError>
}

interface JournalOptions {
  readonly sql: SqlClient.SqlClient
  readonly facts: Facts["Service"]
  readonly crypto: Crypto["Service"]
}

export const makeJournal = ({ crypto, facts, sql }: JournalOptions): Journal => {
  let touches = new Map<bigint, Touch>()
  let sales = new Map<string, Sold>()
  let rows = { day: "", byPayer: new Map<string, number>() }
  let observations = new Map<string, Observation & { times: number; firstAt: Date }>()

  const touch: Journal["touch"] = (id, at, sale) => {
    const known = touches.get(id)
    if (known !== undefined || touches.size < touchesMax) {
      touches.set(id, {
        observed: (known?.observed ?? 0) + 1,
        lastSeenAt: known === undefined || at > known.lastSeenAt ? at : known.lastSeenAt
      })
    }
    if (sale === undefined || sales.has(sale.transaction)) return Effect.void
    if (sales.size >= salesMax) return Metric.update(dropped, 1)
    sales.set(sale.transaction, { ...sale, resourceId: id, at })
    return Effect.void
  }

  /** One row a day for what is the same in all but its time. */
  const digestOf = ({
    at,
    decision,
    detail,
    payTo,
    reason,
    resourceId,
    stage,
    toolName,
    type,
    url
  }: Observation): string =>
    Hex.encode(
      crypto.sha256(
        new TextEncoder().encode(
          canonicalJson([
            at.toISOString().slice(0, 10),
            url,
            type ?? null,
            toolName ?? null,
            payTo,
            stage,
            decision,
            reason ?? null,
            detail ?? null,
            String(resourceId ?? "")
          ])
        )
      )
    )

  const observe: Journal["observe"] = (observation) => {
    const day = observation.at.toISOString().slice(0, 10)
    if (day !== rows.day) rows = { day, byPayer: new Map() }
    const digest = digestOf(observation)
    if ((rows.byPayer.get(observation.payer) ?? 0) >= rowsPerPayerMax) return Metric.update(dropped, 1)
    const known = observations.get(digest)
    if (known === undefined && observations.size >= observationsMax) return Metric.update(dropped, 1)
    observations.set(digest, {
      ...observation,
      times: (known?.times ?? 0) + 1,
      firstAt: known?.firstAt ?? observation.at
    })
    return Effect.void
  }

  /** Replicas store the same resources at the same time: in one order, none waits for another that waits for it. */
  const lockActivity = (ids: ReadonlyArray<bigint>) =>
    sql`select 1 from catalog_activity where resource_id in (select value::bigint
      from jsonb_array_elements_text(${JSON.stringify(ids.map(String))}::jsonb)) order by resource_id for update`

  const storeTouches = Effect.fnUntraced(function* (batch: ReadonlyMap<bigint, Touch>, now: Date) {
    const rows = [...batch].map(([id, { lastSeenAt, observed }]) => ({
      resource_id: String(id),
      seen: lastSeenAt,
      observed
    }))
    yield* sql`update catalog_activity a set last_seen_at = greatest(a.last_seen_at, t.seen), observed = a.observed +
      t.observed
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as t(resource_id bigint, seen timestamptz, observed
        bigint) where a.resource_id = t.resource_id`
    const returned = yield* sql<{ id: bigint }>`select id from catalog_resources
      where state = 'stale' and id in (select value::bigint from
        jsonb_array_elements_text(${JSON.stringify([...batch.keys()].map(String))}::jsonb)) order by id for
        update skip locked`
    for (const { id } of returned) {
      yield* moveState(sql, facts, id, now, {
        by: "facilitator",
        move: "returned",
        from: "stale",
        to: "active",
        reason: "payment_observed"
      })
    }
  })

  /** Counts what was not counted before; a transaction that another replica stores meanwhile is waited for. */
  const storeSales = (batch: ReadonlyMap<string, Sold>) => {
    const rows = [...batch.values()].map(({ at, payer, resourceId, transaction }) => ({
      transaction,
      resource_id: String(resourceId),
      payer,
      at
    }))
    return sql`with given as (
        select t.* from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as t(transaction text, resource_id bigint,
          payer text, at timestamptz)
        join catalog_activity a on a.resource_id = t.resource_id
      ), counted as (
        insert into catalog_sales (transaction, resource_id, at) select transaction, resource_id, at from given
          order by transaction
        on conflict (transaction) do nothing returning transaction
      ), sold as (
        select resource_id, payer, count(*) as times, max(at) as at from given join counted using (transaction)
          group by resource_id, payer
      ), paid as (
        insert into catalog_payers (resource_id, payer, settled, last_settled_at) select resource_id, payer, times, at
          from sold order by resource_id, payer
        on conflict (resource_id, payer) do update set settled = catalog_payers.settled + excluded.settled,
          last_settled_at = greatest(catalog_payers.last_settled_at, excluded.last_settled_at)
        returning resource_id, (xmax = 0) as fresh
      )
      update catalog_activity a set settled = a.settled + s.times, last_settled_at = greatest(a.last_settled_at, s.at),
        payers = a.payers + s.fresh
      from (select resource_id, sum(times) as times, max(at) as at, (select count(*) from paid
        where paid.resource_id = sold.resource_id and fresh) as fresh from sold group by resource_id) s
      where a.resource_id = s.resource_id`
  }

  const countRow = (payer: string): void => {
    const count = (rows.byPayer.get(payer) ?? 0) + 1
    rows.byPayer.delete(payer)
    rows.byPayer.set(payer, count)
    if (rows.byPayer.size > payersMax) rows.byPayer.delete(rows.byPayer.keys().next().value!)
  }

  /** Tells which resources the batch's payments were counted for. */
  const tellSales = Effect.fnUntraced(function* (batch: ReadonlyMap<string, Sold>) {
    const all = [...batch.keys()]
    for (let from = 0; from < all.length; from += toldMax) {
      const sales = yield* sql<
        SoldData["sales"][number]
      >`select s.transaction, s.resource_id::text as "resourceId", r.origin
        from catalog_sales s join catalog_resources r on r.id = s.resource_id
        where s.transaction in (select value from
          jsonb_array_elements_text(${JSON.stringify(all.slice(from, from + toldMax))}::jsonb)) order by s.transaction`
      if (sales.length > 0)
        yield* facts.publish({
          type: soldFact,
          version: 1,
          subject: sales[0]!.resourceId,
          data: { sales } satisfies SoldData
        })
    }
  })

  const storeObservations = (batch: typeof observations) => {
    const given = [...batch].map(([digest, one]) => ({
      digest,
      resource_key: one.resourceKey ?? null,
      resource_id: one.resourceId === undefined ? null : String(one.resourceId),
      url: one.url,
      type: one.type ?? null,
      tool_name: one.toolName ?? null,
      pay_to: one.payTo,
      stage: one.stage,
      decision: one.decision,
      reason: one.reason ?? null,
      detail: one.detail ?? null,
      first_at: one.firstAt,
      last_at: one.at,
      times: one.times,
      lag_ms: one.lagMillis
    }))
    const stored = sql<{
      digest: string
      fresh: boolean
    }>`insert into catalog_observations (digest, resource_key, resource_id, url, type, tool_name, pay_to, stage,
      decision, reason, detail, first_at, last_at, times, lag_ms)
      select * from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as t(digest text, resource_key text, resource_id
        bigint, url text, type text, tool_name text,
        pay_to text, stage text, decision text, reason text, detail text, first_at timestamptz, last_at timestamptz,
          times bigint, lag_ms integer) order by digest
      on conflict (digest) do update set times = catalog_observations.times + excluded.times, last_at =
        excluded.last_at, lag_ms = excluded.lag_ms
      returning digest, (xmax = 0) as fresh`
    return Effect.map(stored, (rows) => {
      for (const { digest, fresh } of rows) if (fresh) countRow(batch.get(digest)!.payer)
    })
  }

  const flush = Effect.gen(function* () {
    const now = new Date(yield* Effect.clockWith((clock) => clock.currentTimeMillis))
    const [seen, told, sold] = [touches, observations, sales]
    if (seen.size === 0 && told.size === 0 && sold.size === 0) return
    touches = new Map()
    observations = new Map()
    sales = new Map()
    const restore = Effect.sync(() => {
      if (seen.size + touches.size <= touchesMax)
        for (const [id, one] of seen) touches.set(id, merged(one, touches.get(id)))
      if (told.size + observations.size <= observationsMax)
        for (const [digest, one] of told)
          observations.set(digest, { ...one, times: one.times + (observations.get(digest)?.times ?? 0) })
      if (sold.size + sales.size <= salesMax) sales = new Map([...sold, ...sales])
    })
    yield* inTransaction(
      Effect.gen(function* () {
        yield* lockActivity([...seen.keys(), ...[...sold.values()].map(({ resourceId }) => resourceId)])
        if (seen.size > 0) yield* storeTouches(seen, now)
        if (sold.size > 0) {
          yield* storeSales(sold)
          yield* tellSales(sold)
        }
        if (told.size > 0) yield* storeObservations(told)
      })
    ).pipe(
      Effect.provideService(SqlClient.SqlClient, sql),
      Effect.onError(() => restore)
    )
  }).pipe(Effect.withSpan("catalog.flush"))

  return { touch, observe, flush }
}

const merged = (older: Touch, newer: Touch | undefined): Touch =>
  newer === undefined
    ? older
    : {
        observed: older.observed + newer.observed,
        lastSeenAt: newer.lastSeenAt > older.lastSeenAt ? newer.lastSeenAt : older.lastSeenAt
      }
