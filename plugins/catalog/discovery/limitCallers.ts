// The rate limit of the public routes, for callers without a key. It does not apply to callers with a key or on this
// machine. A caller is an address, read from the headers that the settings trust.
import { Effect, Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { Authentication } from "../../../kernel/http/Authentication.ts"
import { makeRateLimit } from "../../../kernel/http/RateLimit.ts"

/** Seconds that a request must wait, 0 if it may pass; a rate of 0 means unlimited. */
export const limitCallers = (perSecond: number) =>
  Effect.map(Authentication, (callers) => {
    const takeToken = makeRateLimit(perSecond)
    return (request: HttpServerRequest.HttpServerRequest): Effect.Effect<number> => {
      const isKnown = Option.exists(callers.authenticate(request), ({ keyed }) => keyed)
      return isKnown || callers.isLocal(request) ? Effect.succeed(0) : takeToken(callers.sourceOf(request))
    }
  })
