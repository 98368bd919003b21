// What a stranger wrote, or an agent, as a person or a model may be shown it within a sentence: one line without
// control, format or private characters (which reverse, hide or forge what is around them), in quotation marks that it
// cannot close, and no longer than it may be. Pure.

/** Invisible or ambiguous characters, and code points that no script assigns yet. */
const unseen = /[\p{C}\p{Zl}\p{Zp}\p{Variation_Selector}]+/gu

const shortened = (text: string, lengthMax: number): string => {
  const letters = Array.from(text)
  return letters.length > lengthMax ? `${letters.slice(0, lengthMax - 1).join("")}…` : text
}

/** Maximum characters read; a text may be long, and most of it is not shown. */
const readMax = 8_192

/** On one line, without what is not seen. */
export const inert = (text: string, lengthMax: number): string =>
  shortened(text.slice(0, readMax).replace(unseen, " ").replace(/\s+/g, " ").trim(), lengthMax)

/** The same in quotation marks. */
export const quoted = (text: string, lengthMax: number): string => `"${inert(text, lengthMax).replaceAll('"', "'")}"`

/** Whether a stranger's name may be part of our own words: one word, in which nothing can be said. */
export const isWord = (text: string): boolean => /^[a-z0-9._-]{1,64}$/i.test(text)
