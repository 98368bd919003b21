// Ensures one writer of analytics at a time over all replicas: an advisory lock that ends with the caller's
// transaction.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const acquireAnalyticsLock = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`select pg_advisory_xact_lock(724402403)`
)
