// Statements that failed for the sake of others, and may simply be done again.
import { SqlError } from "effect/sql"

const ends = (reasons: ReadonlySet<string>) => (error: unknown) =>
  SqlError.isSqlError(error) && reasons.has(error.reason._tag)

/** Conflicts that PostgreSQL resolves by ending one of the transactions; it may be retried immediately. */
export const isConflict = ends(new Set(["DeadlockError", "SerializationError"]))

/** The same, or others held for too long what it required: it may be done when they are gone. */
export const isSerializationConflict = ends(new Set(["DeadlockError", "LockTimeoutError", "SerializationError"]))
