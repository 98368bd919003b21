// Answers that are too long for a client, as resources in pages: `x402://answers/<id>?cursor=<n>`, each page with the
// address of the next one. They are in memory for a limited time and in bounded space; a repeated paid call makes its
// pages again. Only the caller of the answer can read its pages.
import { Context, Effect, Layer } from "effect"
import { Hex } from "effect/encoding"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Config } from "../Config.ts"

interface Page {
  readonly uri: string
  readonly text: string
  /** Address of the next page; undefined for the last. */
  readonly next: string | undefined
}

interface Kept {
  readonly principal: string
  readonly text: string
  readonly at: number
}

const scheme = "x402://answers/"
export const pageTemplate = `${scheme}{id}{?cursor}`

const encoder = new TextEncoder()

/** True if a text has more than `max` bytes as a JSON string, including its quotation marks. */
const isLongerEscaped = (text: string, max: number): boolean => encoder.encode(JSON.stringify(text)).length > max

/** The end of a page that begins at `from`: within the byte limit, and not inside a surrogate pair. */
const pageEnd = (text: string, from: number, bytesMax: number): number => {
  let [fits, above] = [from + 1, Math.min(text.length, from + bytesMax) + 1]
  while (above - fits > 1) {
    const middle = Math.floor((fits + above) / 2)
    if (isLongerEscaped(text.slice(from, middle), bytesMax)) above = middle
    else fits = middle
  }
  const isInPair = fits < text.length && (text.charCodeAt(fits) & 0xfc00) === 0xdc00
  return isInPair ? (fits - from > 1 ? fits - 1 : fits + 1) : fits
}

const uriOf = (id: string, cursor: number): string => `${scheme}${id}${cursor === 0 ? "" : `?cursor=${cursor}`}`

const readUri = (uri: string) => {
  const [, id, cursor = "0"] = /^x402:\/\/answers\/(\w{1,80})(?:\?cursor=(\d{1,10}))?$/.exec(uri) ?? []
  return id === undefined ? undefined : { id, cursor: Number(cursor) }
}

export class Pages extends Context.Service<
  Pages,
  {
    /**
     * Stores an answer and returns the address of its first page. `id` identifies the payment, so that its answer is
     * stored only once.
     */
    readonly put: (principal: string, text: string, id: string | undefined) => Effect.Effect<string>
    readonly read: (principal: string, uri: string) => Effect.Effect<Page | undefined>
  }
>()("tollkeeper/mcp-tools/Pages") {
  static readonly layer = Layer.effect(
    Pages,
    Effect.gen(function* () {
      const { answers } = yield* Config
      const { randomBytes } = yield* Crypto
      const kept = new Map<string, Kept>()
      /** Drops outdated answers, and while there are too many the oldest of the caller with the most. */
      const drop = (now: number) => {
        const sums = new Map<string, number>()
        const count = ({ principal, text }: Kept, sign: 1 | -1) =>
          sums.set(principal, (sums.get(principal) ?? 0) + sign * text.length)
        for (const [id, one] of kept)
          if (now - one.at > answers.pagesMillis) kept.delete(id)
          else count(one, 1)
        while ([...sums.values()].reduce((sum, length) => sum + length, 0) > answers.pagesLengthMax) {
          const [largest] = [...sums].toSorted(([, a], [, b]) => b - a)[0]!
          const [id, one] = [...kept].find(([, { principal }]) => principal === largest)!
          kept.delete(id)
          count(one, -1)
        }
      }
      const find = Effect.fnUntraced(function* (principal: string, id: string) {
        drop(yield* monotonicMillis)
        const own = kept.get(id)
        return own?.principal === principal ? own.text : undefined
      })
      return Pages.of({
        put: Effect.fnUntraced(function* (principal, text, known) {
          const now = yield* monotonicMillis
          const id = known ?? Hex.encode(randomBytes(16))
          kept.delete(id)
          kept.set(id, { principal, text, at: now })
          drop(now)
          return uriOf(id, 0)
        }),
        read: Effect.fnUntraced(function* (principal, uri) {
          const asked = readUri(uri)
          const text = asked === undefined ? undefined : yield* find(principal, asked.id)
          if (asked === undefined || text === undefined || asked.cursor >= text.length) return undefined
          const end = pageEnd(text, asked.cursor, answers.pageBytesMax)
          const next = end < text.length ? uriOf(asked.id, end) : undefined
          return { uri, text: text.slice(asked.cursor, end), next }
        })
      })
    })
  )
}
