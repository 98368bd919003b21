// Formats stored data for reports: amounts by asset, addresses plain or redacted, networks and reasons in the first of
// the configured spellings.
import { Context, Effect, Layer } from "effect"
import { WireVocabulary } from "../../../kernel/config/WireVocabulary.ts"
import { type NeutralNetwork, encodeNetwork, encodeReason } from "../../../kernel/Dialect.ts"
import { Amounts } from "./Amounts.ts"
import { Redaction } from "./Redaction.ts"

export class Spelling extends Context.Service<
  Spelling,
  {
    readonly amounts: Amounts["Service"]
    readonly redaction: Redaction["Service"]
    readonly network: (network: string) => string
    readonly word: (word: string) => string
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
        word: (word) => encodeReason(word, dialect)
      })
    })
  )
}
