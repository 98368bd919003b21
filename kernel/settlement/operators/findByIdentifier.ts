// Finds settlements of any principal by their payment identifier: for an operator with a caller's report that lacks the
// hash. An identifier is unique for one principal, recipient and payer, so several settlements may have the same one.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

interface IdentifiedSettlement {
  readonly innerHash: string
  readonly state: string
  readonly recordedAt: Date
}

/** The form of a payment identifier (x402 `payment-identifier`). */
const isIdentifier = (text: string): boolean => /^[A-Za-z0-9_-]{16,128}$/.test(text)

/** Exact matches, newest first. Empty if the text does not have the form of an identifier. */
export const findByIdentifier = Effect.fn("findByIdentifier")(function* (identifier: string, limit: number) {
  const sql = yield* SqlClient.SqlClient
  if (!isIdentifier(identifier)) return []
  return yield* sql<IdentifiedSettlement>`select inner_hash as "innerHash", state, recorded_at as "recordedAt"
    from kernel_settlements where identifier = ${identifier} order by recorded_at desc, id limit ${limit}`
})
