// IP addresses as bytes: parsing of both families, IPv4-mapped forms folded into IPv4, and ranges. A malformed range
// contains no address. Pure.

/** 4 or 16 bytes; undefined if the text is not an address. */
export const parseAddress = (text: string): ReadonlyArray<number> | undefined => {
  const bare = text.replace(/^\[|\]$/g, "").replace(/%.*$/, "")
  const bytes = bare.includes(":") ? parseV6(bare) : parseV4(bare)
  if (bytes === undefined || bytes.length === 4) return bytes
  const mapped = bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff
  return mapped ? bytes.slice(12) : bytes
}

const parseV4 = (text: string): ReadonlyArray<number> | undefined => {
  const parts = text.split(".")
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part))) return undefined
  const bytes = parts.map(Number)
  return bytes.every((byte) => byte <= 255) ? bytes : undefined
}

const parseV6 = (text: string): ReadonlyArray<number> | undefined => {
  const lastColon = text.lastIndexOf(":")
  const tail = text.slice(lastColon + 1)
  if (tail.includes(".")) {
    const v4 = parseV4(tail)
    if (v4 === undefined) return undefined
    const group = (high: number, low: number) => ((high << 8) | low).toString(16)
    return parseV6(`${text.slice(0, lastColon + 1)}${group(v4[0]!, v4[1]!)}:${group(v4[2]!, v4[3]!)}`)
  }
  const halves = text.split("::")
  if (halves.length > 2) return undefined
  const groups = (half: string | undefined) => (half === undefined || half === "" ? [] : half.split(":"))
  const [left, right] = [groups(halves[0]), groups(halves[1])]
  const missing = 8 - left.length - right.length
  if (halves.length === 1 ? missing !== 0 : missing < 1) return undefined
  const all = [...left, ...Array.from({ length: halves.length === 2 ? missing : 0 }, () => "0"), ...right]
  if (!all.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return undefined
  return all.flatMap((group) => [parseInt(group, 16) >> 8, parseInt(group, 16) & 0xff])
}

interface Range {
  readonly base: ReadonlyArray<number>
  readonly length: number
}

/** The base and the number of fixed bits of `address/bits`, or of one address; undefined for any other text. */
const parseRange = (range: string): Range | undefined => {
  const [, text = "", bits] = /^([^/]*)(?:\/(0|[1-9]\d{0,2}))?$/.exec(range) ?? []
  const base = parseAddress(text)
  if (base === undefined) return undefined
  const length = bits === undefined ? base.length * 8 : Number(bits)
  return length > base.length * 8 ? undefined : { base, length }
}

export const isRange = (range: string): boolean => parseRange(range) !== undefined

/** Whether an address lies in a range `address/bits`, or is the address itself. */
export const inRange = (address: string, range: string): boolean => {
  const a = parseAddress(address)
  const { base: b, length } = parseRange(range) ?? { base: [], length: 0 }
  if (a === undefined || a.length !== b.length) return false
  for (let bit = 0; bit < length; bit += 8) {
    const mask = length - bit >= 8 ? 0xff : (0xff << (8 - (length - bit))) & 0xff
    if ((a[bit / 8]! & mask) !== (b[bit / 8]! & mask)) return false
  }
  return true
}
