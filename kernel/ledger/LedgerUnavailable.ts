// The ledger is unavailable: no RPC answered in time, or no answer was credible. This error does not decide about any
// payment or transaction; the caller treats the question as open.
import { Schema } from "effect"

export class LedgerUnavailable extends Schema.TaggedError<LedgerUnavailable>()("LedgerUnavailable", {
  /** The failed operation, such as `simulateTransaction`. */
  operation: Schema.String,
  /** The reason, without payloads. */
  message: Schema.String,
  /** No endpoint answered. This means an outage, while an implausible answer does not. */
  isSilent: Schema.optionalKey(Schema.Boolean),
  /** The system's error code of a failed connection, or the HTTP status. */
  code: Schema.optionalKey(Schema.String),
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** An answer that cannot be true. */
export const contradiction = (operation: string, message: string): LedgerUnavailable =>
  new LedgerUnavailable({ operation, message })
