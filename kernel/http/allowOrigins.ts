// CORS for the pages in the settings (`server.allowed_origins`, of a tool server `http.allowed_origins`). Their
// preflights are answered, and they may read the answers of every route, except routes that are declared only for this
// listener's own pages. Browser credentials are not allowed: such a page sends a bearer key or nothing. Requests of any
// other page pass unchanged; `hostValidation.ts` decides about them. Pure except for the wrapper.
import { Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { pathOf } from "./httpMiddleware.ts"
import type { DeclaredRules } from "./RouteRules.ts"

/** How long a browser keeps the answer to a preflight, seconds. */
const preflightSeconds = 600

const headers = "authorization, content-type, idempotency-key, last-event-id, traceparent, if-none-match, accept"
const mcp = "mcp-session-id, mcp-protocol-version, mcp-method, mcp-name"
const allowed = {
  "access-control-allow-methods": "GET, HEAD, POST, DELETE, OPTIONS",
  "access-control-allow-headers": `${headers}, ${mcp}`,
  "access-control-max-age": String(preflightSeconds)
}
const exposed = { "access-control-expose-headers": "extension-responses, retry-after, etag, mcp-session-id" }

type Headers = Readonly<Record<string, string | undefined>>

/**
 * The headers of an answer to this page; undefined if the settings do not name the page, or the route is not open to
 * it.
 */
const corsOf = (
  { headers, method, url }: HttpServerRequest.HttpServerRequest,
  origins: ReadonlyArray<string>,
  routes: DeclaredRules
) => {
  const origin = headers["origin"]
  if (origin === undefined || !origins.includes(origin.toLowerCase())) return undefined
  const asked = method === "OPTIONS" ? (headers["access-control-request-method"] ?? method) : method
  return routes.of(asked, pathOf(url))?.cors === "own"
    ? undefined
    : { "access-control-allow-origin": origin, vary: "origin" }
}

/** The answer to a preflight; it depends neither on a key nor on the route. */
const preflightOf = (headers: Headers, cors: Readonly<Record<string, string>>) =>
  HttpServerResponse.empty({
    status: 204,
    headers: {
      ...cors,
      ...allowed,
      // Chromium sends this before a public page reaches a private address.
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
  (origins: ReadonlyArray<string>, routes: DeclaredRules) =>
  <E, R>(handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
    origins.length === 0
      ? handler
      : Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
          const cors = corsOf(request, origins, routes)
          if (cors === undefined) return handler
          return request.method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined
            ? Effect.succeed(preflightOf(request.headers, cors))
            : Effect.map(handler, (response) => merged(response, cors))
        })
