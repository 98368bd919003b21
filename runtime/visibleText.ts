// Text for an operator's terminal. Lines of commands quote text of buyers and sellers, which may contain sequences that
// write to the clipboard, erase or forge lines, or reverse their order. Every control and format character is shown as
// its escape. An escape of JSON has the same value, so that a printed JSON value stays unchanged. Pure.

/** Control, format, and line-separating characters, without the line feed between our own lines. */
const unseen = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

const escaped = (text: string): string =>
  Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")

/** The text with visible escapes; line feeds stay. */
export const visibleText = (text: string): string => text.replace(unseen, escaped)

/** A text of third parties within a line of ours. */
export const visibleLine = (text: string): string => visibleText(text).replaceAll("\n", "\\n")
