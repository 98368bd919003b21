// CORS for the pages that `server.allowed_origins` names: their preflights are answered, and they may read the answers
// of every route but the dashboard's, which serve its own pages. No credentials of a browser are allowed along: such a
// page sends a bearer key or none. Any other page's requests pass unchanged, and what they may do is decided elsewhere
// (`hostValidation.ts`). Pure but for the wrapper.
import { Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"

/** How long a browser keeps the answer to a preflight, seconds. */
const preflightSeconds = 600

const allowed = {
  "access-control-allow-methods": "GET, HEAD, POST, OPTIONS",
  "access-control-allow-headers": "authorization, content-type, last-event-id, traceparent, if-none-match, accept",
  "access-control-max-age": String(preflightSeconds)
}
const exposed = { "access-control-expose-headers": "extension-responses, retry-after, etag" }

/** Whether pages of other origins may use a path at all: not the dashboard's, nor the page's own files. */
const isShared = (path: string): boolean => !/^\/dashboard(\/|$)/.test(path)

type Headers = Readonly<Record<string, string | undefined>>

/** The headers of an answer to this page; undefined when it is not one that is named. */
const corsOf = (headers: Headers, path: string, origins: ReadonlyArray<string>) => {
  const origin = headers["origin"]
  return origin !== undefined && isShared(path) && origins.includes(origin.toLowerCase())
    ? { "access-control-allow-origin": origin, vary: "origin" }
    : undefined
}

/** The answer to a preflight, which neither a key nor a route decides. */
const preflightOf = (headers: Headers, cors: Readonly<Record<string, string>>) =>
  HttpServerResponse.empty({
    status: 204,
    headers: {
      ...cors,
      ...allowed,
      // Chromium asks so before a public page reaches a private address.
      ...(headers["access-control-request-private-network"] === "true"
        ? { "access-control-allow-private-network": "true" }
        : {})
    }
  })

const merged = (response: HttpServerResponse.HttpServerResponse, cors: Readonly<Record<string, string>>) => {
  const vary = response.headers["vary"]
  return HttpServerResponse.setHeaders(response, {
    ...cors,
    ...exposed,
    vary: vary === undefined ? "origin" : `${vary}, origin`
  })
}

/** Wraps the router's handler; `origins` in lower case. */
export const allowOrigins =
  (origins: ReadonlyArray<string>) =>
  <E, R>(handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
    origins.length === 0
      ? handler
      : Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
          const cors = corsOf(request.headers, request.url.split("?", 1)[0]!, origins)
          if (cors === undefined) return handler
          return request.method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined
            ? Effect.succeed(preflightOf(request.headers, cors))
            : Effect.map(handler, (response) => merged(response, cors))
        })
