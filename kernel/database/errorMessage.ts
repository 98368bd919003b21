// The root cause of a database error and its message, which has details that the client's message lacks. Pure, and
// without the client: a process without a database reports its end by the same functions.

const depthMax = 6

export const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined

/** The innermost error. */
export const rootCause = (error: unknown): unknown => {
  let root = error
  for (let depth = 0; depth < depthMax; depth++) {
    const below = field(root, "cause") ?? field(root, "reason")
    if (below === undefined || below === null) return root
    root = below
  }
  return root
}

/** The database's own message of an error. */
export const errorMessage = (error: unknown): string => {
  const reported = field(rootCause(error), "message")
  return typeof reported === "string" && reported !== "" ? reported.replace(/\s+/g, " ") : "no details"
}
