// Answers that do not depend on the caller: rendered once for each content and shared by all callers. The entity tag
// lets a client that has the content receive a 304.
import { Base64Url } from "effect/encoding"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import type { Crypto } from "../platform/Crypto.ts"

const encoder = new TextEncoder()

/** The entity tag of a body. */
export const entityTag = (crypto: Crypto["Service"], bytes: Uint8Array): string =>
  `"${Base64Url.encode(crypto.sha256(bytes).slice(0, 16))}"`

/** Whether the client has the body of this entity tag, by its request headers. */
export const hasTag = ({ headers }: HttpServerRequest.HttpServerRequest, etag: string): boolean =>
  (headers["if-none-match"] ?? "").split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag)

export interface RenderedAs {
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
