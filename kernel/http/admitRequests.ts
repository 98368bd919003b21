// Admission of requests by their declared cost, in points (`RouteCost.ts`). Each caller has one budget for all routes:
// a key by its label, any other caller by its address. A request is charged its route's worst cost; unused time and
// bytes are returned. The process also limits the points in progress, which grow when it is slow: beyond the limit the
// costliest requests are refused first. Payments have their own rates (`limits.*_per_second`) and are never refused
// here; probes and operators are refused only above their own budget.
//
// Wrong bearer keys are limited by address before anything else. A listed key is never counted as a guess.
import { Effect, Exit, Option } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import { monotonicMillis } from "../time/monotonicMillis.ts"
import type { Authentication } from "./Authentication.ts"
import { errorBody, json, pathOf } from "./httpMiddleware.ts"
import { makeRateLimit } from "./RateLimit.ts"
import { pointsOf, type RouteCost } from "./RouteCost.ts"
import type { DeclaredRules } from "./RouteRules.ts"

/** Points of all requests in progress. */
const inProgressMax = 4_000

/** A request is admitted while this many times its cost is free, so that a cheap one is admitted for longer. */
const freeTimes = 4

const unrouted: RouteCost = { cpuMillis: 1, bytesOut: 1_024 }

/** The cost of an answered request: the declared one, less the time and the bytes that it did not take; at least 1. */
const spentOf = (cost: RouteCost, millis: number, body: HttpServerResponse.HttpServerResponse["body"] | undefined) => {
  const bytesOut = body?._tag === "Stream" ? cost.bytesOut : body?._tag === "Uint8Array" ? body.contentLength : 0
  const cpuMillis = Math.min(cost.cpuMillis, millis)
  return Math.max(1, pointsOf({ ...cost, cpuMillis, bytesOut: Math.min(cost.bytesOut, bytesOut) }))
}

/** Wraps the router's handler. A rate of 0 points a second limits no caller. */
export const makeAdmitRequests = (
  callers: Authentication["Service"],
  routes: DeclaredRules,
  pointsPerSecond: number
) => {
  const take = makeRateLimit(pointsPerSecond)
  let inProgress = 0

  const sourceOf = (request: HttpServerRequest.HttpServerRequest): string =>
    Option.match(callers.reader(request), { onSome: ({ source }) => source, onNone: () => callers.sourceOf(request) })

  const refused = (path: string, status: 429 | 503, message: string, wait: number) =>
    json(errorBody(path, status === 429 ? "rate_limited" : "overloaded", message), {
      status,
      headers: { "retry-after": String(wait), "access-control-allow-origin": "*" }
    })

  return <E, R>(handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) => {
    const counted = (points: number) =>
      Effect.suspend(() => {
        inProgress += points
        return Effect.onExit(handler, () => Effect.sync(() => void (inProgress -= points)))
      })

    const charged = Effect.fnUntraced(function* (source: string, cost: RouteCost, path: string) {
      const points = pointsOf(cost)
      const held = Math.min(points, pointsPerSecond * 2)
      const wait = yield* take(source, held)
      if (wait > 0) return refused(path, 429, "too many points: server.points_per_second", wait)
      const from = yield* monotonicMillis
      return yield* Effect.onExit(counted(points), (exit) =>
        Effect.flatMap(monotonicMillis, (now) => {
          const body = Exit.isSuccess(exit) ? exit.value.body : undefined
          return take(source, Math.min(0, spentOf(cost, now - from, body) - held))
        })
      )
    })

    return Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const path = pathOf(request.url)
      const guessWait = yield* callers.keyWait(request)
      if (guessWait > 0) return refused(path, 429, "too many unlisted bearer keys from this address", guessWait)
      const rules = routes.of(request.method, path)
      const cost = rules?.cost ?? unrouted
      const points = pointsOf(cost)
      if (rules?.isPayment === true) return yield* handler
      const isShed = rules?.isProbe !== true && rules?.callers !== "operators"
      if (isShed && inProgress + points * freeTimes > inProgressMax)
        return refused(path, 503, "busy: costly requests are refused first", 1)
      const isFree = pointsPerSecond === 0 || callers.isLocal(request)
      return isFree ? yield* counted(points) : yield* charged(sourceOf(request), cost, path)
    })
  }
}
