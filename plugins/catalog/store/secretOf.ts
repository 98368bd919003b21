// Secrets of the catalog that no setting names: each is made once, by the first replica, and stored in the database,
// which all of them share.
import { Effect } from "effect"
import { Base64Url } from "effect/encoding"
import { SqlClient } from "effect/sql"
import { Crypto } from "../../../kernel/platform/Crypto.ts"

export const secretOf = Effect.fnUntraced(function* (name: string) {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  yield* sql`insert into catalog_secrets ${sql.insert({ name, secret: Base64Url.encode(crypto.randomBytes(32)) })}
    on conflict (name) do nothing`
  const [row] = yield* sql<{ secret: string }>`select secret from catalog_secrets where name = ${name}`
  return new TextEncoder().encode(row!.secret)
})
