// A secret from the environment: the content of a variable, or of the file that the variable with the suffix `_FILE`
// points at, read again on each access. An unreadable or empty file is an error, never an absent secret: without its
// keys a facilitator would serve everyone, and without its database's URL it would open another database.
import { Schema } from "effect"
import { readFileSync } from "node:fs"

/** A file with a secret cannot be read. Thrown, since a secret is read in many places; reported as any refusal is. */
class SecretUnreadable extends Schema.TaggedError<SecretUnreadable>()("SecretUnreadable", {
  message: Schema.String
}) {}

const readContent = (variable: string, file: string): string => {
  try {
    return readFileSync(file, "utf8").trim()
  } catch {
    throw new SecretUnreadable({ message: `the file that ${variable}_FILE names cannot be read` })
  }
}

const contentOf = (variable: string, file: string | undefined): string | undefined => {
  if (file === undefined || file === "") return undefined
  const content = readContent(variable, file)
  if (content !== "") return content
  const remedy = `write the secret into it, or unset ${variable}_FILE`
  throw new SecretUnreadable({ message: `the file that ${variable}_FILE names is empty; ${remedy}` })
}

/** Undefined when neither variable is set. */
export const secretOf = (
  environment: Readonly<Record<string, string | undefined>>,
  variable: string
): string | undefined => environment[variable] || contentOf(variable, environment[`${variable}_FILE`]) || undefined
