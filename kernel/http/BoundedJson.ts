// JSON from strangers, bounded before it is decoded: bytes, depth, number of values; no duplicate keys and none that
// JavaScript treats specially; strict UTF-8. One scan over the text, then the platform's own parser. A fault says what
// is wrong and at which character, never what was sent.
import { Data, Effect, Result } from "effect"

export interface JsonBounds {
  readonly depthMax: number
  /** Objects, arrays, keys and scalars together. */
  readonly valuesMax: number
}

export const defaultBounds: JsonBounds = { depthMax: 32, valuesMax: 20_000 }

/** The text is not JSON within the bounds. */
export class JsonFault extends Data.TaggedError("JsonFault")<{ readonly message: string }> {}

const forbiddenKeys = new Set(["__proto__", "constructor", "prototype"])

const fail = (message: string) => Result.fail(new JsonFault({ message }))

/** Finds the end of the string that begins at `at` (its opening quote); -1 when it does not end. */
const stringEnd = (text: string, at: number): number => {
  for (let i = at + 1; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x5c) i += 1
    else if (code === 0x22) return i
  }
  return -1
}

const keyOf = (text: string, from: number, to: number): string | undefined => {
  try {
    return JSON.parse(text.slice(from, to + 1)) as string
  } catch {
    return undefined
  }
}

/** Checks depth, counts and keys without building anything. Grammar is left to the parser that follows. */
const scan = (text: string, bounds: JsonBounds): Result.Result<void, JsonFault> => {
  /** One entry an open container: the keys seen of an object, or nothing of an array. */
  const open: Array<Set<string> | undefined> = []
  let values = 0
  let expectKey = false
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 0x7b: // {
      case 0x5b: {
        // [
        const isObject = text.charCodeAt(i) === 0x7b
        open.push(isObject ? new Set() : undefined)
        expectKey = isObject
        values += 1
        if (open.length > bounds.depthMax) return fail(`nested deeper than ${bounds.depthMax} levels at character ${i}`)
        break
      }
      case 0x7d: // }
      case 0x5d: // ]
        open.pop()
        expectKey = false
        break
      case 0x2c: // ,
        values += 1
        expectKey = open.at(-1) !== undefined
        break
      case 0x22: {
        // "
        const end = stringEnd(text, i)
        if (end < 0) return fail(`a string that does not end, from character ${i}`)
        const keys = open.at(-1)
        if (expectKey && keys !== undefined) {
          const key = keyOf(text, i, end)
          if (key === undefined) return fail(`a key that is not a string at character ${i}`)
          if (forbiddenKeys.has(key)) return fail(`a forbidden key at character ${i}`)
          if (keys.has(key)) return fail(`a key that stands twice at character ${i}`)
          keys.add(key)
          values += 1
          expectKey = false
        }
        i = end
        break
      }
    }
    if (values > bounds.valuesMax) return fail(`more than ${bounds.valuesMax} values`)
  }
  return Result.succeed(undefined)
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Parses bytes within the bounds. */
export const parseJson = (bytes: Uint8Array, bounds: JsonBounds = defaultBounds): Effect.Effect<unknown, JsonFault> =>
  Effect.suspend(() => {
    let text: string
    try {
      text = utf8.decode(bytes)
    } catch {
      return Effect.fail(new JsonFault({ message: "the body is not UTF-8" }))
    }
    if (text.trim() === "") return Effect.fail(new JsonFault({ message: "the body is empty" }))
    const scanned = scan(text, bounds)
    if (Result.isFailure(scanned)) return Effect.fail(scanned.failure)
    try {
      return Effect.succeed(JSON.parse(text) as unknown)
    } catch {
      return Effect.fail(new JsonFault({ message: "the body is not JSON" }))
    }
  })
