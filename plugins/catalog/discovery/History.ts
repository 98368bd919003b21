// The history of a public resource: its versions with the source of each one's words, and its prices with their
// periods. Newest first, and bounded. Buyers use it to compare listed sellers, so the public history only covers
// resources that are shown (S31–S48, S113).
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Resolve, type ResolveRequest } from "./Resolve.ts"

const entriesMax = 200

interface VersionRow {
  readonly version: number
  readonly hash: string
  readonly grade: string
  readonly at: Date
}

interface PriceRow {
  /** HTTP method; empty for MCP. */
  readonly operation: string
  /** As the seller declared it. */
  readonly option: Readonly<Record<string, unknown>>
  readonly from: Date
  /** Null while it is offered. */
  readonly until: Date | null
}

export interface ResourceHistory {
  readonly type: string
  readonly resource: string
  readonly toolName: string
  readonly versions: ReadonlyArray<VersionRow>
  readonly prices: ReadonlyArray<PriceRow>
}

export class History extends Context.Service<
  History,
  { readonly of: (request: ResolveRequest) => Effect.Effect<Option.Option<ResourceHistory>, SqlError.SqlError> }
>()("tollkeeper/catalog/History") {
  static readonly layer = Layer.effect(
    History,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { find } = yield* Resolve

      const of = Effect.fn("Catalog.history")(function* (request: ResolveRequest) {
        const found = yield* find(request)
        if (Option.isNone(found)) return Option.none<ResourceHistory>()
        const { id } = found.value
        const [row] = yield* sql<Pick<ResourceHistory, "type" | "resource" | "toolName">>`select type, resource,
          tool_name as "toolName" from catalog_resources where id = ${id}`
        if (row === undefined) return Option.none<ResourceHistory>()
        const versions = yield* sql<VersionRow>`select version, version_hash as hash, grade, at
          from catalog_versions where resource_id = ${id} order by version desc limit ${entriesMax}`
        const prices = yield* sql<PriceRow>`select operation, option, first_seen_at as "from", retired_at as "until"
          from catalog_options where resource_id = ${id} order by id desc limit ${entriesMax}`
        return Option.some<ResourceHistory>({ ...row, versions, prices })
      })

      return History.of({ of })
    })
  )
}
