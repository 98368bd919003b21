// The outermost wrapper of every request: it turns a result that no route answered into JSON. An unknown path is 404, a
// defect is 500 with the trace id of its log entry and no other detail, and on the two payment routes both have the
// payment's shape. It also writes the access log, one structured line per request with its request id, and one span if
// spans are exported: the root of a trace, or a child of the caller's span. A probe that succeeds writes no line. Lines
// and spans contain no bodies, no queries and no caller addresses; the line of a payment names payer, reason, hash and
// settlement (`RequestNotes.ts`).
import { Cause, Clock, Context, Effect, Exit, type Fiber, Option, Random, Tracer } from "effect"
import { HttpServerError, HttpServerRequest, HttpServerResponse, HttpTraceContext } from "effect/http"
import { memoize } from "../cache/memoize.ts"
import { isTracing } from "../effect/withSpanIfSampled.ts"
import { measureUnsafe } from "../telemetry/Measure.ts"
import { traffic } from "../telemetry/metrics.ts"
import { RequestNotes } from "./RequestNotes.ts"
import type { DeclaredRules } from "./RouteRules.ts"
import { checkHostAndOrigin, type PageRules } from "./hostValidation.ts"

const headers = { "x-content-type-options": "nosniff", "cache-control": "no-store" }

/** A JSON answer with the headers of every answer. */
export const json = (
  body: unknown,
  options: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {}
) => HttpServerResponse.jsonUnsafe(body, { status: options.status ?? 200, headers: { ...headers, ...options.headers } })

/** The shape of an error on a path: payment routes keep their shape. */
export const errorBody = (path: string, word: string, message: string): Record<string, unknown> => {
  switch (path) {
    case "/verify":
      return { isValid: false, invalidReason: word, invalidMessage: message }
    case "/settle":
      return { success: false, transaction: "", network: "", errorReason: word, errorMessage: message }
    default:
      return { error: word, message }
  }
}

/** Capacity of the cache of paths by URL: most requests use one of a few. */
const urlsMax = 256

/** A path in the router's form: without the query, without duplicate or trailing slashes. */
export const pathOf = memoize({ name: "url-paths", capacity: urlsMax }, (url): string =>
  (url.split("?", 1)[0] ?? url).replace(/\/{2,}/g, "/").replace(/(.)\/$/, "$1")
)

const isRouteNotFound = (error: unknown): boolean =>
  HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound"

/** The label of a path without a route. */
const unlabelled = { label: "other", isProbe: false }

const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
const methodOf = (method: string): string => (methods.has(method) ? method : "_OTHER")

type Request = HttpServerRequest.HttpServerRequest
type AnyFiber = Fiber.Fiber<unknown, unknown>
type Answering<E, R> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>

/** Ids for requests without a trace: a random half for the process, and a counter. */
const makeUntracedIds = () => {
  let half = ""
  let count = 0
  const word = (fiber: AnyFiber) =>
    Math.floor(fiber.getRef(Random.Random).nextDoubleUnsafe() * 0x1_0000_0000)
      .toString(16)
      .padStart(8, "0")
  return (fiber: AnyFiber): string => {
    if (half === "") half = word(fiber) + word(fiber)
    count += 1
    return half + count.toString(16).padStart(16, "0")
  }
}

/** The caller's place in a trace, in any of the three existing spellings. */
const callerOf = (headers: Request["headers"]) =>
  headers["traceparent"] === undefined && headers["b3"] === undefined && headers["x-b3-traceid"] === undefined
    ? undefined
    : Option.getOrUndefined(HttpTraceContext.fromHeaders(headers))

/** The handler; its steps are children of the span. */
const within = <E, R>(handler: Answering<E, R>, span: Tracer.AnySpan): Answering<E, R> =>
  Effect.provideService(handler, Tracer.ParentSpan, span)

/** Nanoseconds since the epoch, the unit of spans. */
const nanosOf = (fiber: AnyFiber) => fiber.getRef(Clock.Clock).currentTimeNanosUnsafe()

/**
 * A span by method and route, below the caller's span if the caller sent one. It wraps the error handler, because error
 * texts may quote a path. A span that is not exported is never ended and gets no attributes, and neither do the steps
 * below it. If no spans are made, only the caller's span is used.
 */
const traced = <E, R>(request: Request, route: string, fiber: AnyFiber, handler: Answering<E, R>) => {
  const caller = callerOf(request.headers)
  if (!isTracing(fiber)) return caller === undefined ? handler : within(handler, caller)
  const method = methodOf(request.method)
  const span = fiber.cache.tracer!.span({
    name: `${method} ${route}`,
    kind: "server",
    root: caller === undefined,
    parent: Option.fromUndefinedOr(caller),
    sampled: true,
    annotations: Context.empty(),
    links: [],
    startTime: nanosOf(fiber)
  })
  if (!span.sampled) return within(handler, span)
  span.attribute("http.request.method", method)
  span.attribute("http.route", route)
  return Effect.onExit(within(handler, span), (exit) =>
    Effect.sync(() => {
      if (Exit.isSuccess(exit)) span.attribute("http.response.status_code", exit.value.status)
      span.end(nanosOf(fiber), exit)
    })
  )
}

/** Routes that any page may read or link to. */
const isPublic = (routes: DeclaredRules, method: string, path: string): boolean =>
  ["GET", "HEAD", "OPTIONS"].includes(method) && (routes.of(method, path)?.exposure ?? "guarded") !== "guarded"

/**
 * A path that the router would read as another path: with `;` or `#`, which it reads as the path's end, with an encoded
 * character that needs no encoding, or without a slash at its beginning. Such a target is an absolute URL with an
 * invalid host: the router drops the host, so the route would answer without its rules and its cost. A proxy in front
 * compares its rules with paths as written.
 */
const misspelled = /^[^/]|[;#]|%(?:2[de]|3\d|[46][1-9a-f]|[57][0-9a]|5f|7e)/i

/** Longest URL, in characters: the router and the routes read the whole query of each request. */
const urlLengthMax = 16_384

/** Refuses requests of foreign pages, and targets in an unusual form, before the router sees them. */
export const withinCapacity =
  (rules: PageRules, routes: DeclaredRules) =>
  <E, R>(handler: Answering<E, R>) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
      const path = pathOf(request.url)
      if (request.url.length > urlLengthMax)
        return Effect.succeed(json(errorBody(path, "uri_too_long", "the URL is too long"), { status: 414 }))
      if (misspelled.test(path))
        return Effect.succeed(json(errorBody(path, "not_found", "a path in an unusual spelling"), { status: 404 }))
      const refusal = checkHostAndOrigin(rules, request.headers, () => isPublic(routes, request.method, path))
      return refusal === undefined
        ? handler
        : Effect.succeed(json(errorBody(path, refusal.reason, refusal.message), { status: 403 }))
    })

const answerError = Effect.fnUntraced(function* (
  cause: Cause.Cause<unknown>,
  { method, path, traceId }: { readonly method: string; readonly path: string; readonly traceId: string }
) {
  // The request's own interruption passes through, when a client hangs up; any other is an error.
  if (Cause.hasInterruptsOnly(cause)) yield* Effect.interruptible(Effect.void)
  if (isRouteNotFound(Cause.squash(cause)))
    return json(errorBody(path, "not_found", `there is no ${method} ${path.slice(0, 200)}`), { status: 404 })
  yield* Effect.logError("a request died", cause).pipe(Effect.annotateLogs({ traceId, path }))
  const error = errorBody(path, "internal_error", "internal error; the operator finds it in the log by this trace id")
  return json({ ...error, traceId }, { status: 500 })
})

export const httpMiddleware = <E, R>(handler: Answering<E, R>, routes: DeclaredRules) => {
  const untracedId = makeUntracedIds()
  /** Routes with an exported error count of 0, so that an alert sees the first error. */
  const counted = new Set<string>()
  const watched = (request: Request, fiber: AnyFiber) => {
    const { method } = request
    const path = pathOf(request.url)
    const { isProbe, label: route } = routes.labelled(path) ?? unlabelled
    const clock = fiber.getRef(Clock.Clock)
    const startedAt = clock.monotonicTimeNanosUnsafe()
    const notes: Record<string, string> = {}
    let named: string | undefined
    const traceIdIn = (within: AnyFiber) => (named ??= within.cache.span?.traceId ?? untracedId(within))
    const answered = handler.pipe(
      Effect.catchCause((cause) =>
        Effect.withFiber((within) => answerError(cause, { method, path, traceId: traceIdIn(within) }))
      ),
      Effect.tap(({ status }) =>
        Effect.withFiber((within) => {
          const milliseconds = Number((clock.monotonicTimeNanosUnsafe() - startedAt) / 1_000_000n)
          if (!counted.has(route)) {
            counted.add(route)
            measureUnsafe(within, traffic.requests, 0, { route, status: "500" })
          }
          measureUnsafe(within, traffic.requests, 1, { route, status: String(status) })
          measureUnsafe(within, traffic.requestSeconds, milliseconds / 1_000, { route })
          if (isProbe && status < 400) return Effect.void
          return Effect.logInfo("request").pipe(
            Effect.annotateLogs({
              method,
              path: path.slice(0, 200),
              status,
              milliseconds,
              traceId: traceIdIn(within),
              ...notes
            })
          )
        })
      ),
      Effect.provideService(RequestNotes, notes)
    )
    return traced(request, route, fiber, answered)
  }
  return Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    Effect.withFiber((fiber) => watched(request, fiber))
  )
}

const challenge = { "www-authenticate": "Bearer" }

/** 401 without a listed key. */
export const unauthorized = json({ error: "unauthorized" }, { status: 401, headers: challenge })

/** 401 on a route for operators. */
export const operatorRequired = json(
  { error: "unauthorized", message: "an operator's key is required" },
  { status: 401, headers: challenge }
)

/** 503 while the database does not answer. */
export const temporarilyUnavailable = json(
  { error: "temporarily_unavailable" },
  { status: 503, headers: { "retry-after": "1" } }
)
