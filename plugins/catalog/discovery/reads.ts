// The catalog's reads, over SQL: documents for indexes, public bodies, conditions, snapshots and cursors. The
// contract's service.
import { Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { withSpanIfSampled } from "../../../kernel/effect/withSpanIfSampled.ts"
import { Config } from "../Config.ts"
import {
  Catalog,
  type PaymentOption,
  type ResourceDocument,
  type ResourceState,
  type ResourceType
} from "../contract.ts"
import type { StoredBody } from "../store/ResourceWire.ts"
import { conditionOf } from "./conditions.ts"
import { Cursors } from "./Cursors.ts"
import { batchBodies } from "./batchBodies.ts"
import { visibleCandidatesCache } from "./visibleCandidatesCache.ts"

const documentsMax = 1_000

interface DocumentRow {
  readonly id: bigint
  readonly type: ResourceType
  readonly resource: string
  readonly tool_name: string
  readonly origin: string | null
  readonly state: ResourceState
  readonly version: number
  readonly version_hash: string
  readonly declaration: StoredBody
  readonly first_seen_at: Date
  readonly updated_at: Date
  readonly last_seen_at: Date
  readonly settled: bigint
  readonly payers: bigint
  readonly options: ReadonlyArray<{
    scheme: string
    network: PaymentOption["network"]
    asset: string
    amount: string
    payTo: string
  }>
}

const toDocument = (row: DocumentRow): ResourceDocument => ({
  id: row.id,
  type: row.type,
  resource: row.resource,
  toolName: row.tool_name,
  origin: Option.fromNullOr(row.origin),
  description: row.declaration.about.description ?? "",
  serviceName: row.declaration.about.serviceName ?? "",
  tags: row.declaration.about.tags ?? [],
  operations: row.declaration.operations.map((operation) => ({ ...operation, schema: operation.schema })),
  options: row.options.map(({ amount, ...option }) => ({ ...option, amount: BigInt(amount) })),
  state: row.state,
  version: row.version,
  versionHash: row.version_hash,
  firstSeenAt: row.first_seen_at,
  updatedAt: row.updated_at,
  lastSeenAt: row.last_seen_at,
  settled: row.settled,
  payers: row.payers
})

const documentColumns = `r.id, r.type, r.resource, r.tool_name, r.origin, r.state, r.version, r.version_hash,
  r.declaration, r.first_seen_at, r.updated_at, a.last_seen_at, a.settled, a.payers,
  coalesce((select jsonb_agg(jsonb_build_object('scheme', o.scheme, 'network', o.network, 'asset', o.asset,
      'amount', o.amount::text, 'payTo', o.pay_to) order by o.id)
    from catalog_options o where o.resource_id = r.id and o.retired_at is null), '[]') as options`

const documentsFrom = "catalog_resources r join catalog_activity a on a.resource_id = r.id"

const idsOf = (sql: SqlClient.SqlClient, ids: ReadonlyArray<bigint>) =>
  sql`r.id = any(${`{${ids.slice(0, documentsMax).join(",")}}`}::int8[])`

const inOrder = <A extends { readonly id: bigint }>(
  ids: ReadonlyArray<bigint>,
  rows: ReadonlyArray<A>
): ReadonlyArray<A> => {
  const byId = new Map(rows.map((row) => [row.id, row]))
  return ids.flatMap((id) => byId.get(id) ?? [])
}

export const layer = Layer.effect(
  Catalog,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const config = yield* Config
    const cursors = yield* Cursors
    const columns = sql.literal(documentColumns)
    const from = sql.literal(documentsFrom)

    const documents = Effect.fnUntraced(function* (ids: ReadonlyArray<bigint>) {
      if (ids.length === 0) return []
      const rows = yield* sql<DocumentRow>`select ${columns} from ${from} where ${idsOf(sql, ids)}`
      return inOrder(ids, rows).map(toDocument)
    }, withSpanIfSampled("Catalog.documents"))

    const scan = Effect.fn("Catalog.scan")(function* ({
      after,
      limit
    }: {
      readonly after: bigint
      readonly limit: number
    }) {
      const rows = yield* sql<DocumentRow>`select ${columns} from ${from} where r.id > ${after}
        order by r.id limit ${Math.min(documentsMax, limit)}`
      return rows.map(toDocument)
    })

    const bodies = yield* batchBodies
    const { edition, visible } = yield* visibleCandidatesCache

    const condition: Catalog["Service"]["condition"] = (filters, options = {}) => {
      const own = conditionOf(sql, config, filters, options.snapshot)
      return options.id === undefined
        ? own
        : sql`${sql.literal(options.id)} in (select r.id from catalog_resources r where ${own})`
    }

    const snapshot = Effect.map(
      sql<{ id: bigint | null }>`select max(id) as id from catalog_resources`,
      ([row]) => row?.id ?? 0n
    )

    const { open, seal } = cursors
    return Catalog.of({ documents, scan, bodies, visible, condition, edition, snapshot, seal, open })
  })
)
