// The outermost middleware: on any failure inside, a client gets JSON in the shape of its route, and no detail of the
// error.
import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Logger, Option, References, Tracer } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { httpMiddleware, withinCapacity } from "../../../kernel/http/httpMiddleware.ts"
import type { DeclaredRules } from "../../../kernel/http/RouteRules.ts"
import { withSpanIfSampled } from "../../../kernel/effect/withSpanIfSampled.ts"
import { currentTraceParent } from "../../../kernel/TraceParent.ts"

const requestTo = (path: string, headers: Record<string, string> = {}) =>
  HttpServerRequest.fromWeb(new Request(`http://127.0.0.1${path}`, { method: "POST", headers }))

const routes: DeclaredRules = { labelled: (label) => ({ label, isProbe: false }), of: () => undefined }

const ask = (path: string, handler: Effect.Effect<HttpServerResponse.HttpServerResponse, unknown>, rules = routes) =>
  httpMiddleware(handler, rules).pipe(Effect.provideService(HttpServerRequest.HttpServerRequest, requestTo(path)))

const ok = Effect.succeed(HttpServerResponse.empty({ status: 204 }))

/** The log lines of each request, in order. */
const logged = () => {
  const lines: Array<{ message: unknown; annotations: Record<string, any> }> = []
  const logger = Logger.make<unknown, void>(({ fiber, message }) => {
    lines.push({ message, annotations: { ...fiber.getRef(References.CurrentLogAnnotations) } })
  })
  return { lines, layer: Logger.layer([logger]) }
}

const bodyOf = (response: HttpServerResponse.HttpServerResponse): Promise<any> =>
  HttpServerResponse.toWeb(response).json()

describe("paths", () => {
  const rules = { host: "0.0.0.0", allowedHosts: [], allowedOrigins: [] }
  const statusOf = (path: string, url?: string) =>
    withinCapacity(
      rules,
      routes
    )(ok).pipe(
      Effect.provideService(
        HttpServerRequest.HttpServerRequest,
        requestTo(path).modify(url === undefined ? {} : { url })
      ),
      Effect.map(({ status }) => status)
    )
  it.effect("a path in an unusual spelling is no route's", () =>
    Effect.gen(function* () {
      for (const path of ["/metrics;x", "/%6detrics", "/%6Detrics", "/%2Dmetrics", "/metrics;", "/metr%69cs?x"])
        expect([path, yield* statusOf(path)]).toEqual([path, 404])
      for (const path of ["/metrics", "/metrics?a=%6d;b", "/things/a%20b", "/things/%7Bid%7D", "/things/a%2Fb"])
        expect([path, yield* statusOf(path)]).toEqual([path, 204])
    })
  )
  it.effect("a target that only the router reads as a path is refused", () =>
    Effect.gen(function* () {
      for (const url of ["http://x:99999/metrics", "http://[/metrics?a=1", "HTTP://%/metrics", "/metrics#x", "*"])
        expect([url, yield* statusOf("/", url)]).toEqual([url, 404])
      expect(yield* statusOf(`/metrics?${"a&".repeat(10_000)}`)).toBe(414)
    })
  )
})

describe("guard", () => {
  for (const [what, error] of [
    ["a defect", Effect.die(new Error("an internal secret"))],
    ["an unexpected error", Effect.fail({ _tag: "Odd", text: "an internal secret" })],
    ["a defect that is no Error", Effect.die("an internal secret")],
    ["an interruption that is not the request's own", Effect.interrupt],
    [
      "an exception",
      Effect.sync(() => {
        throw new Error("an internal secret")
      })
    ]
  ] as const) {
    it.effect(`answers ${what} in the payment's shape with only a trace id [S52, S55, S58]`, () =>
      Effect.gen(function* () {
        const verified = yield* ask("/verify?x=1", error)
        expect(verified.status).toBe(500)
        const body = yield* Effect.promise(() => bodyOf(verified))
        expect(body).toEqual({
          isValid: false,
          invalidReason: "internal_error",
          invalidMessage: expect.any(String),
          traceId: expect.stringMatching(/^[0-9a-f]{32}$/)
        })
        const settled = yield* Effect.flatMap(ask("/settle", error), (response) =>
          Effect.promise(() => bodyOf(response))
        )
        expect(settled).toMatchObject({ success: false, transaction: "", network: "", errorReason: "internal_error" })
        const slashed = yield* Effect.flatMap(ask("//verify/", error), (response) =>
          Effect.promise(() => bodyOf(response))
        )
        expect(slashed).toEqual({ ...body, traceId: slashed.traceId })
        const other = yield* Effect.flatMap(ask("/supported", error), (response) =>
          Effect.promise(() => bodyOf(response))
        )
        expect(other).toMatchObject({ error: "internal_error", traceId: expect.any(String) })
        expect(JSON.stringify([body, settled, other])).not.toContain("secret")
      })
    )
  }

  it.effect("logs one line per request without content, and defects with trace id [S253, S258]", () => {
    const { layer, lines } = logged()
    return Effect.gen(function* () {
      yield* ask("/settlements?identifier=a-private-word", ok)
      expect(lines).toEqual([
        {
          message: ["request"],
          annotations: {
            method: "POST",
            path: "/settlements",
            status: 204,
            milliseconds: expect.any(Number),
            traceId: expect.stringMatching(/^[0-9a-f]{32}$/)
          }
        }
      ])
      yield* ask("/settle", Effect.die("boom"))
      expect(lines[1]?.annotations).toEqual({ traceId: expect.stringMatching(/^[0-9a-f]{32}$/), path: "/settle" })
      expect(JSON.stringify(lines)).not.toContain("private")
    }).pipe(Effect.provide(layer))
  })

  it.effect("logs a probe only if it fails", () => {
    const { layer, lines } = logged()
    const probes: DeclaredRules = { ...routes, labelled: (label) => ({ label, isProbe: true }) }
    return Effect.gen(function* () {
      yield* ask("/health/live", ok, probes)
      expect(lines).toEqual([])
      yield* ask("/health/ready", Effect.succeed(HttpServerResponse.empty({ status: 503 })), probes)
      expect(lines.map(({ annotations }) => annotations["status"])).toEqual([503])
    }).pipe(Effect.provide(layer))
  })

  it.effect("request ids are the caller's trace id, or unique without a trace", () => {
    const { layer, lines } = logged()
    return Effect.gen(function* () {
      const places: Array<string | undefined> = []
      const guarded = httpMiddleware(
        Effect.andThen(
          Effect.map(currentTraceParent, (place) => places.push(place)),
          ok
        ),
        routes
      )
      const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
      for (const headers of [{}, {}, { traceparent }] as ReadonlyArray<Record<string, string>>) {
        yield* Effect.provideService(guarded, HttpServerRequest.HttpServerRequest, requestTo("/verify", headers))
      }
      const ids = lines.map(({ annotations }) => annotations["traceId"] as string)
      expect(ids[0]).toMatch(/^[0-9a-f]{32}$/)
      expect(new Set(ids).size).toBe(3)
      expect(ids[2]).toBe("4bf92f3577b34da6a3ce929d0e0e4736")
      // Requests to other services carry no trace of ours, since they could not resolve it.
      expect(places).toEqual([undefined, undefined, traceparent])
    }).pipe(Effect.provide(layer))
  })

  it.effect("creates spans only for traced requests, one per step", () =>
    Effect.gen(function* () {
      const made: Array<readonly [name: string, parent: string | undefined]> = []
      const tracer = Tracer.make({
        span: (options) => {
          const parent = Option.getOrUndefined(options.parent)
          made.push([options.name, parent?._tag === "Span" ? parent.name : parent?._tag])
          return Tracer.nativeTracer.span(options)
        }
      })
      const step = withSpanIfSampled("a step")(ok)
      const request = requestTo("/verify")
      const asked = Effect.provideService(httpMiddleware(step, routes), HttpServerRequest.HttpServerRequest, request)
      yield* asked
      yield* Effect.withTracer(step, tracer)
      expect(made).toEqual([])
      yield* Effect.withTracer(asked, tracer)
      expect(made).toEqual([
        ["POST /verify", undefined],
        ["a step", "POST /verify"]
      ])
    })
  )

  it.effect("passes a disconnected client's interruption through", () =>
    Effect.gen(function* () {
      // As the library runs a handler.
      const handler = Effect.uninterruptible(ask("/settle", Effect.interruptible(Effect.never)))
      const asking = yield* Effect.forkChild(handler, { startImmediately: true })
      yield* Fiber.interrupt(asking)
      const exit = asking.pollUnsafe()!
      expect(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)).toBe(true)
    })
  )
})
