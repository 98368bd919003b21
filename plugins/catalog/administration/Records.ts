// The operators' reads of the catalog over SQL: counts, origins, resources with their whole history, and which resource
// a payment was for when it carried no declaration. Nothing here is public, and nothing writes (S148, S162–S165, S257).
import { Effect, Layer, Option } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { CatalogRecords, type RejectedDeclaration, type ResourceState, type ResourceSummary } from "../contract.ts"
import { matchesTemplate, type ResourceUrl, spellResourceUrl } from "../declaration/resourceUrl.ts"
import type { RecordFilter } from "./RecordFilter.ts"
import { resourceKey } from "../store/ResourceWire.ts"

const historyMax = 200
/** Dynamic routes of one origin that are tried. */
const templatesMax = 2_000
const attributedMax = 1_000

interface Candidate {
  readonly id: bigint
  readonly origin: string | null
  readonly resource_key: string
  readonly pay_tos: ReadonlyArray<string>
  readonly template: string | null
}

interface Entry {
  readonly entry: unknown
}

interface HistoryRow extends ResourceSummary {
  readonly declaration: unknown
  readonly observed: bigint
  readonly settled: bigint
  readonly payers: bigint
}

const summaryColumns = `r.id, r.type, r.resource, r.tool_name as "toolName", r.origin, r.state,
  r.state_reason as "stateReason", r.verification, r.ownership, r.grade, r.pay_tos as "payTos", r.version,
  r.version_hash as "versionHash", r.declaration->'about'->>'serviceName' as "serviceName",
  array(select jsonb_array_elements_text(coalesce(r.declaration->'about'->'tags', '[]'))) as tags,
  r.first_seen_at as "firstSeenAt", r.updated_at as "updatedAt", a.last_seen_at as "lastSeenAt",
  a.last_settled_at as "lastPaidAt"`

const summariesFrom = "catalog_resources r join catalog_activity a on a.resource_id = r.id"

const emptyStates: Readonly<Record<ResourceState, bigint>> = { active: 0n, stale: 0n, quarantined: 0n, removed: 0n }

type Records = CatalogRecords["Service"]

interface Spelled {
  readonly payTo: string
  readonly spelled: ResourceUrl | undefined
}

/** The single candidate that a payment was for: by its exact URL, otherwise by the origin's dynamic route that fits. */
const chosen = (
  crypto: Crypto["Service"],
  { payTo, spelled }: Spelled,
  exact: ReadonlyArray<Candidate>,
  dynamic: ReadonlyArray<Candidate>
) => {
  if (spelled === undefined) return undefined
  const { origin, resource } = spelled
  const key = resourceKey(crypto, resource)
  const same = exact.filter(({ resource_key }) => resource_key === key)
  const isRouteOf = (one: Candidate) =>
    one.origin === origin && origin !== undefined && matchesTemplate(one.template!, resource.slice(origin.length))
  // A listing that pays another recipient was not paid for: it makes no other one ambiguous.
  const paid = (same.length > 0 ? same : dynamic.filter(isRouteOf)).filter(({ pay_tos }) => pay_tos.includes(payTo))
  const [only, another] = paid
  return only === undefined || another !== undefined ? undefined : { id: only.id, origin: only.origin }
}

const attributeWith = (sql: SqlClient.SqlClient, crypto: Crypto["Service"]): Records["attribute"] =>
  Effect.fn("CatalogRecords.attribute")(function* (asked) {
    const read = asked
      .slice(0, attributedMax)
      .map(({ payTo, url }) => ({ payTo, spelled: spellResourceUrl(/^mcp:/i.test(url) ? "mcp" : "http", url) }))
    const known = read.flatMap(({ spelled }) => spelled ?? [])
    const keys = [...new Set(known.map(({ resource }) => resourceKey(crypto, resource)))]
    const origins = [...new Set(known.flatMap(({ origin }) => origin ?? []))]
    if (keys.length === 0) return read.map(() => undefined)
    const exact = yield* sql<Candidate>`select id, origin, resource_key, pay_tos, null as template
      from catalog_resources where resource_key = any(${keys}) and state <> 'removed'`
    const dynamic = yield* sql<Candidate>`select id, origin, resource_key, pay_tos,
        declaration->'about'->>'routeTemplate' as template
      from catalog_resources where origin = any(${origins}) and type = 'http' and state <> 'removed'
        and declaration->'about' ? 'routeTemplate' order by id limit ${templatesMax}`
    return read.map((one) => chosen(crypto, one, exact, dynamic))
  })

const censusOf = (sql: SqlClient.SqlClient): Records["census"] =>
  Effect.gen(function* () {
    const rows = yield* sql<{ state: ResourceState; count: bigint }>`select state, count(*) as count
      from catalog_resources group by state`
    const [row] = yield* sql<{ origins: bigint }>`select count(*) as origins from (
      select distinct origin from catalog_resources where state <> 'removed' and origin is not null) o`
    return {
      states: { ...emptyStates, ...Object.fromEntries(rows.map(({ count, state }) => [state, count])) },
      origins: row!.origins
    }
  })

/** The histories of one resource, each as statements of rows in JSON, newest first. */
const historiesOf = (sql: SqlClient.SqlClient, id: bigint) => ({
  versions: sql<Entry>`select jsonb_build_object('version', version, 'version_hash', version_hash, 'pay_to', pay_to,
      'at', at, 'document', document::jsonb) as entry
    from catalog_versions where resource_id = ${id} order by version desc limit ${historyMax}`,
  options: sql<Entry>`select jsonb_build_object('operation', operation, 'scheme', scheme, 'network', network,
      'asset', asset, 'amount', amount::text, 'pay_to', pay_to, 'first_seen_at', first_seen_at,
      'retired_at', retired_at) as entry
    from catalog_options where resource_id = ${id} order by id desc limit ${historyMax}`,
  decisions: sql<Entry>`select jsonb_build_object('at', at, 'by', by, 'move', move, 'from', from_state,
      'to', to_state, 'reason', reason, 'detail', detail) as entry
    from catalog_decisions where resource_id = ${id} order by id desc limit ${historyMax}`,
  claims: sql<Entry>`select jsonb_build_object('pay_to', pay_to, 'first_seen_at', first_seen_at,
      'last_seen_at', last_seen_at) as entry
    from catalog_claims where resource_id = ${id} order by last_seen_at desc limit ${historyMax}`,
  observations: sql<Entry>`select jsonb_build_object('url', o.url, 'pay_to', o.pay_to, 'stage', o.stage,
      'decision', o.decision, 'reason', o.reason, 'detail', o.detail, 'times', o.times::text,
      'first_at', o.first_at, 'last_at', o.last_at, 'lag_ms', o.lag_ms) as entry
    from catalog_observations o join catalog_resources r on r.resource_key = o.resource_key
    where r.id = ${id} and (o.resource_id is null or o.resource_id = ${id})
    order by o.last_at desc, o.id desc limit ${historyMax}`
})

const entriesOf = (statement: Statement.Statement<Entry>) =>
  Effect.map(statement, (rows) => rows.map(({ entry }) => entry))

const historyWith = (sql: SqlClient.SqlClient): Records["history"] =>
  Effect.fn("CatalogRecords.history")(function* (id) {
    const [row] = yield* sql<HistoryRow>`select ${sql.literal(summaryColumns)}, r.declaration, a.observed, a.settled,
      a.payers from ${sql.literal(summariesFrom)} where r.id = ${id}`
    if (row === undefined) return Option.none()
    const { declaration, observed, payers, settled, ...summary } = row
    const histories = historiesOf(sql, id)
    return Option.some({
      summary,
      declaration,
      observed,
      settled,
      payers,
      versions: yield* entriesOf(histories.versions),
      options: yield* entriesOf(histories.options),
      decisions: yield* entriesOf(histories.decisions),
      claims: yield* entriesOf(histories.claims),
      observations: yield* entriesOf(histories.observations)
    })
  })

/** Search only the newest listings, to bound the cost; an exact URL is found among all of them. */
const findScannedMax = 20_000

/** Matches recent listings that contain the words in the URL, the tool's name or the seller's name. */
const holds = (sql: SqlClient.SqlClient, words: string): Statement.Fragment => {
  const asked = words.toLowerCase()
  return sql`r.id >= coalesce((select min(id) from (select id from catalog_resources order by id desc
      limit ${findScannedMax}) recent), 0)
    and (position(${asked} in lower(r.resource)) > 0 or position(${asked} in lower(r.tool_name)) > 0
      or position(${asked} in lower(coalesce(r.declaration->'about'->>'serviceName', ''))) > 0)`
}

/** The conditions of the operators' list on `catalog_resources r`. */
const keptBy = (sql: SqlClient.SqlClient, filter: RecordFilter): Statement.Fragment => {
  const equal = (["state", "grade", "type", "origin"] as const).flatMap((name) =>
    filter[name] === undefined ? [] : [sql`${sql.literal(`r.${name}`)} = ${filter[name]}`]
  )
  return sql.and([
    sql`true`,
    ...equal,
    ...(filter.payTo === undefined ? [] : [sql`r.pay_tos @> array[${filter.payTo}]::text[]`]),
    ...(filter.words === undefined ? [] : [holds(sql, filter.words)])
  ])
}

const pagesOf = (sql: SqlClient.SqlClient, census: Records["census"]): Pick<Records, "origins" | "newest"> => ({
  origins: Effect.fn("CatalogRecords.origins")(function* ({ limit, offset }) {
    const items = yield* sql<{ origin: string; resources: bigint; active: bigint; lastSeenAt: Date }>`
      select r.origin, count(*) as resources, count(*) filter (where r.state = 'active') as active,
        max(a.last_seen_at) as "lastSeenAt"
      from ${sql.literal(summariesFrom)} where r.origin is not null and r.state <> 'removed'
      group by r.origin order by max(a.last_seen_at) desc, r.origin limit ${limit} offset ${offset}`
    return { items, total: (yield* census).origins }
  }),
  newest: Effect.fn("CatalogRecords.newest")(function* ({ after, filter = {}, limit, offset }) {
    const kept = keptBy(sql, filter)
    const behind = after === undefined ? sql`true` : sql`r.id < ${after}`
    const items = yield* sql<ResourceSummary>`select ${sql.literal(summaryColumns)}
      from ${sql.literal(summariesFrom)} where ${kept} and ${behind}
      order by r.id desc limit ${limit} offset ${offset}`
    const [row] = yield* sql<{ total: bigint }>`select count(*) as total from catalog_resources r where ${kept}`
    return { items, total: row!.total }
  })
})

const rejectionsOf = (sql: SqlClient.SqlClient): Records["rejections"] =>
  Effect.fn("CatalogRecords.rejections")(function* ({ limit, offset }) {
    const items = yield* sql<RejectedDeclaration>`select url, type, tool_name as "toolName", pay_to as "payTo", stage,
        reason, detail, resource_id as "resourceId", times, first_at as "firstAt", last_at as "lastAt"
      from catalog_observations where decision = 'rejected' order by last_at desc, id desc
      limit ${limit} offset ${offset}`
    const [row] = yield* sql<{ total: bigint }>`select count(*) as total from catalog_observations
      where decision = 'rejected'`
    return { items, total: row!.total }
  })

const findWith = (sql: SqlClient.SqlClient, crypto: Crypto["Service"]): Records["find"] =>
  Effect.fn("CatalogRecords.find")(function* ({ limit, words }) {
    const asked = words.toLowerCase()
    const spelled = spellResourceUrl(/^mcp:/i.test(words) ? "mcp" : "http", words)
    const key = spelled === undefined ? "" : resourceKey(crypto, spelled.resource)
    return yield* sql<ResourceSummary>`select ${sql.literal(summaryColumns)}
      from ${sql.literal(summariesFrom)} where r.id in (
        select id from catalog_resources where resource_key = ${key}
        union (select id from (select id, resource, tool_name, declaration from catalog_resources
            order by id desc limit ${findScannedMax}) recent
          where position(${asked} in lower(resource)) > 0 or position(${asked} in lower(tool_name)) > 0
            or position(${asked} in lower(coalesce(declaration->'about'->>'serviceName', ''))) > 0 limit ${limit}))
      order by r.id desc limit ${limit}`
  })

export const layer = Layer.effect(
  CatalogRecords,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const crypto = yield* Crypto
    const census = censusOf(sql)
    return CatalogRecords.of({
      attribute: attributeWith(sql, crypto),
      census,
      ...pagesOf(sql, census),
      rejections: rejectionsOf(sql),
      find: findWith(sql, crypto),
      history: historyWith(sql)
    })
  })
)
