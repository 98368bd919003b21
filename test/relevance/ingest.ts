// Writes resources directly into the catalog's tables, as payments would have created them, with the facts that notify
// indexes: for measuring search over more resources than payments could list in the time.
import { Effect, Option } from "effect"
import type { SqlClient } from "effect/sql"
import { readNetwork } from "../../kernel/Dialect.ts"
import type { Dataset } from "./dataset.ts"

export interface IngestedResource {
  /** Unique in the run. */
  readonly name: string
  /** The catalog's key; otherwise the name, which no URL can find. */
  readonly key?: string
  readonly type: "http" | "mcp"
  readonly url: string
  readonly toolName: string
  readonly description: string
  readonly serviceName: string
  readonly tags: ReadonlyArray<string>
  readonly info: Readonly<Record<string, unknown>>
  /** With neutral networks. */
  readonly options: ReadonlyArray<{
    readonly scheme: string
    readonly network: string
    readonly asset: string
    readonly amount: string
    readonly payTo: string
  }>
}

/** A set's resources in the form of listings. */
export const listingsOf = (set: Dataset): ReadonlyArray<IngestedResource> =>
  set.resources.map(({ document, name, raw }) => ({
    name,
    type: raw.type,
    url: raw.resource.url,
    toolName: document.toolName,
    description: document.description,
    serviceName: document.serviceName,
    tags: document.tags,
    info: document.operations[0]?.info ?? {},
    options: raw.accepts.map((option) => ({
      ...option,
      network: Option.getOrThrow(readNetwork(option.network)).network
    }))
  }))

const rowOf = (one: IngestedResource) => {
  const about = {
    ...(one.description === "" ? {} : { description: one.description }),
    ...(one.serviceName === "" ? {} : { serviceName: one.serviceName }),
    ...(one.tags.length === 0 ? {} : { tags: one.tags })
  }
  return {
    key: one.key ?? one.name,
    type: one.type,
    resource: one.url,
    tool_name: one.toolName,
    origin: new URL(one.url).origin,
    declaration: {
      about,
      operations: [{ method: one.type === "http" ? "GET" : "", info: one.info }],
      sentKey: "catalog",
      extensions: ["catalog"]
    },
    document: JSON.stringify({
      resource: one.url,
      type: one.type,
      x402Version: 2,
      ...(one.toolName === "" ? {} : { toolName: one.toolName }),
      name: one.name,
      accepts: one.options,
      ...about
    }),
    options: one.options
  }
}

/** Stores them; the callback receives the number stored. */
export const ingest = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  resources: ReadonlyArray<IngestedResource>,
  onProgress: (stored: number) => void = () => {}
) {
  const batchMax = 1_000
  for (let from = 0; from < resources.length; from += batchMax) {
    const rows = resources.slice(from, from + batchMax).map(rowOf)
    yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`with given as (
          select * from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
            as r (key text, type text, resource text, tool_name text, origin text, declaration jsonb, document text,
              options jsonb)
        ), made as (
          insert into catalog_resources (key, resource_key, type, resource, tool_name, origin, state_changed_at,
            verification, pay_tos, version, version_hash,
            declaration, extensions, document, first_seen_at, updated_at)
          select key, resource, type, resource, tool_name, origin, now(), 'payment_observed',
            array[options->0->>'payTo'], 1, md5(key), declaration,
            array['catalog'], document, now(), now() from given
          returning id, key
        ), active as (
          insert into catalog_activity (resource_id, last_seen_at) select id, now() from made
        ), accepted as (
          insert into catalog_options (resource_id, operation, scheme, network, asset, amount, pay_to, option,
            first_seen_at)
          select made.id, '', o.scheme, o.network, o.asset, min(o.amount), o."payTo", '{}', now()
          from given join made using (key), jsonb_to_recordset(given.options) as o (scheme text, network text, asset
            text, amount numeric, "payTo" text)
          group by made.id, o.scheme, o.network, o.asset, o."payTo"
        )
        insert into kernel_facts (type, version, subject, data) select 'catalog.changed', 1, id::text, '{}' from made
          order by id`
      })
    )
    onProgress(from + rows.length)
  }
})
