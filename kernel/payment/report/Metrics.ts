// The metrics route: Prometheus text of every metric of the process at /metrics, gauges of state refreshed on each
// scrape. With operator keys the route needs one; without, it is served to this machine only (rules 2). A label never
// contains an address, a hash or the text of a caller.
import { Effect, Layer, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"
import { Authentication } from "../../http/Authentication.ts"
import { unauthorized } from "../../http/httpMiddleware.ts"
import { addRoutes, at, type Documented, errors, processRoutes, route } from "../../http/Route.ts"
import { MetricReadings } from "./MetricReadings.ts"

const metrics: Documented = {
  ...at("GET", "/metrics", "metrics"),
  summary: "Metrics as Prometheus text: for operators, or only for this machine if no operator key is configured.",
  callers: "keyed",
  cost: { cpuMillis: 10, bytesOut: 262_144, statements: 4 },
  isProbe: true,
  answers: {
    200: { description: "Every metric of the process.", body: Schema.String, mediaType: "text/plain" },
    ...errors({ 401: "An operator's key is required." })
  }
}

export const routes = Layer.effectDiscard(
  Effect.gen(function* () {
    const callers = yield* Authentication
    const { refresh } = yield* MetricReadings
    const answer = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
      if (!callers.mayOperate(request)) return unauthorized
      yield* refresh
      return HttpServerResponse.text(yield* PrometheusMetrics.format(), {
        contentType: "text/plain; version=0.0.4; charset=utf-8",
        headers: { "cache-control": "no-store" }
      })
    })
    yield* addRoutes(processRoutes, [route(metrics, answer)])
  })
)
