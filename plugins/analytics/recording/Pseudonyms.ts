// The pseudonym of an address: stable, not reversible without the key, and accepted by the address's own reports. The
// key is made once and kept in the database, so that replicas agree (S138, S297).
import { Context, Effect, Layer } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient } from "effect/sql"
import { Crypto } from "../../../kernel/platform/Crypto.ts"

const encoder = new TextEncoder()

export class Pseudonyms extends Context.Service<
  Pseudonyms,
  {
    readonly pseudonymOf: (address: string) => string
  }
>()("tollkeeper/analytics/Pseudonyms") {
  static readonly layer = Layer.effect(
    Pseudonyms,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const crypto = yield* Crypto
      yield* sql`insert into analytics_secrets (name, secret)
        values ('pseudonyms', ${Hex.encode(crypto.randomBytes(32))}) on conflict do nothing`
      const [row] = yield* sql<{ secret: string }>`select secret from analytics_secrets where name = 'pseudonyms'`
      const key = encoder.encode(row!.secret)
      return Pseudonyms.of({
        pseudonymOf: (address) => `p_${Hex.encode(crypto.hmacSha256(key, encoder.encode(address)).slice(0, 12))}`
      })
    })
  )
}
