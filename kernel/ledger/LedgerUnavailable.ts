// The ledger is unavailable: no RPC answered in time, or none gave a credible answer. It says nothing about any payment
// or transaction; the caller treats the question as open.
import { Schema } from "effect"

export class LedgerUnavailable extends Schema.TaggedError<LedgerUnavailable>()("LedgerUnavailable", {
  /** The failed operation, such as `simulateTransaction`. */
  operation: Schema.String,
  /** Why, without payloads. */
  message: Schema.String,
  /** No endpoint gave an answer at all: an outage, unlike an answer that is not credible. */
  isSilent: Schema.optionalKey(Schema.Boolean),
  /** The system's code of a connection that failed, or the status of HTTP. */
  code: Schema.optionalKey(Schema.String),
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** An answer that cannot be true. */
export const contradiction = (operation: string, message: string): LedgerUnavailable =>
  new LedgerUnavailable({ operation, message })
