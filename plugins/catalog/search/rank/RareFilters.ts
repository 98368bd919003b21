// Resources that pass rare filters: the branches rank these directly instead of searching for them among the query's
// candidates. An agent repeats its filters from search to search, so the last few lists are cached until the catalog
// changes, by its journal. Filters that many resources pass are cached as common for a while, so that they are not
// counted with every search. If they become rare in that time, the ranking searches deeper when it finds too few.
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { monotonicMillis } from "../../../../kernel/time/monotonicMillis.ts"
import { LruCache } from "../../../../kernel/cache/LruCache.ts"
import { Catalog, type Filters, isFiltered } from "../../contract.ts"

/** Up to this many resources that pass the filters are ranked themselves; more are chosen by the query's terms. */
const rareMax = 5_000

/** Timeout of the read in a search: a quarter of its branches'. */
const patience = "500 millis"

/** How long filters count as common, and how many of them are cached. */
const commonMillis = 60_000
const commonMax = 1_000

/** Life and number of the cached lists: some hundred kilobytes each. */
const listedMillis = 30_000
const listsMax = 32
/** Timeout of the edition: it only saves a statement. */
const editionPatience = "100 millis"

/** The key of filters, equal if they pass the same resources; none of their values holds a line break. */
const keyOf = (filters: Filters): string =>
  Object.entries(filters)
    .map(([name, value]) => `${name}=${value}`)
    .toSorted()
    .join("\n")

interface Listed {
  /** The catalog's edition and the snapshot. */
  readonly edition: string
  readonly at: number
  readonly ids: ReadonlyArray<bigint>
}

export class RareFilters extends Context.Service<
  RareFilters,
  {
    /**
     * All resources that pass, if there are filters and few pass. On a database error or a timeout the filters count as
     * common: a search must not wait long for a mere optimization.
     */
    readonly passing: (filters: Filters, snapshot: bigint) => Effect.Effect<ReadonlyArray<bigint> | undefined>
  }
>()("tollkeeper/catalog/RareFilters") {
  static readonly layer = Layer.effect(
    RareFilters,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const catalog = yield* Catalog
      const commonUntil = new LruCache<string, number>({ name: "common-filters", capacity: commonMax })
      const lists = new LruCache<string, Listed>({ name: "rare-filters", capacity: listsMax })

      /**
       * One statement, which stops beyond the bound. The ids come in one row: two thousand rows take this process
       * longer than ranking takes the database.
       */
      const count = Effect.fnUntraced(function* (filters: Filters, snapshot: bigint) {
        const [row] = yield* sql<{ count: number; ids: string | null }>`select count(*)::int as count,
            string_agg(id::text, ',') as ids from (select r.id from catalog_resources r
              where ${catalog.condition(filters, { snapshot })} limit ${sql.literal(String(rareMax + 1))}) found`
          .unprepared
        return row!.count > rareMax ? undefined : (row!.ids?.split(",").map(BigInt) ?? [])
      })

      /** Undefined if unknown or slow to read. */
      const editionOf = (snapshot: bigint) =>
        catalog.edition.pipe(
          Effect.timeout(editionPatience),
          Effect.map((edition): string | undefined => `${edition} ${snapshot}`),
          Effect.catch(() => Effect.undefined)
        )

      const passing: RareFilters["Service"]["passing"] = Effect.fnUntraced(function* (filters, snapshot) {
        if (!isFiltered(filters)) return undefined
        const key = keyOf(filters)
        const now = yield* monotonicMillis
        if (commonUntil.get(key, (until) => until > now) !== undefined) return undefined
        const edition = yield* editionOf(snapshot)
        const known = lists.get(key, ({ at, edition: before }) => before === edition && now - at < listedMillis)
        if (known !== undefined) return known.ids
        const answer = yield* Effect.catch(Effect.timeoutOption(count(filters, snapshot), patience), (error) =>
          Effect.as(Effect.logWarning("cannot read what passes a search's filters", error), Option.none())
        )
        if (Option.isNone(answer)) return undefined
        const ids = answer.value
        commonUntil.delete(key)
        lists.delete(key)
        if (ids === undefined) commonUntil.set(key, now + commonMillis)
        else if (edition !== undefined) lists.set(key, { edition, at: now, ids })
        return ids
      })

      return RareFilters.of({ passing })
    })
  )
}
