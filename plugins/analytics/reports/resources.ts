// The catalog's resources as operators see them, with what was paid for them: origins, the newest listings, one with
// its whole history, and how it was used in windows of hours. Internal ids, provenance and the details of rejections
// stand here and in no public answer (S140, S162–S167, S257).
import { Clock, Effect, Option } from "effect"
import type { ResourceSummary } from "../../catalog/contract.ts"
import { type AssetSum, mainAsset } from "./amounts.ts"
import type { Page } from "./parameters.ts"
import type { Reporting } from "./Reporting.ts"
import type { CatalogedResources, Origins, ResourceUse } from "./ReportWire.ts"

/** Hours of the windows of use. */
export const observedHours = [1, 6, 24, 72, 168, 360, 720] as const
const millisPerHour = 3_600_000

/** Settlements by the shortest window that holds them: 1 is the longest, 0 is older than all. */
interface UseRow {
  readonly calls: ReadonlyArray<{
    readonly window: number
    readonly asset: string
    readonly calls: string
    readonly successes: string
    readonly amount: string
    readonly latest: number
  }>
  readonly buyers: ReadonlyArray<{ readonly window: number; readonly buyers: string }>
}

const iso = (at: Date | null): string | null => at?.toISOString() ?? null

/** Times that came through JSON, in the one form of answers. */
const utc = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(utc)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      /(^|_)at$/.test(key) && typeof item === "string" && !Number.isNaN(Date.parse(item))
        ? new Date(item).toISOString()
        : item
    ])
  )
}

const sumsOf = (calls: UseRow["calls"]): ReadonlyArray<AssetSum> =>
  calls.map(({ amount, asset, calls }) => ({ asset, amount: BigInt(amount), transactions: BigInt(calls) }))
const total = <A>(items: ReadonlyArray<A>, of: (item: A) => string): string =>
  items.reduce((sum, item) => sum + BigInt(of(item)), 0n).toString()

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
    provenance: "seller_declared" as const,
    service_name: one.serviceName,
    tags: one.tags,
    created_at: one.firstSeenAt.toISOString(),
    updated_at: one.updatedAt.toISOString(),
    last_seen_at: one.lastSeenAt.toISOString(),
    last_seen_paid_at: iso(one.lastPaidAt)
  })

  const origins = Effect.fn("Analytics.origins")(function* (page: Page, asset: string | undefined) {
    const { items, total } = yield* records.origins(page)
    const paid =
      items.length === 0
        ? []
        : yield* sql<{ origin: string; asset: string; transactions: bigint; successful: bigint; amount: string }>`
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
    } satisfies typeof Origins.Type
  })

  const newest = Effect.fn("Analytics.resources")(function* (page: Page) {
    const { items, total } = yield* records.newest(page)
    return {
      items: items.map(summary),
      pagination: { ...page, total: Number(total) }
    } satisfies typeof CatalogedResources.Type
  })

  const detail = Effect.fn("Analytics.resource")(function* (id: bigint) {
    return Option.map(yield* records.history(id), (history) => ({
      ...summary(history.summary),
      observed_count: history.observed.toString(),
      settled_count: history.settled.toString(),
      unique_payers: history.payers.toString(),
      ...(redaction.clean({
        declaration: history.declaration,
        versions: history.versions.map(utc),
        payment_options: history.options.map(utc),
        decisions: history.decisions.map(utc),
        claims: history.claims.map(utc),
        observations: history.observations.map(utc)
      }) as Readonly<Record<string, unknown>>)
    }))
  })

  /** For all time and for the hours before now. */
  const observability = Effect.fn("Analytics.observability")(function* (id: bigint, asset: string | undefined) {
    if (!(yield* isCataloged(id))) return Option.none()
    const now = yield* Clock.currentTimeMillis
    // Every settlement falls into one shortest window; those of a longer one are the sum.
    const starts = JSON.stringify(observedHours.toReversed().map((hours) => new Date(now - hours * millisPerHour)))
    const window = (time: string) =>
      sql`width_bucket(${sql.literal(time)}, array(select value::timestamptz from jsonb_array_elements_text(${starts}::jsonb) with ordinality as s (value, place) order by place))`
    const own = sql`from analytics_settlements where resource_id = ${id} and status <> 'open'`
    const [row] = yield* sql<UseRow>`select
      (select coalesce(jsonb_agg(c), '[]') from (select ${window("occurred_at")} as window, asset, count(*)::text as calls, (count(*) filter (where status = 'success'))::text as successes,
        coalesce(sum(amount) filter (where status = 'success'), 0)::text as amount, extract(epoch from max(occurred_at)) * 1000 as latest ${own} group by 1, asset) c) as calls,
      (select coalesce(jsonb_agg(b), '[]') from (select ${window("latest")} as window, count(*)::text as buyers from (select payer, max(occurred_at) as latest ${own} group by payer) p group by 1) b) as buyers`
      .unprepared
    const { buyers, calls } = row!
    const main = mainAsset(sumsOf(calls), asset)
    const tell = (from: number) => {
      const within = calls.filter(({ window }) => window >= from)
      const latest = Math.max(...within.map((one) => one.latest))
      return {
        calls: total(within, (one) => one.calls),
        successes: total(within, ({ successes }) => successes),
        unique_buyers: total(
          buyers.filter(({ window }) => window >= from),
          (one) => one.buyers
        ),
        ...amounts.tell(sumsOf(within), main),
        latest_activity: within.length === 0 ? null : new Date(Math.floor(latest)).toISOString()
      }
    }
    const windows = observedHours.map((hours, at) => [`${hours}h`, tell(observedHours.length - at)] as const)
    return Option.some({
      resource_id: id.toString(),
      all_time: tell(0),
      windows: Object.fromEntries(windows)
    } satisfies typeof ResourceUse.Type)
  })

  return { origins, newest, detail, observability }
}
