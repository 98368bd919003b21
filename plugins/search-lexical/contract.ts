// The functions of search-lexical for other plugins: they split the texts of a resource and of a query into words. A
// plugin that ranks by words uses the same functions, so that both split alike. Pure; works with the plugin disabled.
import type { ResourceDocument } from "../catalog/contract.ts"
import { documentText, type WeightedText } from "./documentText.ts"
import { priorEvidence } from "./evidence.ts"
import { relationsOf } from "./relations.ts"
import { type Translation, translationsOf } from "./translations.ts"
import { currencyWords, isSmallEnglish, queryWords } from "./words.ts"

/** The words of a resource as four texts, bounded: `a` names, `b` descriptions, `c` tags, `d` examples. */
export const resourceTexts = (resource: ResourceDocument): WeightedText => documentText(resource)

/** How much of its weight an English word is worth that interfaces of any kind use: 0 to 1. */
export const evidenceShare = (word: string): number => priorEvidence(word)

/** The topics of a query's phrases, in words of listings, without the query's own. */
export const relatedWords = (query: string): ReadonlyArray<string> => [
  ...new Set(relationsOf(query).flatMap(({ about }) => about))
]

/** The English of a query's words in Spanish, Russian and Japanese, by the lexicon. */
export const translatedWords = (query: string): ReadonlyArray<Translation> => translationsOf(query)

/** The discriminative words of a query in English, in their order; function words only if there are no others. */
export const discriminativeTerms = (query: string): ReadonlyArray<string> => {
  const { words } = queryWords(query, "english")
  const discriminative = words.filter((word) => !isSmallEnglish(word))
  return [...(discriminative.length === 0 ? words : discriminative), ...currencyWords(query)]
}
