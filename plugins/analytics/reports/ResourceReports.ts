// The catalog's resources as operators see them, with their payments: origins, the newest listings, one with its whole
// history, and its usage in windows of hours. Only these reports contain internal ids, provenance and the details of
// rejections; public answers do not (S140, S162–S167, S257).
import { Clock, Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Catalog, CatalogRecords, type RecordFilter, type ResourceSummary } from "../../catalog/contract.ts"
import { type AssetSum, mainAsset } from "./Amounts.ts"
import { ofAll } from "./ofTenant.ts"
import type { Page } from "./parameters.ts"
import type {
  CatalogedResource,
  CatalogedResources,
  Origins,
  RejectedDeclarations,
  ResourceHistory,
  ResourceUse
} from "./ReportWire.ts"
import { Spelling } from "./Spelling.ts"

const observedHours = [1, 6, 24, 72, 168, 360, 720] as const
const millisPerHour = 3_600_000

/** Settlements by the shortest window that contains them: 1 is the longest, 0 means older than all. */
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

/** Normalizes times that came through JSON. */
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

const summary = ({ redaction }: Spelling["Service"], one: ResourceSummary): typeof CatalogedResource.Type => ({
  id: one.id.toString(),
  type: one.type,
  resource: one.resource,
  tool_name: one.toolName === "" ? null : one.toolName,
  origin: one.origin,
  status: one.state,
  status_reason: one.stateReason,
  ownership: one.ownership,
  grade: one.grade,
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

interface PaidRow {
  readonly origin: string
  readonly asset: string
  readonly transactions: bigint
  readonly successful: bigint
  readonly amount: string
}

const origins = Effect.fn("ResourceReports.origins")(function* (page: Page, asset: string | undefined) {
  const sql = yield* SqlClient.SqlClient
  const { amounts } = yield* Spelling
  const { items, total } = yield* (yield* CatalogRecords).origins(page)
  const origins = JSON.stringify(items.map(({ origin }) => origin))
  const paid =
    items.length === 0
      ? []
      : yield* sql<PaidRow>`select origin, asset, sum(transactions)::bigint as transactions,
          sum(successful)::bigint as successful, sum(amount)::text as amount
        from analytics_resources where origin in (select value from jsonb_array_elements_text(${origins}::jsonb))
        group by origin, asset`
  return {
    items: items.map(({ active, lastSeenAt, origin, resources }) => {
      const own = paid.filter((row) => row.origin === origin)
      const sums = own.map(({ amount, asset, transactions }) => ({ asset, transactions, amount: BigInt(amount) }))
      const { total_amount, ...reported } = amounts.report(sums, mainAsset(sums, asset))
      return {
        origin,
        resource_count: resources.toString(),
        active_count: active.toString(),
        last_seen: lastSeenAt.toISOString(),
        settlement_count: own.reduce((sum, { transactions }) => sum + transactions, 0n).toString(),
        successful_settlement_count: own.reduce((sum, { successful }) => sum + successful, 0n).toString(),
        successful_amount: total_amount,
        ...reported
      }
    }),
    pagination: { ...page, total: Number(total) }
  } satisfies typeof Origins.Type
})

/** A page of the catalog: after the previous page's last id, otherwise after `offset` rows. */
interface CatalogPage extends Page {
  readonly cursor?: string | undefined
  readonly filter?: RecordFilter | undefined
}

const newest = Effect.fn("ResourceReports.newest")(function* ({ cursor, filter, limit, offset }: CatalogPage) {
  const spelling = yield* Spelling
  const after = cursor === undefined ? undefined : BigInt(cursor)
  const widerPage = { limit: limit + 1, offset, after, filter }
  const { items, total } = yield* (yield* CatalogRecords).newest(widerPage)
  const shown = items.slice(0, limit)
  return {
    items: shown.map((one) => summary(spelling, one)),
    pagination: {
      limit,
      offset,
      total: Number(total),
      cursor: items.length > limit ? shown.at(-1)!.id.toString() : null
    }
  } satisfies typeof CatalogedResources.Type
})

const rejections = Effect.fn("ResourceReports.rejections")(function* (page: Page) {
  const { redaction } = yield* Spelling
  const { items, total } = yield* (yield* CatalogRecords).rejections(page)
  return {
    items: items.map((one) => ({
      url: one.url,
      type: one.type,
      tool_name: one.toolName === "" ? null : one.toolName,
      pay_to: redaction.show(one.payTo),
      stage: one.stage,
      reason: one.reason,
      ...redaction.clean({ detail: one.detail }),
      resource_id: one.resourceId === null ? null : one.resourceId.toString(),
      times: one.times.toString(),
      first_at: one.firstAt.toISOString(),
      last_at: one.lastAt.toISOString()
    })),
    pagination: { ...page, total: Number(total) }
  } satisfies typeof RejectedDeclarations.Type
})

const detail = Effect.fn("ResourceReports.detail")(function* (id: bigint) {
  const spelling = yield* Spelling
  return Option.map(yield* (yield* CatalogRecords).history(id), (history): typeof ResourceHistory.Type => ({
    ...summary(spelling, history.summary),
    observed_count: history.observed.toString(),
    settled_count: history.settled.toString(),
    unique_payers: history.payers.toString(),
    ...spelling.redaction.clean({
      declaration: history.declaration,
      versions: history.versions.map(utc),
      payment_options: history.options.map(utc),
      decisions: history.decisions.map(utc),
      claims: history.claims.map(utc),
      observations: history.observations.map(utc)
    })
  }))
})

/** A resource's payments and payers, each in the shortest window that contains it. */
const readUse = Effect.fnUntraced(function* (id: bigint) {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  const starts = JSON.stringify(observedHours.toReversed().map((hours) => new Date(now - hours * millisPerHour)))
  const window = (time: string) => sql`width_bucket(${sql.literal(time)}, array(select value::timestamptz
    from jsonb_array_elements_text(${starts}::jsonb) with ordinality as s (value, place) order by place))`
  const own = sql`from analytics_settlements where resource_id = ${id} and status <> 'open'`
  const [row] = yield* sql<UseRow>`select
    (select coalesce(jsonb_agg(c), '[]') from (
      select ${window("occurred_at")} as window, asset, count(*)::text as calls,
        (count(*) filter (where status = 'success'))::text as successes,
        coalesce(sum(amount) filter (where status = 'success'), 0)::text as amount,
        extract(epoch from max(occurred_at)) * 1000 as latest
      ${own} group by 1, asset) c) as calls,
    (select coalesce(jsonb_agg(b), '[]') from (
      select ${window("latest")} as window, count(*)::text as buyers
      from (select payer, max(occurred_at) as latest ${own} group by payer) p group by 1) b) as buyers`.unprepared
  return row!
})

/** For all time and for the last hours. */
const observability = Effect.fn("ResourceReports.observability")(function* (id: bigint, asset: string | undefined) {
  if (!(yield* isCataloged(id))) return Option.none<typeof ResourceUse.Type>()
  const { amounts } = yield* Spelling
  const { buyers, calls } = yield* readUse(id)
  const main = mainAsset(sumsOf(calls), asset)
  // Every settlement is counted in its shortest window; a longer window is the sum.
  const notify = (from: number) => {
    const within = calls.filter(({ window }) => window >= from)
    const latest = Math.max(...within.map((one) => one.latest))
    return {
      calls: total(within, (one) => one.calls),
      successes: total(within, ({ successes }) => successes),
      unique_buyers: total(
        buyers.filter(({ window }) => window >= from),
        (one) => one.buyers
      ),
      ...amounts.report(sumsOf(within), main),
      latest_activity: within.length === 0 ? null : new Date(Math.floor(latest)).toISOString()
    }
  }
  const windows = observedHours.map((hours, at) => [`${hours}h`, notify(observedHours.length - at)] as const)
  return Option.some({
    resource_id: id.toString(),
    all_time: notify(0),
    windows: Object.fromEntries(windows)
  } satisfies typeof ResourceUse.Type)
})

const isCataloged = (id: bigint) =>
  Effect.flatMap(Catalog, (catalog) => Effect.map(ofAll(catalog.documents([id])), (documents) => documents.length > 0))

type Sql<A> = Effect.Effect<A, SqlError.SqlError>

export class ResourceReports extends Context.Service<
  ResourceReports,
  {
    /** Whether the catalog has a resource. */
    readonly isCataloged: (id: bigint) => Sql<boolean>
    readonly origins: (page: Page, asset: string | undefined) => Sql<typeof Origins.Type>
    readonly newest: (page: CatalogPage) => Sql<typeof CatalogedResources.Type>
    readonly rejections: (page: Page) => Sql<typeof RejectedDeclarations.Type>
    readonly detail: (id: bigint) => Sql<Option.Option<typeof ResourceHistory.Type>>
    readonly observability: (id: bigint, asset: string | undefined) => Sql<Option.Option<typeof ResourceUse.Type>>
  }
>()("tollkeeper/analytics/ResourceReports") {
  static readonly layer = Layer.effect(
    ResourceReports,
    Effect.map(Effect.context<SqlClient.SqlClient | Spelling | CatalogRecords | Catalog>(), (services) =>
      ResourceReports.of({
        isCataloged: (id) => Effect.provideContext(isCataloged(id), services),
        origins: (page, asset) => Effect.provideContext(origins(page, asset), services),
        newest: (page) => Effect.provideContext(newest(page), services),
        rejections: (page) => Effect.provideContext(rejections(page), services),
        detail: (id) => Effect.provideContext(detail(id), services),
        observability: (id, asset) => Effect.provideContext(observability(id, asset), services)
      })
    )
  )
}
