// What search-lexical gives to other plugins: how the texts of a resource and of a query become words. Whoever ranks by
// words goes the same way, so that what is split here is split there. Pure; nothing needs the plugin to be enabled.
import type { ResourceDocument } from "../catalog/contract.ts"
import { documentText, type WeightedText } from "./documentText.ts"
import { currencyWords, queryWords } from "./words.ts"

/** The words of a resource as four texts, bounded: `a` names it, `b` describes, `c` tags and `d` exemplifies it. */
export const resourceTexts = (resource: ResourceDocument): WeightedText => documentText(resource)

/** The telling words of a query in English, in their order. */
export const tellingWords = (query: string): ReadonlyArray<string> => [
  ...queryWords(query, "english").words,
  ...currencyWords(query)
]
