// A generated secret of the kernel: the first replica creates it, and all replicas read it from the database. It cannot
// be configured.
import { Effect } from "effect"
import { Base64Url } from "effect/encoding"
import { SqlClient } from "effect/sql"
import { Crypto } from "../platform/Crypto.ts"

/** 43 characters as bytes. */
export const generatedSecret = Effect.fnUntraced(function* (name: string) {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  yield* sql`insert into kernel_secrets ${sql.insert({ name, secret: Base64Url.encode(crypto.randomBytes(32)) })}
    on conflict (name) do nothing`
  const [row] = yield* sql<{ secret: string }>`select secret from kernel_secrets where name = ${name}`
  return new TextEncoder().encode(row!.secret)
})
