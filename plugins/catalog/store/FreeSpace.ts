// The ceiling for unpaid content of the catalog: free declarations, probed origins, paths from documents, and
// observations of payments that were only verified. Once the catalog's tables reach this size, only paid content is
// written. Impressions and missed searches have separate ceilings.
import { Effect, Exit } from "effect"
import type { SqlClient, SqlError } from "effect/sql"

/** Interval between two measurements. Writes in between may exceed the ceiling. */
const readEvery = "10 seconds"

/** Whether the catalog's tables have reached the ceiling. */
export const makeIsFull = (
  sql: SqlClient.SqlClient,
  bytesMax: number
): Effect.Effect<Effect.Effect<boolean, SqlError.SqlError>> =>
  Effect.cachedWithTTL(
    Effect.map(
      sql<{ bytes: number }>`select coalesce(sum(pg_total_relation_size(oid)), 0)::float8 as bytes from pg_class
        where relkind = 'r' and relnamespace = current_schema()::regnamespace
          and (relname like 'catalog\\_%' or relname like 'search\\_lexical\\_%')
          and relname not in ('catalog_impressions', 'catalog_missed_searches', 'catalog_missed_words')`,
      ([row]) => row!.bytes >= bytesMax
    ),
    (exit) => (Exit.isSuccess(exit) ? readEvery : 0)
  )
