// Bounds the rate of wrong bearer keys from one address, on every route, as in the pages' sign-in: beyond it a wrong
// key is answered 429. A listed key is never counted or refused.
import { Effect } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import type { Authentication } from "./Authentication.ts"
import { errorBody, json } from "./httpMiddleware.ts"

/** Wraps the router's handler. */
export const slowWrongKeys =
  ({ keyWait }: Authentication["Service"]) =>
  <E, R>(handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      Effect.flatMap(keyWait(request), (wait) =>
        wait === 0
          ? handler
          : Effect.succeed(
              json(
                errorBody(
                  request.url.split("?", 1)[0]!,
                  "rate_limited",
                  "too many unlisted bearer keys from this address"
                ),
                { status: 429, headers: { "retry-after": String(wait) } }
              )
            )
      )
    )
