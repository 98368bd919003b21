// The root cause of a database error, its message, which has details that the client's message lacks, and whether it
// means that nothing can be written. Pure, and without the client: a process without a database reports its end by the
// same functions.

const depthMax = 6

export const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined

export const rootCause = (error: unknown): unknown => {
  let root = error
  for (let depth = 0; depth < depthMax; depth++) {
    const below = field(root, "cause") ?? field(root, "reason")
    if (below === undefined || below === null) return root
    root = below
  }
  return root
}

export const errorMessage = (error: unknown): string => {
  const reported = field(rootCause(error), "message")
  return typeof reported === "string" && reported !== "" ? reported.replace(/\s+/g, " ") : "no details"
}

/** SQLSTATEs of a read-only transaction or standby, of a full disk, and of a write that the disk fails. */
const reasons: Readonly<Record<string, string>> = {
  "25006": "the database is read-only",
  "53100": "the database's disk is full",
  "58030": "the database's disk fails"
}

/** A sentence when an error means that nothing can be written; undefined for any other error. */
export const writeErrorOf = (error: unknown): string | undefined =>
  reasons[String(field(rootCause(error), "code") ?? "")]
