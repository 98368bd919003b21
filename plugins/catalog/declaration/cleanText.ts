// Cleans untrusted text without changing its meaning: it removes terminal sequences, control characters, characters
// that reorder or hide text, and broken Unicode. The rest, including markup, stays unchanged, because it is data. Pure.

const escape = String.fromCodePoint(0x1b)

/** Escape sequences of terminals, whole, so that no `[31m` is left behind. */
const terminalSequences = new RegExp(
  `${escape}(?:\\[[0-?]*[ -/]*[@-~]|\\][^${escape}\\u0007]*(?:\\u0007|${escape}\\\\)?|[@-Z\\\\-_])|\\u009b[0-?]*[ ` +
    `-/]*[@-~]`,
  "g"
)

/**
 * Code points from, to: controls but tab and line feed, bidirectional marks and overrides, zero-width and invisible
 * ones, tags, noncharacters.
 */
const invisible: ReadonlyArray<readonly [from: number, to: number]> = [
  [0x00, 0x08],
  [0x0b, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x200b, 0x200f],
  [0x202a, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xfdd0, 0xfdef],
  [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xffff],
  [0x1d173, 0x1d17a],
  [0xe0000, 0xe0fff]
]

const isInvisible = (character: string): boolean => {
  const code = character.codePointAt(0) ?? 0
  return (code & 0xfffe) === 0xfffe || invisible.some(([from, to]) => from <= code && code <= to)
}

/** Most text matches this and needs no cleaning. */
const plain = /^[ -~\n\t]*$/

/** One string, cleaned; line separators become line feeds. */
export const cleanString = (text: string): string => {
  if (plain.test(text)) return text
  const kept = text
    .toWellFormed()
    .replace(/\r\n?|[\u2028\u2029]/g, "\n")
    .replace(terminalSequences, "")
  return [...kept]
    .filter((character) => !isInvisible(character))
    .join("")
    .normalize("NFC")
}

/** Whether a text holds white space or anything that would be cleaned away. */
export const isSmooth = (text: string): boolean => !/\s/.test(text) && cleanString(text) === text

/** A sentence for display: cleaned, on one line, at most `max` code points. */
export const cleanLine = (text: string, max: number): string => {
  const line = cleanString(text).replace(/\s+/g, " ").trim()
  return line.length <= max ? line : [...line].slice(0, max).join("").trimEnd()
}

/** Every string of a JSON value, keys included, cleaned. A key that becomes equal to an earlier one is left out. */
export const cleanJson = (value: unknown): unknown => {
  if (typeof value === "string") return cleanString(value)
  if (Array.isArray(value)) return value.map(cleanJson)
  if (typeof value !== "object" || value === null) return value
  const cleaned: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(value)) {
    const name = cleanString(key)
    if (name !== "__proto__" && !Object.hasOwn(cleaned, name)) cleaned[name] = cleanJson(item)
  }
  return cleaned
}

/** Levels of nesting and number of values of a JSON value; stops counting beyond the bounds. */
export const measureJson = (
  value: unknown,
  depthMax: number,
  valuesMax: number
): { readonly tooDeep: boolean; readonly tooMany: boolean } => {
  let values = 0
  let tooDeep = false
  const pending: Array<readonly [unknown, number]> = [[value, 0]]
  while (pending.length > 0 && !tooDeep && values <= valuesMax) {
    const [item, depth] = pending.pop()!
    values += 1
    if (typeof item !== "object" || item === null) continue
    if (depth >= depthMax) tooDeep = true
    else for (const child of Object.values(item)) pending.push([child, depth + 1])
  }
  return { tooDeep, tooMany: values > valuesMax }
}
