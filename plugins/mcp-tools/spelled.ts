// Spells a network for answers in the first of the enabled dialects; any other text stays unchanged.
import { Effect, Option } from "effect"
import { WireVocabulary } from "../../kernel/config/WireVocabulary.ts"
import { readNetwork, encodeNetwork } from "../../kernel/Dialect.ts"

export const spelled = Effect.map(
  WireVocabulary,
  ({ dialects: [dialect] }) =>
    (network: string): string =>
      Option.match(readNetwork(network), {
        onNone: () => network,
        onSome: ({ network }) => encodeNetwork(network, dialect)
      })
)
