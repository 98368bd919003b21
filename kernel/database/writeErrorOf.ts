// The reason, if a statement's error shows that the database accepts no writes. Pure.
import { field, rootCause } from "./errorMessage.ts"

/** SQLSTATEs of a read-only transaction or standby, of a full disk, and of a write that the disk fails. */
const reasons: Readonly<Record<string, string>> = {
  "25006": "the database is read-only",
  "53100": "the database's disk is full",
  "58030": "the database's disk fails"
}

/** A sentence when an error means that nothing can be written; undefined for any other error. */
export const writeErrorOf = (error: unknown): string | undefined =>
  reasons[String(field(rootCause(error), "code") ?? "")]
