// Untrusted JSON, bounded before it is decoded: bytes, depth, number of values; no duplicate keys, no `__proto__`;
// strict UTF-8. One scan over the text, then the platform's own parser. An issue reports the error and its character
// position, never the content. If a reader names an object with independent members (`parseJsonWithMembers`), an issue
// inside one of them drops only that member.
import { Data, Effect, Result } from "effect"

interface JsonBounds {
  readonly depthMax: number
  /** Objects, arrays, keys and scalars together. */
  readonly valuesMax: number
  /** `any`: the keys are free, because the content is passed on unread; the last of a duplicate key counts. */
  readonly keys?: "any"
}

const defaultBounds: JsonBounds = { depthMax: 32, valuesMax: 20_000 }

/** The text is not JSON within the bounds. */
export class JsonParseError extends Data.TaggedClass("JsonParseError")<{ readonly message: string }> {}

const notJson = "the body is not JSON"

/** Finds the end of the string that begins at `at` (its opening quote); -1 if it does not end. */
const stringEnd = (text: string, at: number): number => {
  for (let i = at + 1; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x5c) i += 1
    else if (code === 0x22) return i
  }
  return -1
}

/** A string without escapes and without characters that JSON refuses: its source text is its value. */
const isVerbatim = (text: string): boolean => {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 0x20 || code === 0x5c) return false
  }
  return true
}

const keyOf = (text: string, from: number, to: number): string | undefined => {
  const inner = text.slice(from + 1, to)
  if (isVerbatim(inner)) return inner
  try {
    return JSON.parse(text.slice(from, to + 1)) as string
  } catch {
    return undefined
  }
}

/** An open object or array: the keys seen so far; undefined for an array or if keys do not matter. */
interface Container {
  readonly keys: Set<string> | undefined
  key: string | undefined
}

/** An independent member: from its key to the character that ends it. */
interface Member {
  readonly name: string
  readonly from: number
  to: number
  issue: string | undefined
}

/** Checks depth, counts and keys in one pass, without building anything. The parser that follows checks the grammar. */
class Scan {
  readonly members: Array<Member> = []
  readonly #text: string
  readonly #bounds: JsonBounds
  readonly #path: ReadonlyArray<string> | undefined
  readonly #open: Array<Container> = []
  /** How many containers are open directly inside the object of members; 0 outside of it. */
  #holderDepth = 0
  #member: Member | undefined
  #expectKey = false
  #values = 0
  #memberValues = 0
  #keptValues = 0

  constructor(text: string, bounds: JsonBounds, path: ReadonlyArray<string> | undefined) {
    this.#text = text
    this.#bounds = bounds
    this.#path = path
  }

  /** The first issue that refuses the whole text. */
  run(): string | undefined {
    const text = this.#text
    for (let i = 0; i < text.length; i++) {
      let issue: string | undefined
      switch (text.charCodeAt(i)) {
        case 0x7b: // {
        case 0x5b: // [
          issue = this.#begin(i, text.charCodeAt(i) === 0x7b)
          break
        case 0x7d: // }
        case 0x5d: // ]
          this.#end(i)
          break
        case 0x2c: // ,
          issue = this.#next(i)
          break
        case 0x22: {
          // "
          const end = stringEnd(text, i)
          if (end < 0) return `a string that does not end, from character ${i}`
          if (this.#expectKey) issue = this.#named(i, end)
          i = end
          break
        }
      }
      if (issue !== undefined) return issue
    }
    // The input ends too early. The parser would report it too, but by an error with a stack.
    return this.#open.length > 0 ? notJson : undefined
  }

  /** Records an issue of the independent member around it, if there is one; else returns it, for the whole text. */
  #report(message: string): string | undefined {
    if (this.#member === undefined) return message
    this.#member.issue ??= message
    return undefined
  }

  #count(): string | undefined {
    const { valuesMax } = this.#bounds
    if (this.#holderDepth === 0) return ++this.#values > valuesMax ? `more than ${valuesMax} values` : undefined
    // Between two members no member can be dropped; the next one is dropped.
    if (++this.#memberValues > valuesMax && this.#member !== undefined)
      this.#member.issue ??= `more than ${valuesMax} values`
    return undefined
  }

  #begin(at: number, isObject: boolean): string | undefined {
    const isHolder = isObject && this.#holderDepth === 0 && this.#isAtPath()
    const problem = this.#count()
    const isRead = isObject && this.#bounds.keys !== "any" && this.#member?.issue === undefined
    this.#open.push({ keys: isRead ? new Set() : undefined, key: undefined })
    this.#expectKey = isObject
    if (isHolder) this.#holderDepth = this.#open.length
    if (problem !== undefined || this.#open.length <= this.#bounds.depthMax) return problem
    return this.#report(`nested deeper than ${this.#bounds.depthMax} levels at character ${at}`)
  }

  #isAtPath(): boolean {
    const path = this.#path
    return path !== undefined && path.length === this.#open.length && path.every((key, i) => this.#open[i]?.key === key)
  }

  #end(at: number): void {
    if (this.#open.length === this.#holderDepth) {
      this.#endMember(at)
      this.#holderDepth = 0
    }
    this.#open.pop()
    this.#expectKey = false
  }

  #next(at: number): string | undefined {
    if (this.#open.length === this.#holderDepth) this.#endMember(at)
    this.#expectKey = this.#open.at(-1)?.keys !== undefined
    return this.#count()
  }

  #endMember(at: number): void {
    if (this.#member === undefined) return
    this.#member.to = at
    // A dropped member does not use up the count of the others.
    if (this.#member.issue === undefined) this.#keptValues = this.#memberValues
    else this.#memberValues = this.#keptValues
    this.#member = undefined
  }

  #named(from: number, to: number): string | undefined {
    this.#expectKey = false
    const container = this.#open.at(-1)
    if (container?.keys === undefined) return undefined
    const key = keyOf(this.#text, from, to)
    if (key !== undefined && this.#open.length === this.#holderDepth) {
      this.#member = { name: key, from, to: this.#text.length, issue: undefined }
      this.members.push(this.#member)
    }
    const tooMany = this.#count()
    if (tooMany !== undefined) return tooMany
    if (key === undefined) return this.#report(`a key that is not a string at character ${from}`)
    if (key === "__proto__") return this.#report(`a forbidden key at character ${from}`)
    if (container.keys.has(key)) return this.#report(`duplicate key at character ${from}`)
    container.keys.add(key)
    container.key = key
    return undefined
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const fail = (message: string) => Result.fail(new JsonParseError({ message }))

interface JsonWithMembers {
  readonly value: unknown
  /** Members that were dropped, by name as sent. */
  readonly dropped: ReadonlySet<string>
}

/** Blanks out faulty members: each becomes an empty name without content. */
const withoutFaulty = (text: string, members: ReadonlyArray<Member>, dropped: ReadonlySet<string>): string => {
  if (dropped.size === 0) return text
  let kept = ""
  let at = 0
  for (const { from, name, to } of members) {
    if (!dropped.has(name)) continue
    kept += `${text.slice(at, from)}"":null`
    at = to
  }
  return kept + text.slice(at)
}

const parse = (
  bytes: Uint8Array,
  bounds: JsonBounds,
  path: ReadonlyArray<string> | undefined
): Result.Result<JsonWithMembers, JsonParseError> => {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    return fail("the body is not UTF-8")
  }
  if (text.trim() === "") return fail("the body is empty")
  const scan = new Scan(text, bounds, path)
  const issue = scan.run()
  if (issue !== undefined) return fail(issue)
  const dropped = new Set(scan.members.flatMap(({ issue, name }) => (issue === undefined ? [] : [name])))
  try {
    return Result.succeed({ value: JSON.parse(withoutFaulty(text, scan.members, dropped)) as unknown, dropped })
  } catch {
    return fail(notJson)
  }
}

/** Parses bytes within the bounds, synchronously. */
export const readJson = (
  bytes: Uint8Array,
  bounds: JsonBounds = defaultBounds
): Result.Result<unknown, JsonParseError> => Result.map(parse(bytes, bounds, undefined), ({ value }) => value)

export const parseJson = (
  bytes: Uint8Array,
  bounds: JsonBounds = defaultBounds
): Effect.Effect<unknown, JsonParseError> =>
  Effect.suspend(() => Effect.map(Effect.fromResult(parse(bytes, bounds, undefined)), ({ value }) => value))

/**
 * Parses bytes within the bounds. The object at `path` has independent members: an issue inside one, or in its name,
 * drops it. The values of all members are counted separately from the rest.
 */
export const parseJsonWithMembers = (
  bytes: Uint8Array,
  path: ReadonlyArray<string>,
  bounds: JsonBounds = defaultBounds
): Effect.Effect<JsonWithMembers, JsonParseError> => Effect.suspend(() => Effect.fromResult(parse(bytes, bounds, path)))
