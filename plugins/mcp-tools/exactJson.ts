// Detects JSON that a program changes by reading and writing it again. A number that a double cannot represent and a
// repeated name in an object are changed: 1917043659912705296 becomes ...705300, 1e400 becomes null, and one of two
// members is lost. Such a text is passed on as text, or refused, but never as its value. The texts here are valid JSON.
// Pure.

/** Digits without leading and trailing zeros, and the exponent: equal for equal numbers. */
const normalized = (literal: string): string | undefined => {
  const [, sign = "", whole, fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal) ?? []
  if (whole === undefined) return undefined
  const digits = `${whole}${fraction}`.replace(/^0+/, "")
  const trimmed = digits.replace(/0+$/, "")
  if (trimmed === "") return "0"
  return `${sign}${trimmed}e${BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - trimmed.length)}`
}

const literalLengthMax = 4_096

const isExact = (literal: string): boolean => {
  const value = Number(literal)
  if (Number.isSafeInteger(value) && literal.length <= 15 && /^-?\d+$/.test(literal)) return true
  if (literal.length > literalLengthMax) return false
  return normalized(literal) === normalized(String(value))
}

const stringEnd = (text: string, at: number): number => {
  for (let i = at + 1; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x5c) i += 1
    else if (code === 0x22) return i
  }
  return text.length
}

const isDigit = (code: number): boolean => code === 0x2d || (code >= 0x30 && code <= 0x39)

const numberEnd = (text: string, at: number): number => {
  let end = at + 1
  while (end < text.length && /[0-9.eE+-]/.test(text[end]!)) end += 1
  return end
}

const unescaped = (quotedText: string): string =>
  quotedText.includes("\\") ? (JSON.parse(quotedText) as string) : quotedText.slice(1, -1)

const shown = (text: string): string => (text.length > 60 ? `${text.slice(0, 60)}…` : text)

/** Describes, in a few words, the part of a JSON text that its value loses; undefined if the value is exact. */
export const inexactIn = (text: string): string | undefined => {
  const open: Array<Set<string> | undefined> = []
  let isKey = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x22) {
      const end = stringEnd(text, i)
      const keys = open.at(-1)
      if (isKey && keys !== undefined) {
        const key = unescaped(text.slice(i, end + 1))
        if (keys.has(key)) return `a name that is repeated in an object: ${shown(JSON.stringify(key))}`
        keys.add(key)
        isKey = false
      }
      i = end
    } else if (code === 0x7b || code === 0x5b) {
      open.push(code === 0x7b ? new Set() : undefined)
      isKey = code === 0x7b
    } else if (code === 0x7d || code === 0x5d) {
      open.pop()
      isKey = false
    } else if (code === 0x2c) isKey = open.at(-1) !== undefined
    else if (isDigit(code)) {
      const end = numberEnd(text, i)
      const literal = text.slice(i, end)
      if (!isExact(literal)) return `a number that a double cannot represent: ${shown(literal)}`
      i = end - 1
    }
  }
  return undefined
}

const valueEnd = (text: string, at: number): number => {
  let depth = 0
  for (let i = at; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x22) i = stringEnd(text, i)
    else if (code === 0x7b || code === 0x5b) depth += 1
    else if (code === 0x7d || code === 0x5d) depth -= 1
    else if (depth === 0 && code === 0x2c) return i
    if (depth < 0) return i
    if (depth === 0 && (code === 0x7d || code === 0x5d || code === 0x22)) return i + 1
  }
  return text.length
}

const skipBlanks = (text: string, at: number): number => {
  let i = at
  while (i < text.length && " \t\n\r\ufeff".includes(text[i]!)) i += 1
  return i
}

/** The text of each member of an object, or of each element of an array under its index, in their order. */
export const membersOf = (text: string): ReadonlyArray<readonly [name: string, value: string]> => {
  const begin = skipBlanks(text, 0)
  const isObject = text[begin] === "{"
  if (!isObject && text[begin] !== "[") return []
  const members: Array<readonly [string, string]> = []
  let at = skipBlanks(text, begin + 1)
  while (at < text.length && text[at] !== "}" && text[at] !== "]") {
    let name = String(members.length)
    if (isObject) {
      const end = stringEnd(text, at)
      name = unescaped(text.slice(at, end + 1))
      at = skipBlanks(text, skipBlanks(text, end + 1) + 1)
    }
    const end = valueEnd(text, at)
    members.push([name, text.slice(at, end).trim()])
    at = skipBlanks(text, end)
    if (text[at] === ",") at = skipBlanks(text, at + 1)
  }
  return members
}

/** The text of the value at a path; of repeated members the last one counts, as in the value. */
export const textAt = (text: string, path: ReadonlyArray<string>): string | undefined => {
  let found: string | undefined = text
  for (const name of path)
    found = found === undefined ? undefined : membersOf(found).findLast(([one]) => one === name)?.[1]
  return found
}
