// What lies beneath an error of the database, and its words, which say what the client's own do not. Pure, and without
// the client: a process that has no database says why it ends by the same means.

const depthMax = 6

export const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined

/** The innermost error that there is. */
export const rootCause = (error: unknown): unknown => {
  let root = error
  for (let depth = 0; depth < depthMax; depth++) {
    const below = field(root, "cause") ?? field(root, "reason")
    if (below === undefined || below === null) return root
    root = below
  }
  return root
}

/** What the database says of an error, in its own words. */
export const errorMessage = (error: unknown): string => {
  const reported = field(rootCause(error), "message")
  return typeof reported === "string" && reported !== "" ? reported.replace(/\s+/g, " ") : "no word of why"
}
