// A generated secret: the first replica creates it, and all replicas read it from the database. It cannot be
// configured. A plugin stores its secrets in its own table.
import { Effect } from "effect"
import { Base64Url } from "effect/encoding"
import { SqlClient } from "effect/sql"
import { Crypto } from "../platform/Crypto.ts"

/** 43 characters as bytes. */
export const generatedSecret = Effect.fnUntraced(function* (name: string, table: string = "kernel_secrets") {
  const sql = yield* SqlClient.SqlClient
  const secret = Base64Url.encode((yield* Crypto).randomBytes(32))
  yield* sql`insert into ${sql(table)} ${sql.insert({ name, secret })} on conflict (name) do nothing`
  const [row] = yield* sql<{ secret: string }>`select secret from ${sql(table)} where name = ${name}`
  return new TextEncoder().encode(row!.secret)
})
