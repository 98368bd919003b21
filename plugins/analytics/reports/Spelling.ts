// Formats stored data for reports: amounts by asset, addresses plain or redacted, networks and reasons in the first of
// the configured spellings.
import { Context, Effect, Layer } from "effect"
import { WireVocabulary } from "../../../kernel/config/WireVocabulary.ts"
import { type NeutralNetwork, encodeNetwork, encodeReason } from "../../../kernel/Dialect.ts"
import type { SettlementFact } from "../recording/SettlementFact.ts"
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
    readonly record: (fact: SettlementFact) => typeof SettlementRecord.Type
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
        record: (fact) => ({
          id: fact.id,
          occurred_at: fact.occurredAt.toISOString(),
          network: networkOut(fact.network),
          scheme: fact.scheme,
          ...amounts.name(fact.asset),
          payer: redaction.show(fact.payer),
          pay_to: redaction.show(fact.payTo),
          max_amount: String(fact.amountMax),
          amount: fact.amount?.toString() ?? null,
          fee_stroops: String(fact.feeStroops),
          transaction_hash: fact.transactionHash,
          // Open settlements are never read here, so this case does not occur.
          status: fact.status === "open" ? "unknown" : fact.status,
          facilitator_id: fact.facilitatorId,
          resource_id: fact.resourceId?.toString() ?? null,
          resource_url: fact.resourceUrl,
          error_reason: fact.errorReason === null ? null : encodeReason(fact.errorReason, dialect),
          organic: fact.organic
        })
      })
    })
  )
}
