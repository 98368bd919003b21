// The metrics route: Prometheus text of every metric of the process at /metrics, gauges of state refreshed on each
// scrape. With operator keys the route needs one; without, it is served to this machine only (rules 2). No address,
// hash or text of a caller is ever a label.
import { Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"
import { Authentication } from "../../http/Authentication.ts"
import { json } from "../../http/httpMiddleware.ts"
import { MetricReadings } from "./MetricReadings.ts"

export const routes = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const callers = yield* Authentication
    const { refresh } = yield* MetricReadings
    yield* router.add("GET", "/metrics", (request) =>
      Effect.gen(function* () {
        if (!callers.mayOperate(request))
          return json({ error: "unauthorized" }, { status: 401, headers: { "www-authenticate": "Bearer" } })
        yield* refresh
        return HttpServerResponse.text(yield* PrometheusMetrics.format(), {
          contentType: "text/plain; version=0.0.4; charset=utf-8",
          headers: { "cache-control": "no-store" }
        })
      })
    )
  })
)
