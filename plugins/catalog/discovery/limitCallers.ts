// How often one caller without a key may ask the public routes. A key is somebody known, and this machine itself is
// nobody else: neither has a limit. A caller is an address, as the settings say who is believed about it.
import { Effect, Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { Authentication } from "../../../kernel/http/Authentication.ts"
import { makeRateLimit } from "../../../kernel/http/RateLimit.ts"

/** Seconds that a request must wait, 0 when it may pass; a rate of 0 is no limit. */
export const limitCallers = (perSecond: number) =>
  Effect.map(Authentication, (callers) => {
    const takeToken = makeRateLimit(perSecond)
    return (request: HttpServerRequest.HttpServerRequest): Effect.Effect<number> => {
      const isKnown = Option.exists(callers.authenticate(request), ({ keyed }) => keyed)
      return isKnown || callers.isLocal(request) ? Effect.succeed(0) : takeToken(callers.sourceOf(request))
    }
  })
