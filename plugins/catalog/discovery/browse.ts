// Browsing: newest listing first, in pages that begin after the last id seen, so that a deep page costs what the first
// one does. The order is that of first listing, which no write changes: within the snapshot that a first page fixes,
// whatever stays visible is seen exactly once. The total is that of the snapshot (S106–S109, S312).
import { Effect, Option } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import type { CatalogValues } from "../Config.ts"
import type { Catalog, Filters } from "../contract.ts"
import { conditionOf } from "./conditions.ts"
import { bodyColumns, bodyOf, type BodyRow } from "./makeCatalog.ts"
import { fingerprintOf } from "./filters.ts"
import type { CatalogBusy, makeCounts } from "./makeCounts.ts"

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
  const statement = sql<BodyRow>`select ${sql.literal(bodyColumns)} from catalog_resources r join (
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

export const makeBrowse = (
  sql: SqlClient.SqlClient,
  config: CatalogValues,
  catalog: Catalog["Service"],
  count: ReturnType<typeof makeCounts>["count"]
) => {
  /** None when the cursor is not ours, has ended, or belongs to other filters. */
  const browse = Effect.fn("Catalog.browse")(function* ({
    cursor,
    filters,
    limit,
    offset
  }: BrowseRequest): Effect.fn.Return<Option.Option<Page>, SqlError.SqlError | CatalogBusy> {
    const fingerprint = fingerprintOf(filters)
    const opened = cursor === undefined ? undefined : yield* catalog.open(cursor, fingerprint)
    if (opened !== undefined && Option.isNone(opened)) return Option.none()
    const first = opened === undefined ? yield* count(filters, fingerprint) : undefined
    const snapshot = first?.snapshot ?? (opened as Option.Some<{ snapshot: bigint }>).value.snapshot
    const at: Position =
      opened === undefined
        ? { below: snapshot + 1n, offset, total: first!.total }
        : readPosition((opened as Option.Some<{ position: string }>).value.position)
    const skip = opened === undefined ? offset : 0
    if (skip >= at.total) return Option.some({ items: [], offset: at.offset, total: at.total, cursor: null })
    const rows = yield* pageRows(sql, config, filters, { below: at.below, count: limit + 1, skip })
    const shown = rows.slice(0, limit)
    const last = shown.at(-1)
    const next =
      rows.length <= limit || last === undefined
        ? null
        : yield* catalog.seal({
            snapshot,
            position: `${last.id}:${at.offset + shown.length}:${at.total}`,
            fingerprint
          })
    return Option.some({ items: shown.map(bodyOf), offset: at.offset, total: at.total, cursor: next })
  })

  return browse
}
