// A secret from the environment: the content of a variable, or of the file that the variable with the suffix `_FILE`
// points at, read again on each access. An unreadable file is an error, never an empty secret.
import { Schema } from "effect"
import { readFileSync } from "node:fs"

/** A file with a secret cannot be read. Thrown, since a secret is read in many places; reported as any refusal is. */
class SecretUnreadable extends Schema.TaggedError<SecretUnreadable>()("SecretUnreadable", {
  message: Schema.String
}) {}

const contentOf = (variable: string, file: string | undefined): string | undefined => {
  if (file === undefined || file === "") return undefined
  try {
    return readFileSync(file, "utf8").trim()
  } catch {
    throw new SecretUnreadable({ message: `the file that ${variable}_FILE names cannot be read` })
  }
}

/** Undefined when it is absent or empty. */
export const secretOf = (
  environment: Readonly<Record<string, string | undefined>>,
  variable: string
): string | undefined => environment[variable] || contentOf(variable, environment[`${variable}_FILE`]) || undefined
