// Finds settlements by their payment identifier, of any principal: for an operator who has a caller's report and no
// hash. An identifier is unique for one principal, recipient and payer, so several settlements may have the same one.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** A settlement as far as a search shows it. */
export interface IdentifiedSettlement {
  readonly innerHash: string
  readonly state: string
  readonly recordedAt: Date
}

/** The form of a payment identifier (x402 `payment-identifier`). */
export const isIdentifier = (text: string): boolean => /^[A-Za-z0-9_-]{16,128}$/.test(text)

/** Exact matches, the newest first; what is no identifier has none. */
export const findByIdentifier = Effect.fn("findByIdentifier")(function* (identifier: string, limit: number) {
  const sql = yield* SqlClient.SqlClient
  if (!isIdentifier(identifier)) return []
  return yield* sql<IdentifiedSettlement>`select inner_hash as "innerHash", state, recorded_at as "recordedAt"
    from kernel_settlements where identifier = ${identifier} order by recorded_at desc, id limit ${limit}`
})
