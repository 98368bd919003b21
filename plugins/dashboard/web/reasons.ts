// Reason codes of refused payments and unlisted resources, as the sentences of `GET /reasons`. An unknown code is shown
// as words. The code stays next to the sentence.
import { h, type VNode } from "preact"
import { tag } from "./tag.ts"

/** The code in its neutral spelling. */
const neutral = (word: string): string => word.replace("_stellar_", "_ledger_").replace(/^stellar_/, "ledger_")

interface Explained {
  readonly reason: string
  readonly label: string
  readonly sentence: string
  readonly remedy: string
}

/** Explanations by neutral code, from `GET /reasons`. Empty if the request failed, undefined outside a browser. */
let rows: ReadonlyMap<string, Explained> | undefined

export const takeReasons = (items: ReadonlyArray<Explained>): void => {
  rows = new Map(items.map((item) => [neutral(item.reason), item]))
}

if (typeof location !== "undefined")
  takeReasons(
    await fetch("/reasons")
      .then(async (answer) => (answer.ok ? (await answer.json()).items : []))
      .catch(() => [])
  )

export const sentenceOf = (word: string): string | undefined => rows?.get(neutral(word))?.sentence

/** A code as words, for codes without a sentence: `invalid_exact_ledger_payload_x_failed` → `X failed`. */
const wordsOf = (word: string): string =>
  neutral(word)
    .replace(/^(settle|invalid)_/, "")
    .replace(/^(exact|upto|batch_settlement)_/, "")
    .replace(/^ledger_/, "")
    .replace(/^payload_/, "")
    .replaceAll("_", " ")
    .replace(/^[a-z]/, (letter) => letter.toUpperCase())

/** A code in a few words. */
export const reasonLabel = (word: string): string => rows?.get(neutral(word))?.label ?? wordsOf(word)

/** Codes of payments, as a filter offers them. */
export const reasonsKnown = (): ReadonlyArray<string> => [...(rows?.keys() ?? [])]

/** The code for a label that a reader typed, or for the code itself in any spelling. */
export const reasonOf = (text: string): string => {
  const asked = text.trim().toLowerCase()
  return reasonsKnown().find((word) => reasonLabel(word).toLowerCase() === asked) ?? asked.replace(/[^a-z0-9]+/g, "_")
}

export const reasonText = (word: string): string => sentenceOf(word) ?? wordsOf(word)

/** A sentence with its code. In a list, a few words with the sentence as their title. */
export const Reason = (props: { readonly word: string | undefined; readonly isShort?: boolean }): VNode<any> | null => {
  const { isShort, word } = props
  if (word === undefined) return null
  return isShort === true
    ? h("div", { class: "quiet reason", title: reasonText(word) }, reasonLabel(word))
    : tag("div", reasonText(word), " ", tag("code.quiet", word))
}
