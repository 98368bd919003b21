// The spellings of the protocol that this process accepts, and the reason code it returns while a payment's outcome is
// open.
import { Context, Effect, Layer, Schema } from "effect"
import { choice, list, section } from "./Setting.ts"
import { Settings, SettingsRefused } from "./Settings.ts"

export const wireSection = section("wire", "The spellings of the wire.", {
  dialects: list(Schema.Literals(["ledger", "stellar"]), {
    default: ["ledger", "stellar"],
    doc: "Accepted spellings; the first is used in analytics, tools, receipts, logs and metrics."
  }),
  stellar_pending_reason: choice(["settlement_pending", "settle_stellar_transaction_status_unknown"], {
    default: "settlement_pending",
    doc:
      "errorReason of an open settlement in the stellar spelling; official clients retry automatically only " +
      "on the first."
  })
})

export interface WireVocabularyValues {
  /** Never empty; the first is the spelling that this service writes. */
  readonly dialects: readonly ["ledger" | "stellar", ...ReadonlyArray<"ledger" | "stellar">]
  readonly stellarPendingReason: "settlement_pending" | "settle_stellar_transaction_status_unknown"
}

export class WireVocabulary extends Context.Service<WireVocabulary, WireVocabularyValues>()(
  "tollkeeper/config/WireWords"
) {
  static readonly layer = Layer.effect(
    WireVocabulary,
    Effect.gen(function* () {
      const values = yield* (yield* Settings).section(wireSection)
      const [first, ...rest] = new Set(values.dialects)
      if (first === undefined)
        return yield* new SettingsRefused({ path: "wire.dialects", message: "at least one dialect is required" })
      return WireVocabulary.of({ dialects: [first, ...rest], stellarPendingReason: values.stellar_pending_reason })
    })
  )
}
