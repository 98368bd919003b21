// How the public routes answer: JSON open to every origin, with an entity tag so that a client which has it already is
// answered 304; lists as CSV on request; errors in the discovery error body (S106, S110, S131, S132).
import { Effect, Option } from "effect"
import { HttpServerResponse, type HttpServerRequest } from "effect/http"
import { asksForCsv, csvOf, csvType } from "../../../kernel/http/csv.ts"
import { entityTag, hasTag } from "../../../kernel/http/rendered.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"

const encoder = new TextEncoder()

const open = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": "etag, retry-after",
  "x-content-type-options": "nosniff",
  vary: "accept, accept-encoding"
}

/** The answer to a CORS preflight. */
export const preflight = HttpServerResponse.empty({
  status: 204,
  headers: {
    ...open,
    "access-control-allow-methods": "GET, HEAD, OPTIONS",
    "access-control-allow-headers": "*, authorization, content-type, if-none-match",
    "access-control-max-age": "86400"
  }
})

const text = (body: string, status: number, headers: Readonly<Record<string, string>>) =>
  HttpServerResponse.text(body, { status, contentType: "application/json", headers: { ...open, ...headers } })

export const failure = (
  status: number,
  error: string,
  details: ReadonlyArray<string> = [],
  headers: Readonly<Record<string, string>> = {}
) =>
  text(JSON.stringify({ error, ...(details.length === 0 ? {} : { details }) }), status, {
    "cache-control": "no-store",
    ...headers
  })

/** A body that any cache may keep for a moment, or for some seconds. */
export const fresh = (
  crypto: Crypto["Service"],
  request: HttpServerRequest.HttpServerRequest,
  body: string,
  maxAgeSeconds = 0
) =>
  Effect.sync(() => {
    const table = asksForCsv(request) ? csvOf(JSON.parse(body)) : Option.none<string>()
    const bytes = encoder.encode(Option.getOrElse(table, () => body))
    const etag = entityTag(crypto, bytes)
    const headers = { etag, "cache-control": `public, max-age=${maxAgeSeconds}, must-revalidate` }
    return hasTag(request, etag)
      ? HttpServerResponse.empty({ status: 304, headers: { ...open, ...headers } })
      : HttpServerResponse.uint8Array(bytes, {
          status: 200,
          contentType: Option.isSome(table) ? csvType : "application/json",
          headers: { ...open, ...headers }
        })
  })
