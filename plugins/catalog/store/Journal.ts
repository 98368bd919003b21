// What is written behind the payments: when resources were last seen, how often they were paid and by whom, and what came of
// observations. It gathers in memory, an actor stores it in batches every second; a crash loses at most that second, and a
// database that is away loses what is over the bounds, counted. No payment waits for any of it.
import { Effect, Metric } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { Hex } from "effect/encoding"
import type { Facts } from "../../../kernel/Facts.ts"
import { canonicalJson } from "../../../kernel/payment/canonicalJson.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import { moveState } from "./Resources.ts"
import type { Recorded } from "./recordDeclaration.ts"

const touchesMax = 20_000
const observationsMax = 5_000

export interface Observation {
  readonly resourceKey: string | undefined
  readonly resourceId: bigint | undefined
  readonly url: string
  readonly type: string | undefined
  readonly toolName: string | undefined
  readonly payTo: string
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
  settled: number
  settledAt: Date | undefined
  readonly payers: Map<string, number>
}

const dropped = Metric.counter("tollkeeper_catalog_dropped_total", {
  description: "Observations that could not be stored because too many waited.",
  incremental: true
})

export interface Journal {
  /** A listed resource was observed; settled ones name who paid. Never waits. */
  readonly touch: (id: bigint, at: Date, settledBy: string | undefined) => void
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
  let observations = new Map<string, Observation & { times: number; firstAt: Date }>()

  const touch: Journal["touch"] = (id, at, settledBy) => {
    const known = touches.get(id)
    if (known === undefined && touches.size >= touchesMax) return
    const one: Touch = known ?? { lastSeenAt: at, observed: 0, settled: 0, settledAt: undefined, payers: new Map() }
    one.observed += 1
    if (at > one.lastSeenAt) one.lastSeenAt = at
    if (settledBy !== undefined) {
      one.settled += 1
      one.settledAt = at
      one.payers.set(settledBy, (one.payers.get(settledBy) ?? 0) + 1)
    }
    touches.set(id, one)
  }

  /** One row a day for what is the same in all but its time. */
  const digestOf = ({ at, decision, detail, payTo, reason, resourceId, stage, toolName, type, url }: Observation): string =>
    Hex.encode(crypto.sha256(new TextEncoder().encode(canonicalJson([
      at.toISOString().slice(0, 10), url, type ?? null, toolName ?? null, payTo, stage, decision, reason ?? null, detail ?? null, String(resourceId ?? "")
    ]))))

  const observe: Journal["observe"] = (observation) => {
    const digest = digestOf(observation)
    const known = observations.get(digest)
    if (known === undefined && observations.size >= observationsMax) return Metric.update(dropped, 1)
    observations.set(digest, { ...observation, times: (known?.times ?? 0) + 1, firstAt: known?.firstAt ?? observation.at })
    return Effect.void
  }

  const storeTouches = Effect.fnUntraced(function*(batch: ReadonlyMap<bigint, Touch>, now: Date) {
    const ids = [...batch.keys()].sort((a, b) => a < b ? -1 : 1)
    const rows = ids.map((id) => {
      const { lastSeenAt, observed, settled, settledAt } = batch.get(id)!
      return { resource_id: String(id), seen: lastSeenAt, observed, settled, settled_at: settledAt ?? null }
    })
    yield* sql`update catalog_activity a set last_seen_at = greatest(a.last_seen_at, t.seen), observed = a.observed + t.observed,
        settled = a.settled + t.settled, last_settled_at = greatest(a.last_settled_at, t.settled_at)
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as t(resource_id bigint, seen timestamptz, observed bigint, settled bigint, settled_at timestamptz)
      where a.resource_id = t.resource_id`
    const payers = ids.flatMap((id) => {
      const { payers, settledAt } = batch.get(id)!
      return [...payers].sort(([a], [b]) => a < b ? -1 : 1).map(([payer, settled]) => ({ resource_id: String(id), payer, settled, at: settledAt }))
    })
    if (payers.length > 0) {
      yield* sql`with stored as (
          insert into catalog_payers (resource_id, payer, settled, last_settled_at)
          select t.resource_id, t.payer, t.settled, t.at
          from jsonb_to_recordset(${JSON.stringify(payers)}::jsonb) as t(resource_id bigint, payer text, settled bigint, at timestamptz)
          join catalog_activity a on a.resource_id = t.resource_id
          on conflict (resource_id, payer) do update set settled = catalog_payers.settled + excluded.settled, last_settled_at = excluded.last_settled_at
          returning resource_id, (xmax = 0) as fresh)
        update catalog_activity a set payers = a.payers + s.fresh
        from (select resource_id, count(*) filter (where fresh) as fresh from stored group by resource_id) s where a.resource_id = s.resource_id`
    }
    const returned = yield* sql<{ id: bigint }>`select id from catalog_resources
      where state = 'stale' and id in (select value::bigint from jsonb_array_elements_text(${JSON.stringify(ids.map(String))}::jsonb)) for update skip locked`
    for (const { id } of returned) {
      yield* moveState(sql, facts, id, now, { by: "facilitator", move: "returned", from: "stale", to: "active", reason: "payment_observed" })
    }
  })

  const storeObservations = (batch: typeof observations) => {
    const rows = [...batch].map(([digest, one]) => ({
      digest, resource_key: one.resourceKey ?? null, resource_id: one.resourceId === undefined ? null : String(one.resourceId), url: one.url,
      type: one.type ?? null, tool_name: one.toolName ?? null, pay_to: one.payTo, stage: one.stage, decision: one.decision, reason: one.reason ?? null,
      detail: one.detail ?? null, first_at: one.firstAt, last_at: one.at, times: one.times, lag_ms: one.lagMillis
    }))
    return sql`insert into catalog_observations (digest, resource_key, resource_id, url, type, tool_name, pay_to, stage, decision, reason, detail, first_at, last_at, times, lag_ms)
      select * from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as t(digest text, resource_key text, resource_id bigint, url text, type text, tool_name text,
        pay_to text, stage text, decision text, reason text, detail text, first_at timestamptz, last_at timestamptz, times bigint, lag_ms integer) order by digest
      on conflict (digest) do update set times = catalog_observations.times + excluded.times, last_at = excluded.last_at, lag_ms = excluded.lag_ms`
  }

  const flush = Effect.gen(function*() {
    const now = new Date(yield* Effect.clockWith((clock) => clock.currentTimeMillis))
    const [seen, told] = [touches, observations]
    if (seen.size === 0 && told.size === 0) return
    touches = new Map()
    observations = new Map()
    const restore = Effect.sync(() => {
      if (seen.size + touches.size <= touchesMax) for (const [id, one] of seen) touches.set(id, merged(one, touches.get(id)))
      if (told.size + observations.size <= observationsMax) for (const [digest, one] of told) observations.set(digest, { ...one, times: one.times + (observations.get(digest)?.times ?? 0) })
    })
    yield* sql.withTransaction(Effect.gen(function*() {
      if (seen.size > 0) yield* storeTouches(seen, now)
      if (told.size > 0) yield* storeObservations(told)
    })).pipe(Effect.onError(() => restore))
  }).pipe(Effect.withSpan("catalog.flush"))

  return { touch, observe, flush }
}

const merged = (older: Touch, newer: Touch | undefined): Touch => {
  if (newer === undefined) return older
  for (const [payer, count] of older.payers) newer.payers.set(payer, (newer.payers.get(payer) ?? 0) + count)
  newer.observed += older.observed
  newer.settled += older.settled
  newer.settledAt ??= older.settledAt
  return newer
}
