// Records one declaration that a payment carried, in one short transaction that locks this resource and nothing else
// (S18, S22, S23, S256, rules 4).
import { Context, Effect, Layer, Option } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { inTransaction } from "../../../kernel/database/Database.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { Declaration } from "../declaration/Declaration.ts"
import { FirstListings } from "./FirstListings.ts"
import { type Carrier, type Recorded, unavailable } from "./Recorded.ts"
import { Redeclarations } from "./Redeclarations.ts"
import { lockResource, type ResourceRow } from "./Resources.ts"
import { identityKey } from "./ResourceWire.ts"

const wasReplaced = (sql: SqlClient.SqlClient, id: bigint, signature: string) =>
  Effect.map(
    sql`select 1 from catalog_signatures where resource_id = ${id} and signature = ${signature} and not is_current`,
    (rows) => rows.length > 0
  )

/** Maximum stored signatures of one resource; signatures that `max_versions_per_day` refused are not stored. */
const signaturesMax = 1_000

/** The signatures of an operation but this one declare nothing any more. */
const replaceSignatures = (sql: SqlClient.SqlClient, id: bigint, method: string, signature: string) =>
  sql`update catalog_signatures set is_current = false where resource_id = ${id} and operation = ${method}
    and signature <> ${signature}`

const keepSignature = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  id: bigint,
  { operation: { method } }: Declaration,
  signature: string,
  now: Date
) {
  yield* replaceSignatures(sql, id, method, signature)
  yield* sql`insert into catalog_signatures
    ${sql.insert({ resource_id: id, signature, at: now, operation: method, is_current: true })}
    on conflict (resource_id, signature) do nothing`
  yield* sql`delete from catalog_signatures where resource_id = ${id} and signature in (
    select signature from catalog_signatures where resource_id = ${id} order by at desc offset ${signaturesMax})`
})

/** Recipients of a listing that are asked for. */
const authorizersMax = 4

/**
 * The carrier of a declaration that pays a new recipient, upgraded to `declared`, if a listed recipient has authorized
 * the new one. Only the origin can change the origin's own statement.
 */
const rotationOf = Effect.fnUntraced(function* (row: ResourceRow, { terms }: Declaration, carrier: Carrier) {
  const { authorizedBy } = carrier
  if (authorizedBy === undefined || row.pay_tos.includes(terms.payTo)) return undefined
  if (row.ownership === "proven" || row.grade === "origin") return undefined
  if (row.state !== "active" && row.state !== "stale") return undefined
  for (const payTo of row.pay_tos.slice(0, authorizersMax)) {
    const found = Option.getOrUndefined(yield* authorizedBy(payTo))
    if (found !== undefined) return { ...carrier, grade: "declared", ...found } satisfies Carrier
  }
  return undefined
})

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

      /** Applies a change of recipient that the previous recipient has signed, once. */
      const rotate = Effect.fnUntraced(function* (row: ResourceRow, declaration: Declaration, carrier: Carrier) {
        const { now, signature } = carrier
        const isReplaced = signature !== undefined && (yield* wasReplaced(sql, row.id, signature))
        if (isReplaced) return yield* redeclarations.take(row, declaration, { ...carrier, grade: "claimed" })
        const recorded = yield* redeclarations.rotate(row, declaration, carrier)
        if (recorded.decision === "updated" && signature !== undefined)
          yield* keepSignature(sql, row.id, declaration, signature, now)
        return recorded
      })

      const record = (declaration: Declaration, carrier: Carrier) => {
        const key = identityKey(crypto, declaration.identity)
        const once = Effect.gen(function* () {
          const row = yield* lockResource(sql, { key })
          const rotating = row === undefined ? undefined : yield* rotationOf(row, declaration, carrier)
          if (rotating !== undefined) return yield* rotate(row!, declaration, rotating)
          const { signature } = carrier
          if (signature === undefined) {
            if (row === undefined) return yield* first.list(declaration, carrier)
            const recorded = yield* redeclarations.take(row, declaration, carrier)
            // The key's holder has changed the declaration that the account signed before.
            if (recorded.decision === "updated" && carrier.grade === "declared")
              yield* replaceSignatures(sql, row.id, declaration.operation.method, "")
            return recorded
          }
          // A signature that a later one has replaced is an old price that any payer may have kept.
          const isReplaced = row !== undefined && (yield* wasReplaced(sql, row.id, signature))
          const own: Carrier = isReplaced ? { ...carrier, grade: "claimed" } : carrier
          const recorded =
            row === undefined ? yield* first.list(declaration, own) : yield* redeclarations.take(row, declaration, own)
          const isTaken = recorded?.resourceId !== undefined && !["held", "rejected"].includes(recorded.decision)
          if (isTaken && !isReplaced)
            yield* keepSignature(sql, recorded.resourceId, declaration, signature, carrier.now)
          return recorded
        })
        // Another transaction listed it between the read and the insert: then it is there now.
        const twice = Effect.flatMap(once, (recorded) => (recorded === undefined ? once : Effect.succeed(recorded)))
        return inTransaction(twice).pipe(
          Effect.map((recorded) => recorded ?? unavailable("listed and removed concurrently")),
          Effect.provideService(SqlClient.SqlClient, sql),
          Effect.withSpan("catalog.record")
        )
      }

      return Listings.of({ record })
    })
  )
}
