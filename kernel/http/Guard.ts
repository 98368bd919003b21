// The outermost wrapper of every request: what no route answered becomes JSON. An unknown path is 404, a defect is 500
// with a trace id that stands in the log and nothing else of the fault, and on the two payment routes both carry the
// payment's shape. It also writes one structured line and one span a request, the root of a trace unless the caller's
// own goes on here, without bodies, queries or the caller's address; the line of a payment names payer, reason, hash
// and settlement (`RequestNotes.ts`).
import { Cause, Clock, Effect, Option } from "effect"
import { HttpServerError, HttpServerRequest, HttpServerResponse, HttpTraceContext } from "effect/http"
import { measure } from "../telemetry/Measure.ts"
import { traffic } from "../telemetry/metrics.ts"
import { RequestNotes } from "./RequestNotes.ts"
import { type PageRules, refusalOf } from "./strangers.ts"

const headers = { "x-content-type-options": "nosniff", "cache-control": "no-store" }

/** A JSON answer with the headers every answer of the house carries. */
export const json = (
  body: unknown,
  options: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {}
) => HttpServerResponse.jsonUnsafe(body, { status: options.status ?? 200, headers: { ...headers, ...options.headers } })

/** The shape in which a fault is answered on a path: payment routes keep theirs. */
export const faultBody = (path: string, word: string, message: string): Record<string, unknown> => {
  switch (path) {
    case "/verify":
      return { isValid: false, invalidReason: word, invalidMessage: message }
    case "/settle":
      return { success: false, transaction: "", network: "", errorReason: word, errorMessage: message }
    default:
      return { error: word, message }
  }
}

/** A path as the router matches it: without the query, without slashes that stand twice or at the end. */
const pathOf = (url: string): string => (url.split("?", 1)[0] ?? url).replace(/\/{2,}/g, "/").replace(/(.)\/$/, "$1")

const isRouteNotFound = (error: unknown): boolean =>
  HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound"

/** Routes that are a label of their own; what a stranger may write into a path is not one. */
const known = new Set([
  "/",
  "/verify",
  "/settle",
  "/supported",
  "/settlements",
  "/settlements/events",
  "/health",
  "/health/live",
  "/health/ready",
  "/metrics",
  "/openapi.json"
])
const families = /^\/(discovery|catalog|analytics|dashboard|demo|docs|seller)(\/|$)/
const routeOf = (path: string): string =>
  known.has(path) ? path : (families.exec(path)?.[0].replace(/\/$/, "") ?? "other")

const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
const methodOf = (method: string): string => (methods.has(method) ? method : "_OTHER")

const measured = (path: string, status: number, milliseconds: number): Effect.Effect<void> => {
  const route = routeOf(path)
  return Effect.andThen(
    measure(traffic.requests, 1, { route, status: String(status) }),
    measure(traffic.requestSeconds, milliseconds / 1_000, { route })
  )
}

/**
 * A span by method and route, below the caller's own when it sent one. Around what becomes of faults, whose words may
 * quote a path.
 */
const traced =
  (request: HttpServerRequest.HttpServerRequest, path: string) =>
  <E, R>(handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) => {
    const route = routeOf(path)
    return handler.pipe(
      Effect.tap(({ status }) => Effect.annotateCurrentSpan("http.response.status_code", status)),
      Effect.withSpan(`${methodOf(request.method)} ${route}`, {
        kind: "server",
        ...Option.match(HttpTraceContext.fromHeaders(request.headers), {
          onNone: () => ({ root: true }),
          onSome: (parent) => ({ parent })
        }),
        attributes: { "http.request.method": methodOf(request.method), "http.route": route }
      })
    )
  }

/** What any page may read, or lead to by a link: it is public by the specification, or tells nothing. */
const isPublic = (method: string, path: string): boolean =>
  ["GET", "HEAD", "OPTIONS"].includes(method) &&
  /^\/(discovery\/.*|openapi\.json|health(\/.*)?|dashboard(\/(web|library)\/.*)?|seller|docs|)$/.test(path)

/** Refuses requests of strange pages before the router sees them. */
export const admitted =
  (rules: PageRules) =>
  <E, R>(handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
      const path = pathOf(request.url)
      const refusal = refusalOf(rules, request.headers, isPublic(request.method, path))
      return refusal === undefined
        ? handler
        : Effect.succeed(json(faultBody(path, refusal.word, refusal.message), { status: 403 }))
    })

/** What became of a fault, and the word of it in the log beside the trace. */
const answerFault = Effect.fnUntraced(function* (cause: Cause.Cause<unknown>, method: string, path: string) {
  if (Cause.hasInterruptsOnly(cause)) return yield* Effect.failCause(cause as Cause.Cause<never>)
  if (isRouteNotFound(Cause.squash(cause)))
    return json(faultBody(path, "not_found", `there is no ${method} ${path.slice(0, 200)}`), { status: 404 })
  const { traceId } = yield* Effect.orDie(Effect.currentSpan)
  yield* Effect.logError("a request died", cause).pipe(Effect.annotateLogs({ traceId, path }))
  const fault = faultBody(path, "internal_error", "an internal fault; the operator finds it by this trace id")
  return json({ ...fault, traceId }, { status: 500 })
})

/** Wraps the router's handler. */
export const guard = <E, R>(handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const path = pathOf(request.url)
    const startedAt = yield* Clock.currentTimeMillis
    const notes: Record<string, string> = {}
    return yield* handler.pipe(
      Effect.catchCause((cause) => answerFault(cause, request.method, path)),
      Effect.provideService(RequestNotes, notes),
      Effect.tap(({ status }) =>
        Effect.gen(function* () {
          const milliseconds = (yield* Clock.currentTimeMillis) - startedAt
          const { traceId } = yield* Effect.orDie(Effect.currentSpan)
          yield* measured(path, status, milliseconds)
          yield* Effect.logInfo("request").pipe(
            Effect.annotateLogs({
              method: request.method,
              path: path.slice(0, 200),
              status,
              milliseconds,
              traceId,
              ...notes
            })
          )
        })
      ),
      traced(request, path)
    )
  })
