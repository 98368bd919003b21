// Browsing: newest listing first, in pages that begin after the last id seen, so that a deep page costs what the first one does.
// The order is that of first listing, which no write changes: within the snapshot that a first page fixes, whatever stays
// visible is seen exactly once. The total is that of the snapshot; it is counted about once a second for each set of filters, by one
// request for all that ask, and anew as soon as this process has changed something (S106–S109, S312).
import { Clock, Deferred, Effect, Option, type Scope } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import type { CatalogValues } from "../Config.ts"
import type { Catalog, Filters } from "../contract.ts"
import { conditionOf } from "./conditions.ts"
import { bodyColumns, bodyOf, type BodyRow } from "./makeCatalog.ts"
import { fingerprintOf } from "./filters.ts"

const countedMillis = 1_000
/** Until then a count is still served while the next one is made beside it. */
const overlapMillis = 3_000
const countedMax = 1_000

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

interface Counted {
  readonly snapshot: bigint
  readonly total: number
  readonly at: number
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

export const makeBrowse = (sql: SqlClient.SqlClient, config: CatalogValues, catalog: Catalog["Service"], scope: Scope.Scope) => {
  const counted = new Map<string, Counted>()
  const counting = new Map<string, Deferred.Deferred<Counted, SqlError.SqlError>>()
  let changes = 0

  const countNow = Effect.fnUntraced(function*(filters: Filters, fingerprint: string) {
    const changesBefore = changes
    const at = yield* Clock.currentTimeMillis
    const snapshot = yield* catalog.snapshot
    const [row] = yield* sql<{ total: bigint }>`select count(*) as total from catalog_resources r where ${conditionOf(sql, config, filters, snapshot)}`.unprepared
    const fresh: Counted = { snapshot, total: Number(row?.total ?? 0n), at }
    counted.delete(fingerprint)
    if (changes === changesBefore) counted.set(fingerprint, fresh)
    if (counted.size > countedMax) counted.delete(counted.keys().next().value!)
    return fresh
  })

  /** One count for everybody who asks at the same time. It is nobody's request, so no client that hangs up ends it for the others. */
  const countOnce = Effect.fnUntraced(function*(filters: Filters, fingerprint: string) {
    const key = `${changes} ${fingerprint}`
    const running = counting.get(key)
    if (running !== undefined) return running
    const answer = Deferred.makeUnsafe<Counted, SqlError.SqlError>()
    counting.set(key, answer)
    const run = countNow(filters, fingerprint).pipe(Effect.exit, Effect.flatMap((exit) => Effect.sync(() => {
      counting.delete(key)
      Deferred.doneUnsafe(answer, exit)
    })))
    yield* Effect.forkIn(run, scope)
    return answer
  })

  const count = Effect.fnUntraced(function*(filters: Filters, fingerprint: string) {
    const now = yield* Clock.currentTimeMillis
    const known = counted.get(fingerprint)
    if (known !== undefined && now - known.at < countedMillis) return known
    const answer = yield* countOnce(filters, fingerprint)
    return known !== undefined && now - known.at < overlapMillis ? known : yield* Deferred.await(answer)
  })

  /** None when the cursor is not ours, has ended, or belongs to other filters. */
  const browse = Effect.fn("Catalog.browse")(function*(
    { cursor, filters, limit, offset }: BrowseRequest
  ): Effect.fn.Return<Option.Option<Page>, SqlError.SqlError> {
    const fingerprint = fingerprintOf(filters)
    const opened = cursor === undefined ? undefined : yield* catalog.open(cursor, fingerprint)
    if (opened !== undefined && Option.isNone(opened)) return Option.none()
    const first = opened === undefined ? yield* count(filters, fingerprint) : undefined
    const snapshot = first?.snapshot ?? (opened as Option.Some<{ snapshot: bigint }>).value.snapshot
    const at: Position = opened === undefined
      ? { below: snapshot + 1n, offset, total: first!.total }
      : readPosition((opened as Option.Some<{ position: string }>).value.position)
    const skip = opened === undefined ? offset : 0
    if (skip >= at.total) return Option.some({ items: [], offset: at.offset, total: at.total, cursor: null })
    const rows = yield* sql<BodyRow>`select ${sql.literal(bodyColumns)} from catalog_resources r
      where r.id < ${at.below} and ${conditionOf(sql, config, filters)} order by r.id desc limit ${limit + 1} offset ${skip}`.unprepared
    const shown = rows.slice(0, limit)
    const last = shown.at(-1)
    const next = rows.length <= limit || last === undefined ? null : yield* catalog.seal({
      snapshot,
      position: `${last.id}:${at.offset + shown.length}:${at.total}`,
      fingerprint
    })
    return Option.some({ items: shown.map(bodyOf), offset: at.offset, total: at.total, cursor: next })
  })

  return { browse, changed: () => {
    changes += 1
    counted.clear()
  } }
}
