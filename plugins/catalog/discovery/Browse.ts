// Browsing: newest listing first, in pages that begin after the last id seen, so that a deep page costs what the first
// one does. The order is that of first listing, which no write changes: within the snapshot that a first page fixes,
// whatever stays visible is seen exactly once. The total is that of the snapshot (S106–S109, S312).
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type CatalogValues, Config } from "../Config.ts"
import { Catalog, type Filters } from "../contract.ts"
import { conditionOf } from "./conditions.ts"
import { bodyColumns, bodyFrom, bodyOf, type BodyRow } from "./reads.ts"
import { fingerprintOf } from "./filters.ts"
import { type CatalogBusy, Counts } from "./Counts.ts"

/** Rows of a page of the default size, and one more that tells whether another page follows. */
const countCommon = 21

export interface Page {
  /** Public bodies as JSON. */
  readonly items: ReadonlyArray<string>
  readonly offset: number
  readonly total: number
  readonly cursor: string | null
}

export interface BrowseRequest {
  readonly filters: Filters
  readonly limit: number
  readonly offset: number
  readonly cursor: string | undefined
}

interface Position {
  /** Ids below this one are still to come. */
  readonly below: bigint
  readonly offset: number
  readonly total: number
}

const readPosition = (text: string): Position => {
  const [below = "0", offset = "0", total = "0"] = text.split(":")
  return { below: BigInt(below), offset: Number(offset), total: Number(total) }
}

interface PageOf {
  readonly below: bigint
  readonly count: number
  readonly skip: number
}

/**
 * The page is chosen by the indexes alone; documents are read for what is on it. The number of rows stands in the text,
 * since the planner has to know it. The commonest pages are prepared, as their plan is the same whatever the values
 * are.
 */
const pageRows = (
  sql: SqlClient.SqlClient,
  config: CatalogValues,
  filters: Filters,
  { below, count, skip }: PageOf
) => {
  const skipped = sql.literal(skip === 0 ? "" : `offset ${skip}`)
  const statement = sql<BodyRow>`select ${sql.literal(bodyColumns)} from ${sql.literal(bodyFrom)} join (
      select r.id from catalog_resources r where r.id < ${below} and ${conditionOf(sql, config, filters)}
        order by r.id desc limit ${sql.literal(String(count))} ${skipped}
    ) page on page.id = r.id order by r.id desc`
  const { asset, extension, maxPrice, network, scheme } = filters
  const isCommon =
    skip === 0 &&
    count === countCommon &&
    [asset, extension, maxPrice, network, scheme].every((value) => value === undefined)
  return isCommon ? statement : statement.unprepared
}

type Opened = Option.Option<{ readonly snapshot: bigint; readonly position: string }>

export class Browse extends Context.Service<
  Browse,
  {
    /** None when the cursor is not ours, has ended, or belongs to other filters. */
    readonly page: (request: BrowseRequest) => Effect.Effect<Option.Option<Page>, SqlError.SqlError | CatalogBusy>
  }
>()("tollkeeper/catalog/Browse") {
  static readonly layer = Layer.effect(
    Browse,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const config = yield* Config
      const catalog = yield* Catalog
      const { count } = yield* Counts

      /** The page that begins at a position, of a snapshot. */
      const pageAt = Effect.fnUntraced(function* (
        { filters, limit }: BrowseRequest,
        fingerprint: string,
        snapshot: bigint,
        at: Position,
        skip: number
      ): Effect.fn.Return<Page, SqlError.SqlError> {
        const { offset, total } = at
        if (skip >= total) return { items: [], offset, total, cursor: null }
        const rows = yield* pageRows(sql, config, filters, { below: at.below, count: limit + 1, skip })
        const shown = rows.slice(0, limit)
        const last = shown.at(-1)
        const cursor =
          rows.length <= limit || last === undefined
            ? null
            : yield* catalog.seal({ snapshot, position: `${last.id}:${offset + shown.length}:${total}`, fingerprint })
        return { items: shown.map(bodyOf), offset, total, cursor }
      })

      const page = Effect.fn("Catalog.browse")(function* (
        request: BrowseRequest
      ): Effect.fn.Return<Option.Option<Page>, SqlError.SqlError | CatalogBusy> {
        const { cursor, filters, offset } = request
        const fingerprint = fingerprintOf(filters)
        if (cursor === undefined) {
          const { snapshot, total } = yield* count(filters, fingerprint)
          const first = { below: snapshot + 1n, offset, total }
          return Option.some(yield* pageAt(request, fingerprint, snapshot, first, offset))
        }
        const opened: Opened = yield* catalog.open(cursor, fingerprint)
        if (Option.isNone(opened)) return Option.none()
        const { position, snapshot } = opened.value
        return Option.some(yield* pageAt(request, fingerprint, snapshot, readPosition(position), 0))
      })

      return Browse.of({ page })
    })
  )
}
