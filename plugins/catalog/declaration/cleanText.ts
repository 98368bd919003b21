// Text of strangers, made harmless to read without changing what it says: terminal sequences, control characters, characters that
// reorder or hide text, and broken Unicode go; the rest stays as it is, markup included, for it is data. Pure.

/** Escape sequences of terminals, whole, so that no `[31m` is left behind. */
const terminalSequences = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])|\u009b[0-?]*[ -/]*[@-~]/g

/** Controls but tab and line feed, bidirectional overrides, zero-width and invisible characters, tags, noncharacters. */
const invisible =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu

/** One string, cleaned; line separators become line feeds. */
export const cleanString = (text: string): string =>
  text.toWellFormed().replace(/\r\n?|[\u2028\u2029]/g, "\n").replace(terminalSequences, "").replace(invisible, "").normalize("NFC")

/** A sentence for people: cleaned, on one line, at most `max` code points. */
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
export const measureJson = (value: unknown, depthMax: number, valuesMax: number): { readonly tooDeep: boolean; readonly tooMany: boolean } => {
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
