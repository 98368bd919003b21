// Makes text of a seller or an agent safe to show within a sentence to a person or a model: one line without control,
// format or private characters (which reverse, hide or forge the text around them), in quotation marks that it cannot
// close, with a maximum length. Pure.

/** Invisible or ambiguous characters, and unassigned code points. */
const unseen = /[\p{C}\p{Zl}\p{Zp}\p{Variation_Selector}]+/gu

const shortened = (text: string, lengthMax: number): string => {
  const letters = Array.from(text)
  return letters.length > lengthMax ? `${letters.slice(0, lengthMax - 1).join("")}…` : text
}

/** Maximum characters that we read; a longer text is not shown anyway. */
const readMax = 8_192

/** The text on one line, without invisible characters. */
export const inert = (text: string, lengthMax: number): string =>
  shortened(text.slice(0, readMax).replace(unseen, " ").replace(/\s+/g, " ").trim(), lengthMax)

/** The same in quotation marks. */
export const quoted = (text: string, lengthMax: number): string => `"${inert(text, lengthMax).replaceAll('"', "'")}"`

/** True if a seller's name can appear unquoted in our own text: a single word cannot form a sentence. */
export const isWord = (text: string): boolean => /^[a-z0-9._-]{1,64}$/i.test(text)
