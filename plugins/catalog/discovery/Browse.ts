// Browsing. Resources with evidence come first (their recipient's key, their origin, or a settled payment that counts),
// then mere claims; each group newest listing first. Of the first twenty at most three are of one recipient or origin,
// unless a filter names the recipient; the rest of theirs follows. Each page begins after the last id seen, so a deep
// page costs as much as the first. Within the snapshot that a first page fixes, each resource that stays visible
// appears exactly once, even if it rises between pages. The total is that of the snapshot (S106–S109, S312).
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { Config } from "../Config.ts"
import { Catalog, type Filters, isFiltered } from "../contract.ts"
import { type Behind, conditionOf, following, isPlannedByValue } from "./conditions.ts"
import {
  type Body,
  bodyColumns,
  bodyColumnsWithin,
  bodyFrom,
  type BodyRow,
  toBody,
  wholeMax,
  withinPage
} from "./batchBodies.ts"
import { batchPages } from "./batchPages.ts"
import { fingerprintOf } from "./filters.ts"
import { decodeBrowsePosition, encodeBrowsePosition, type BrowsePosition, positionAfter } from "./BrowsePosition.ts"
import { type CatalogOverloaded, Counts } from "./Counts.ts"

interface Page {
  /** Public bodies as JSON. */
  readonly items: ReadonlyArray<string>
  readonly offset: number
  readonly total: number
  readonly cursor: string | null
}

interface BrowseRequest {
  readonly filters: Filters
  readonly limit: number
  readonly offset: number
  readonly cursor: string | undefined
}

interface Span {
  readonly count: number
  readonly skip: number
}

interface Row extends Body {
  /** It had evidence when the first page was made. */
  readonly hasEvidence: boolean
}

/**
 * Pages of at most this many rows have a prepared statement. The limit is part of its text, because a plan for any
 * limit is bad for a small one. Small pages without filters share it (`batchPages.ts`).
 */
const preparedMax = 101

/** Selects rows through the indexes only, and reads documents only for the rows on the page. */
const makeRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const config = yield* Config
  const whole = wholeMax(config)
  const { bodies } = yield* Catalog
  const pages = yield* batchPages
  const [columns, columnsWithin, from] = [bodyColumns, bodyColumnsWithin, bodyFrom].map((text) => sql.literal(text))
  const idsOf = (ids: ReadonlyArray<bigint>) => sql`${`{${ids.join(",")}}`}::int8[]`
  const behind = ({ asOf, below, first }: BrowsePosition): Behind => ({ asOf, below, first: idsOf(first) })

  /** The still visible ones of the first page, in their order. */
  const firsts = (
    ids: ReadonlyArray<bigint>,
    filters: Filters
  ): Effect.Effect<ReadonlyArray<Body>, SqlError.SqlError> =>
    !isFiltered(filters)
      ? bodies(ids)
      : Effect.map(
          sql<BodyRow>`select ${columns} from ${from}
            where r.id = any(${idsOf(ids)}) and ${conditionOf(sql, config, filters)}`,
          (rows) => {
            const byId = new Map(rows.map((row) => [row.id, row]))
            return ids.flatMap((id) => byId.get(id) ?? []).map(toBody)
          }
        )

  /** Rows after a position, either among the resources with evidence or among the others. */
  const tier = (hasEvidence: boolean, place: BrowsePosition, filters: Filters, { count, skip }: Span) => {
    const reported = Effect.map((all: ReadonlyArray<Body>): ReadonlyArray<Row> =>
      all.map((body) => ({ ...body, hasEvidence }))
    )
    if (skip === 0 && count <= whole && !isFiltered(filters)) return reported(pages({ hasEvidence, place, count }))
    const ofPage = following(sql, config, hasEvidence, behind(place), filters)
    const end = sql`order by r.id desc limit ${sql.literal(String(count))} offset ${sql.literal(String(skip))}`
    const page =
      count <= whole
        ? sql`select r.id from catalog_resources r where ${ofPage} ${end}`
        : sql`select id, sum(bytes) over (order by id desc) - bytes as before from (
            select r.id, octet_length(r.document) as bytes from catalog_resources r where ${ofPage} ${end}) sized`
    const rows = sql<BodyRow>`select ${count <= whole ? columns : columnsWithin} from ${from}
      join (${page}) page on page.id = r.id order by r.id desc`
    const isPrepared = skip === 0 && count <= preparedMax && !isPlannedByValue(filters)
    return reported(Effect.map(isPrepared ? rows : rows.unprepared, (all) => all.map(toBody)))
  }

  const countTier = (place: BrowsePosition, filters: Filters) =>
    Effect.map(
      sql<{ count: bigint }>`select count(*) as count from catalog_resources r
        where ${following(sql, config, true, behind(place), filters)}`.unprepared,
      ([row]) => Number(row!.count)
    )

  /** Rows after a position; the second tier is read when the first has ended. */
  const after = Effect.fnUntraced(function* (
    place: BrowsePosition,
    snapshot: bigint,
    filters: Filters,
    { count, skip }: Span
  ) {
    const above = place.hasEvidence ? yield* tier(true, place, filters, { count, skip }) : []
    if (above.length >= count || withinPage(above).length < above.length) return above
    const passed = place.hasEvidence && above.length === 0 && skip > 0 ? yield* countTier(place, filters) : 0
    const others: BrowsePosition = place.hasEvidence ? { ...place, below: snapshot + 1n } : place
    const left = { count: count - above.length, skip: above.length === 0 ? Math.max(0, skip - passed) : 0 }
    return [...above, ...(yield* tier(false, others, filters, left))]
  })

  return { firsts, after }
})

type Opened = Option.Option<{ readonly snapshot: bigint; readonly position: string }>

export class Browse extends Context.Service<
  Browse,
  {
    /** None when the cursor is not authentic, has expired, or belongs to other filters. */
    readonly page: (request: BrowseRequest) => Effect.Effect<Option.Option<Page>, SqlError.SqlError | CatalogOverloaded>
  }
>()("tollkeeper/catalog/Browse") {
  static readonly layer = Layer.effect(
    Browse,
    Effect.gen(function* () {
      const catalog = yield* Catalog
      const rows = yield* makeRows
      const { count } = yield* Counts

      /** The page that begins at a position; `skip` rows behind the first ones are passed over. */
      const pageAt = Effect.fnUntraced(function* (
        { filters, limit }: BrowseRequest,
        { fingerprint, snapshot }: { readonly fingerprint: string; readonly snapshot: bigint },
        at: BrowsePosition,
        skip: number
      ): Effect.fn.Return<Page, SqlError.SqlError> {
        const { first, shown: offset, total } = at
        if (offset >= total) return { items: [], offset, total, cursor: null }
        const leading = first.slice(offset, offset + limit)
        const led = leading.length === 0 ? [] : yield* rows.firsts(leading, filters)
        const room = limit - leading.length
        // One more row shows whether another page follows; if the first ones fill this page, the total shows it.
        const behind = room === 0 ? [] : yield* rows.after(at, snapshot, filters, { count: room + 1, skip })
        const whole = withinPage(behind)
        const shown = whole.slice(0, room)
        const isEnd = behind.length <= room && whole.length === behind.length
        const isLast = room === 0 ? offset + limit >= total : isEnd
        const next = positionAfter(at, leading.length + shown.length, shown.at(-1))
        const cursor = isLast
          ? null
          : yield* catalog.seal({ snapshot, position: encodeBrowsePosition(next), fingerprint })
        return { items: [...led, ...shown].map(({ json }) => json), offset, total, cursor }
      })

      const page = Effect.fn("Catalog.browse")(function* (
        request: BrowseRequest
      ): Effect.fn.Return<Option.Option<Page>, SqlError.SqlError | CatalogOverloaded> {
        const { cursor, filters, offset } = request
        const fingerprint = fingerprintOf(filters)
        if (cursor === undefined) {
          const { asOf, first, snapshot, total } = yield* count(filters, fingerprint)
          const start: BrowsePosition = { hasEvidence: true, below: snapshot + 1n, shown: offset, total, asOf, first }
          const skip = Math.max(0, offset - first.length)
          return Option.some(yield* pageAt(request, { fingerprint, snapshot }, start, skip))
        }
        const opened: Opened = yield* catalog.open(cursor, fingerprint)
        if (Option.isNone(opened)) return Option.none()
        const { position, snapshot } = opened.value
        return Option.some(yield* pageAt(request, { fingerprint, snapshot }, decodeBrowsePosition(position), 0))
      })

      return Browse.of({ page })
    })
  )
}
