// Classifies statements that failed because of other transactions and may simply be retried.
import { SqlError } from "effect/sql"

const ends = (reasons: ReadonlySet<string>) => (error: unknown) =>
  SqlError.isSqlError(error) && reasons.has(error.reason._tag)

/** Conflicts that PostgreSQL resolves by ending one of the transactions; it may be retried immediately. */
export const isConflict = ends(new Set(["DeadlockError", "SerializationError"]))

/** Also true if other transactions held a lock for too long; a retry may succeed when they have ended. */
export const isSerializationConflict = ends(new Set(["DeadlockError", "LockTimeoutError", "SerializationError"]))
