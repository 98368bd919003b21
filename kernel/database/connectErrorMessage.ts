// The reason why a database is not usable, as a sentence for the operator that set DATABASE_URL: the server does not
// run, the server rejects this user, or the server or a pooler refuses the connection with a message. The URL is never
// quoted, since it holds a password.
import { SqlError } from "effect/sql"
import { field, rootCause, errorMessage } from "./errorMessage.ts"

const authenticationCode = /^28/
/** Messages of PgBouncer and similar poolers about a name or password; they use one error code for everything. */
const authenticationWords = /authentication failed|no such user|no username|SASL|password/i
const systemCode = /^E[A-Z]+$/

/** Wrong credentials or a wrong name: permanent until an operator corrects them. */
export const isPermanent = (error: SqlError.SqlError): boolean =>
  error.reason._tag === "AuthenticationError" || error.reason._tag === "AuthorizationError"

/** The operator's message: what failed, and what to do. */
export const connectErrorMessage = (error: unknown): string => {
  const root = rootCause(error)
  const words = errorMessage(error)
  const code = String(field(root, "code") ?? "")
  if (authenticationCode.test(code) || authenticationWords.test(words))
    return `the database rejects this user (${words}); correct the user and the password in DATABASE_URL`
  if (systemCode.test(code) || !SqlError.isSqlError(error) || code === "")
    return (
      `the database does not answer (${words}); start the PostgreSQL that DATABASE_URL names, or set DATABASE_URL ` +
      "to one that runs"
    )
  return (
    `the database refuses the connection: "${words}" (${code}); correct DATABASE_URL, or the settings of the server ` +
    "or pooler that it names"
  )
}
