// One declaration that a payment carried, taken into the catalog in one short transaction that locks this resource and
// nothing else (S18, S22, S23, S256, decisions 4).
import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { Declaration } from "../declaration/Declaration.ts"
import { FirstListings } from "./FirstListings.ts"
import { type Carrier, type Recorded, unavailable } from "./Recorded.ts"
import { Redeclarations } from "./Redeclarations.ts"
import { lockResource } from "./Resources.ts"
import { identityKey } from "./ResourceWire.ts"

export class Listings extends Context.Service<
  Listings,
  {
    readonly record: (declaration: Declaration, carrier: Carrier) => Effect.Effect<Recorded, SqlError.SqlError>
  }
>()("tollkeeper/catalog/Listings") {
  static readonly layer = Layer.effect(
    Listings,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const crypto = yield* Crypto
      const first = yield* FirstListings
      const redeclarations = yield* Redeclarations

      const record = (declaration: Declaration, carrier: Carrier) => {
        const key = identityKey(crypto, declaration.identity)
        const once = Effect.gen(function* () {
          const row = yield* lockResource(sql, { key })
          return row === undefined
            ? yield* first.list(declaration, carrier)
            : yield* redeclarations.take(row, declaration, carrier)
        })
        // Listed by somebody else between the look and the insert: then it is there now.
        const twice = Effect.flatMap(once, (recorded) => (recorded === undefined ? once : Effect.succeed(recorded)))
        return inTransaction(twice).pipe(
          Effect.map((recorded) => recorded ?? unavailable("listed and gone at once")),
          Effect.provideService(SqlClient.SqlClient, sql),
          Effect.withSpan("catalog.record")
        )
      }

      return Listings.of({ record })
    })
  )
}
