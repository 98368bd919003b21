// What operators are told of the catalog, as reads over SQL: counts, origins, resources with their whole history, and
// which resource a payment was for when it carried no declaration. Nothing here is public, and nothing writes (S148,
// S162–S165, S257).
import { Effect, Option } from "effect"
import type { SqlClient } from "effect/sql"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import { CatalogRecords, type ResourceState, type ResourceSummary } from "../contract.ts"
import { matchesTemplate, spellResourceUrl } from "../declaration/resourceUrl.ts"
import { resourceKey } from "../store/ResourceWire.ts"

/** Entries of one history. */
const historyMax = 200
/** Dynamic routes of one origin that are looked through. */
const templatesMax = 2_000
const attributedMax = 1_000

interface Candidate {
  readonly id: bigint
  readonly origin: string | null
  readonly resource_key: string
  readonly pay_tos: ReadonlyArray<string>
  readonly template: string | null
}

interface HistoryRow extends ResourceSummary {
  readonly declaration: unknown
  readonly observed: bigint
  readonly settled: bigint
  readonly payers: bigint
}

const summaryColumns = `r.id, r.type, r.resource, r.tool_name as "toolName", r.origin, r.state, r.state_reason as "stateReason",
  r.verification, r.ownership, r.pay_tos as "payTos", r.version, r.version_hash as "versionHash",
  r.declaration->'about'->>'serviceName' as "serviceName",
  array(select jsonb_array_elements_text(coalesce(r.declaration->'about'->'tags', '[]'))) as tags,
  r.first_seen_at as "firstSeenAt", r.updated_at as "updatedAt", a.last_seen_at as "lastSeenAt",
  a.last_settled_at as "lastPaidAt"`

const emptyStates: Readonly<Record<ResourceState, bigint>> = { active: 0n, stale: 0n, quarantined: 0n, removed: 0n }

export const makeRecords = (sql: SqlClient.SqlClient, crypto: Crypto["Service"]): CatalogRecords["Service"] => {
  const columns = sql.literal(summaryColumns)

  /** An exact URL first; else the dynamic route of the origin that fits. */
  const attribute: CatalogRecords["Service"]["attribute"] = Effect.fn("CatalogRecords.attribute")(function* (asked) {
    const read = asked
      .slice(0, attributedMax)
      .map(({ payTo, url }) => ({ payTo, spelled: spellResourceUrl(/^mcp:/i.test(url) ? "mcp" : "http", url) }))
    const keys = [
      ...new Set(read.flatMap(({ spelled }) => (spelled === undefined ? [] : [resourceKey(crypto, spelled.resource)])))
    ]
    const origins = [...new Set(read.flatMap(({ spelled }) => spelled?.origin ?? []))]
    if (keys.length === 0) return read.map(() => undefined)
    const exact =
      yield* sql<Candidate>`select id, origin, resource_key, pay_tos, null as template from catalog_resources
        where resource_key = any(${keys}) and state <> 'removed'`
    const dynamic =
      yield* sql<Candidate>`select id, origin, resource_key, pay_tos, declaration->'about'->>'routeTemplate' as template
        from catalog_resources
      where origin = any(${origins}) and type = 'http' and state <> 'removed' and declaration->'about' ? 'routeTemplate'
        order by id limit ${templatesMax}`
    return read.map(({ payTo, spelled }) => {
      if (spelled === undefined) return undefined
      const key = resourceKey(crypto, spelled.resource)
      const same = exact.filter(({ resource_key }) => resource_key === key)
      const fitting =
        same.length > 0 || spelled.origin === undefined
          ? same
          : dynamic.filter(
              ({ origin, template }) =>
                origin === spelled.origin && matchesTemplate(template!, spelled.resource.slice(spelled.origin.length))
            )
      const [only, another] = fitting
      return only === undefined || another !== undefined || !only.pay_tos.includes(payTo)
        ? undefined
        : { id: only.id, origin: only.origin }
    })
  })

  const census = Effect.gen(function* () {
    const rows = yield* sql<{
      state: ResourceState
      count: bigint
    }>`select state, count(*) as count from catalog_resources group by state`
    const [row] = yield* sql<{
      origins: bigint
    }>`select count(*) as origins from (select distinct origin from catalog_resources where state <> 'removed'
      and origin is not null) o`
    return {
      states: { ...emptyStates, ...Object.fromEntries(rows.map(({ count, state }) => [state, count])) },
      origins: row!.origins
    }
  })

  const origins: CatalogRecords["Service"]["origins"] = Effect.fn("CatalogRecords.origins")(function* ({
    limit,
    offset
  }) {
    const items = yield* sql<{ origin: string; resources: bigint; active: bigint; lastSeenAt: Date }>`
      select r.origin, count(*) as resources, count(*) filter (where r.state = 'active') as active, max(a.last_seen_at)
        as "lastSeenAt"
      from catalog_resources r join catalog_activity a on a.resource_id = r.id where r.origin is not null
        and r.state <> 'removed'
      group by r.origin order by max(a.last_seen_at) desc, r.origin limit ${limit} offset ${offset}`
    return { items, total: (yield* census).origins }
  })

  const newest: CatalogRecords["Service"]["newest"] = Effect.fn("CatalogRecords.newest")(function* ({ limit, offset }) {
    const items = yield* sql<ResourceSummary>`select ${columns} from catalog_resources r join catalog_activity a
        on a.resource_id = r.id
      order by r.id desc limit ${limit} offset ${offset}`
    const [row] = yield* sql<{ total: bigint }>`select count(*) as total from catalog_resources`
    return { items, total: row!.total }
  })

  /** Rows of a table about one resource, as JSON. */
  const entries = (query: (limit: number) => ReturnType<typeof sql<{ readonly entry: unknown }>>) =>
    Effect.map(query(historyMax), (rows) => rows.map(({ entry }) => entry))

  const history: CatalogRecords["Service"]["history"] = Effect.fn("CatalogRecords.history")(function* (id) {
    const [row] = yield* sql<HistoryRow>`select ${columns}, r.declaration, a.observed, a.settled, a.payers
      from catalog_resources r join catalog_activity a on a.resource_id = r.id where r.id = ${id}`
    if (row === undefined) return Option.none()
    const { declaration, observed, payers, settled, ...summary } = row
    return Option.some({
      summary,
      declaration,
      observed,
      settled,
      payers,
      versions: yield* entries(
        (
          limit
        ) => sql`select jsonb_build_object('version', version, 'version_hash', version_hash, 'pay_to', pay_to, 'at', at,
          'document', document::jsonb) as entry
        from catalog_versions where resource_id = ${id} order by version desc limit ${limit}`
      ),
      options: yield* entries(
        (
          limit
        ) => sql`select jsonb_build_object('operation', operation, 'scheme', scheme, 'network', network, 'asset', asset,
          'amount', amount::text,
          'pay_to', pay_to, 'first_seen_at', first_seen_at, 'retired_at', retired_at) as entry
        from catalog_options where resource_id = ${id} order by id desc limit ${limit}`
      ),
      decisions: yield* entries(
        (limit) => sql`select jsonb_build_object('at', at, 'by', by, 'move', move, 'from', from_state, 'to', to_state,
          'reason', reason, 'detail', detail) as entry
        from catalog_decisions where resource_id = ${id} order by id desc limit ${limit}`
      ),
      claims: yield* entries(
        (limit) => sql`select jsonb_build_object('pay_to', pay_to, 'first_seen_at', first_seen_at, 'last_seen_at',
          last_seen_at) as entry
        from catalog_claims where resource_id = ${id} order by last_seen_at desc limit ${limit}`
      ),
      observations: yield* entries(
        (
          limit
        ) => sql`select jsonb_build_object('url', o.url, 'pay_to', o.pay_to, 'stage', o.stage, 'decision', o.decision,
          'reason', o.reason,
          'detail', o.detail, 'times', o.times::text, 'first_at', o.first_at, 'last_at', o.last_at, 'lag_ms', o.lag_ms)
            as entry
        from catalog_observations o join catalog_resources r on r.resource_key = o.resource_key
        where r.id = ${id} and (o.resource_id is null or o.resource_id = ${id}) order by o.last_at desc, o.id desc
          limit ${limit}`
      )
    })
  })

  return CatalogRecords.of({ attribute, census, origins, newest, history })
}
