// Answers that do not depend on the caller: rendered once for each content and shared by all callers. The entity tag
// lets a client that has the content receive a 304.
import { Effect } from "effect"
import { Base64Url } from "effect/encoding"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { Crypto } from "../platform/Crypto.ts"

const encoder = new TextEncoder()

export const entityTag = (crypto: Crypto["Service"], bytes: Uint8Array): string =>
  `"${Base64Url.encode(crypto.sha256(bytes).slice(0, 16))}"`

/** Whether the client has the body of this entity tag, by its request headers. The tag has its quotes. */
export const hasTag = ({ headers }: HttpServerRequest.HttpServerRequest, etag: string): boolean =>
  (headers["if-none-match"] ?? "").includes(etag)

export const gzip = (bytes: Uint8Array<ArrayBuffer>): Effect.Effect<Uint8Array<ArrayBuffer>> =>
  Effect.promise(async () => {
    const compressed = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"))
    return new Uint8Array(await new Response(compressed).arrayBuffer())
  })

/** Whether the client takes a compressed body. */
export const takesGzip = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  /(^|,)\s*gzip\s*(,|$)/.test(headers["accept-encoding"] ?? "")

interface RenderedAs {
  readonly contentType: string
  /** Headers of the answer and of a 304, including `cache-control`. */
  readonly headers: Readonly<Record<string, string>>
}

/** Answers with a text. The last one is kept as bytes, so that all answers in flight share them. */
export const makeRendered = (crypto: Crypto["Service"], { contentType, headers }: RenderedAs) => {
  let last: { readonly text: string; readonly bytes: Uint8Array; readonly etag: string } | undefined
  return (request: HttpServerRequest.HttpServerRequest, text: string): HttpServerResponse.HttpServerResponse => {
    if (last?.text !== text) {
      const bytes = encoder.encode(text)
      last = { text, bytes, etag: entityTag(crypto, bytes) }
    }
    const { bytes, etag } = last
    const all = { "x-content-type-options": "nosniff", ...headers, etag }
    return hasTag(request, etag)
      ? HttpServerResponse.empty({ status: 304, headers: all })
      : HttpServerResponse.uint8Array(bytes, { contentType, headers: all })
  }
}

/** The same for a text that is worth compressing and hardly ever changes. */
export const makeCompressed = (crypto: Crypto["Service"], as: RenderedAs) => {
  const rendered = makeRendered(crypto, { ...as, headers: { ...as.headers, vary: "accept-encoding" } })
  let last: { readonly text: string; readonly bytes: Uint8Array } | undefined
  return Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, text: string) {
    const plain = rendered(request, text)
    if (plain.status === 304 || !takesGzip(request)) return plain
    if (last?.text !== text) last = { text, bytes: yield* gzip(encoder.encode(text)) }
    const headers = { ...plain.headers, "content-encoding": "gzip" }
    return HttpServerResponse.uint8Array(last.bytes, { contentType: as.contentType, headers })
  })
}
