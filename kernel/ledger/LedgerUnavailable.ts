// The ledger could not be asked: no RPC answered in time, or none gave an answer that can be believed. It says nothing
// about any payment or transaction; whoever meets it treats the question as open.
import { Schema } from "effect"

export class LedgerUnavailable extends Schema.TaggedError<LedgerUnavailable>()("LedgerUnavailable", {
  /** What was being asked, such as `simulateTransaction`. */
  operation: Schema.String,
  /** Why, without payloads. */
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}
