// What passes filters that few resources pass: those are ranked themselves, and not looked for among what holds the
// words of a query or is near it. Filters that many pass are remembered as common for a while, so that the same ones
// are not counted with every search; should they become rare meanwhile, the ranking looks closer where it finds too
// few.
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { elapsedMillis } from "../../../kernel/elapsed.ts"
import { putNewest } from "../../../kernel/putNewest.ts"
import { Catalog, type Filters, isFiltered } from "../contract.ts"

/** So few resources that pass the filters are ranked themselves; more are chosen by the words. */
const rareMax = 2_000

/** A search waits so long for it, a quarter of what its branches may take. */
const patience = "500 millis"

/** How long filters are taken for common, and how many of them are remembered. */
const commonMillis = 60_000
const commonMax = 1_000

/** Equal for filters that let the same pass; none of their values holds a line break. */
const keyOf = (filters: Filters): string =>
  Object.entries(filters)
    .map(([name, value]) => `${name}=${value}`)
    .toSorted()
    .join("\n")

export class RareFilters extends Context.Service<
  RareFilters,
  {
    /**
     * All that pass, where there are filters and few pass. Where the database fails, or has not answered in time, it is
     * as if many did: no search waits long for what only makes it faster.
     */
    readonly passing: (filters: Filters, snapshot: bigint) => Effect.Effect<ReadonlyArray<bigint> | undefined>
  }
>()("tollkeeper/catalog/RareFilters") {
  static readonly layer = Layer.effect(
    RareFilters,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const catalog = yield* Catalog
      const commonUntil = new Map<string, number>()

      /**
       * One statement, which ends at the first too many. They come in one row: two thousand rows take this process
       * longer than ranking takes the database.
       */
      const count = Effect.fnUntraced(function* (filters: Filters, snapshot: bigint) {
        const [row] = yield* sql<{ count: number; ids: string | null }>`select count(*)::int as count,
            string_agg(id::text, ',') as ids from (select r.id from catalog_resources r
              where ${catalog.condition(filters, { snapshot })} limit ${sql.literal(String(rareMax + 1))}) found`
          .unprepared
        return row!.count > rareMax ? undefined : (row!.ids?.split(",").map(BigInt) ?? [])
      })

      const passing: RareFilters["Service"]["passing"] = Effect.fnUntraced(function* (filters, snapshot) {
        if (!isFiltered(filters)) return undefined
        const key = keyOf(filters)
        const now = yield* elapsedMillis
        if ((commonUntil.get(key) ?? -Infinity) > now) return undefined
        const answer = yield* Effect.catch(Effect.timeoutOption(count(filters, snapshot), patience), (error) =>
          Effect.as(Effect.logWarning("what passes the filters of a search was not looked up", error), Option.none())
        )
        if (Option.isNone(answer)) return undefined
        const found = answer.value
        commonUntil.delete(key)
        if (found !== undefined) return found
        putNewest(commonUntil, commonMax, key, now + commonMillis)
        return undefined
      })

      return RareFilters.of({ passing })
    })
  )
}
