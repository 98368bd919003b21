// The catalog's resources as operators see them, with what was paid for them: origins, the newest listings, one with its whole history,
// and how it was used in windows of hours. Internal ids, provenance and the details of rejections stand here and in no public answer
// (S140, S162–S167, S257).
import { Clock, Effect, Option } from "effect"
import type { ResourceSummary } from "../../catalog/contract.ts"
import { type AssetSum, mainAsset } from "./amounts.ts"
import type { Page } from "./parameters.ts"
import type { Reporting } from "./Reporting.ts"

/** Hours of the windows of use. */
export const observedHours = [1, 6, 24, 72, 168, 360, 720] as const
const millisPerHour = 3_600_000

interface UseRow {
  readonly hours: number
  readonly calls: bigint
  readonly successes: bigint
  readonly buyers: bigint
  readonly latest: Date | null
  readonly amounts: ReadonlyArray<{ readonly asset: string; readonly transactions: string; readonly amount: string }>
}

const iso = (at: Date | null): string | null => at?.toISOString() ?? null

/** Times that came through JSON, in the one form of answers. */
const utc = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(utc)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) =>
    [key, /(^|_)at$/.test(key) && typeof item === "string" && !Number.isNaN(Date.parse(item)) ? new Date(item).toISOString() : item]))
}

const sumsOf = (rows: UseRow["amounts"]): ReadonlyArray<AssetSum> => rows.map(({ amount, asset, transactions }) => ({ asset, amount: BigInt(amount), transactions: BigInt(transactions) }))

export const makeResources = ({ amounts, isCataloged, records, redaction, sql }: Reporting) => {
  const summary = (one: ResourceSummary) => ({
    id: one.id.toString(),
    type: one.type,
    resource: one.resource,
    tool_name: one.toolName === "" ? null : one.toolName,
    origin: one.origin,
    status: one.state,
    status_reason: one.stateReason,
    ownership: one.ownership,
    pay_tos: one.payTos.map(redaction.show),
    version: one.version,
    version_hash: one.versionHash,
    verification: one.verification,
    provenance: "seller_declared",
    service_name: one.serviceName,
    tags: one.tags,
    created_at: one.firstSeenAt.toISOString(),
    updated_at: one.updatedAt.toISOString(),
    last_seen_at: one.lastSeenAt.toISOString(),
    last_seen_paid_at: iso(one.lastPaidAt)
  })

  const origins = Effect.fn("Analytics.origins")(function*(page: Page, asset: string | undefined) {
    const { items, total } = yield* records.origins(page)
    const paid = items.length === 0 ? [] : yield* sql<{ origin: string; asset: string; transactions: bigint; successful: bigint; amount: string }>`
      select origin, asset, sum(transactions)::bigint as transactions, sum(successful)::bigint as successful, sum(amount)::text as amount from analytics_resources
      where origin in (select value from jsonb_array_elements_text(${JSON.stringify(items.map(({ origin }) => origin))}::jsonb)) group by origin, asset`
    return {
      items: items.map(({ active, lastSeenAt, origin, resources }) => {
        const own = paid.filter((row) => row.origin === origin)
        const sums = own.map(({ amount, asset, transactions }) => ({ asset, transactions, amount: BigInt(amount) }))
        const { total_amount, ...told } = amounts.tell(sums, mainAsset(sums, asset))
        return {
          origin,
          resource_count: resources.toString(),
          active_count: active.toString(),
          last_seen: lastSeenAt.toISOString(),
          settlement_count: own.reduce((sum, { transactions }) => sum + transactions, 0n).toString(),
          successful_settlement_count: own.reduce((sum, { successful }) => sum + successful, 0n).toString(),
          successful_amount: total_amount,
          ...told
        }
      }),
      pagination: { ...page, total: Number(total) }
    }
  })

  const newest = Effect.fn("Analytics.resources")(function*(page: Page) {
    const { items, total } = yield* records.newest(page)
    return { items: items.map(summary), pagination: { ...page, total: Number(total) } }
  })

  const detail = Effect.fn("Analytics.resource")(function*(id: bigint) {
    return Option.map(yield* records.history(id), (history) => ({
      ...summary(history.summary),
      observed_count: history.observed.toString(),
      settled_count: history.settled.toString(),
      unique_payers: history.payers.toString(),
      ...redaction.clean({
        declaration: history.declaration,
        versions: history.versions.map(utc),
        payment_options: history.options.map(utc),
        decisions: history.decisions.map(utc),
        claims: history.claims.map(utc),
        observations: history.observations.map(utc)
      }) as Readonly<Record<string, unknown>>
    }))
  })

  /** For all time and for the hours before now. */
  const observability = Effect.fn("Analytics.observability")(function*(id: bigint, asset: string | undefined) {
    if (!(yield* isCataloged(id))) return Option.none()
    const now = yield* Clock.currentTimeMillis
    const windows = [{ hours: 0, since: null }, ...observedHours.map((hours) => ({ hours, since: new Date(now - hours * millisPerHour).toISOString() }))]
    const rows = yield* sql<UseRow>`
      select w.hours, u.calls, u.successes, u.buyers, u.latest, a.amounts
      from jsonb_to_recordset(${JSON.stringify(windows)}::jsonb) as w (hours integer, since timestamptz)
      cross join lateral (select count(*) as calls, count(*) filter (where s.status = 'success') as successes, count(distinct s.payer) as buyers, max(s.occurred_at) as latest
        from analytics_settlements s where s.resource_id = ${id} and s.status <> 'open' and s.occurred_at >= coalesce(w.since, '-infinity')) u
      cross join lateral (select coalesce(jsonb_agg(jsonb_build_object('asset', g.asset, 'transactions', g.transactions::text, 'amount', g.amount::text)), '[]') as amounts from (
        select s.asset, count(*) as transactions, coalesce(sum(s.amount) filter (where s.status = 'success'), 0) as amount
        from analytics_settlements s where s.resource_id = ${id} and s.status <> 'open' and s.occurred_at >= coalesce(w.since, '-infinity') group by s.asset) g) a`.unprepared
    const main = mainAsset(rows.flatMap((row) => row.hours === 0 ? sumsOf(row.amounts) : []), asset)
    const tell = (hours: number) => {
      const row = rows.find((one) => one.hours === hours)!
      return {
        calls: row.calls.toString(),
        successes: row.successes.toString(),
        unique_buyers: row.buyers.toString(),
        ...amounts.tell(sumsOf(row.amounts), main),
        latest_activity: iso(row.latest)
      }
    }
    return Option.some({ resource_id: id.toString(), all_time: tell(0), windows: Object.fromEntries(observedHours.map((hours) => [`${hours}h`, tell(hours)])) })
  })

  return { origins, newest, detail, observability }
}
