// Formats stored data for reports: amounts by asset, addresses plain or redacted, networks and reasons in the first of
// the configured spellings.
import { Context, Effect, Layer } from "effect"
import { WireVocabulary } from "../../../kernel/config/WireVocabulary.ts"
import { type NeutralNetwork, encodeNetwork, encodeReason } from "../../../kernel/Dialect.ts"
import type { SettlementRow } from "../recording/SettlementRows.ts"
import { Amounts } from "./Amounts.ts"
import { Redaction } from "./Redaction.ts"
import type { SettlementRecord } from "./ReportWire.ts"

export class Spelling extends Context.Service<
  Spelling,
  {
    readonly amounts: Amounts["Service"]
    readonly redaction: Redaction["Service"]
    readonly network: (network: string) => string
    readonly word: (word: string) => string
    /** A settlement record, as in lists and reports (S178–S180). */
    readonly record: (row: SettlementRow) => typeof SettlementRecord.Type
  }
>()("tollkeeper/analytics/Spelling") {
  static readonly layer = Layer.effect(
    Spelling,
    Effect.gen(function* () {
      const amounts = yield* Amounts
      const redaction = yield* Redaction
      const [dialect] = (yield* WireVocabulary).dialects
      const networkOut = (network: string) => encodeNetwork(network as NeutralNetwork, dialect)
      return Spelling.of({
        amounts,
        redaction,
        network: networkOut,
        word: (word) => encodeReason(word, dialect),
        record: (row) => ({
          id: row.id,
          occurred_at: row.occurred_at.toISOString(),
          network: networkOut(row.network),
          scheme: row.scheme,
          ...amounts.name(row.asset),
          payer: redaction.show(row.payer),
          pay_to: redaction.show(row.pay_to),
          max_amount: row.amount_max,
          amount: row.amount,
          fee_stroops: row.fee_stroops.toString(),
          transaction_hash: row.transaction_hash,
          // Open settlements are never read here, so this case does not occur.
          status: row.status === "open" ? "unknown" : row.status,
          facilitator_id: row.facilitator_id,
          resource_id: row.resource_id?.toString() ?? null,
          resource_url: row.resource_url,
          error_reason: row.error_reason === null ? null : encodeReason(row.error_reason, dialect),
          organic: row.organic
        })
      })
    })
  )
}
