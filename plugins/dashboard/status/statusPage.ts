// GET /status: the service levels of the last 30 days and the incidents in them, for anyone: JSON, a CSV of the
// incidents for a report, or a page if the browser asks for one. It contains figures of the whole service only: no
// payer, seller, key or amount. The database is read at most once in ten seconds, so a flood of requests costs it
// nothing.
import { Effect, Exit, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { outageOf } from "../../../kernel/actor/outages.ts"
import { listed } from "../../../kernel/http/csv.ts"
import { temporarilyUnavailable } from "../../../kernel/http/httpMiddleware.ts"
import { addRoutes, at, type Documented, errors, route } from "../../../kernel/http/Route.ts"
import { text } from "../../../kernel/http/wireSchema.ts"
import { daysReported, type Levels, ServiceLevels } from "../../../kernel/settlement/operators/ServiceLevels.ts"
import * as routes from "../description.ts"
import { interruption, summaryOf } from "./conditions.ts"
import { type Incident, Incidents, incidentsMax } from "./Incidents.ts"
import { pageOf, pagePolicy } from "./statusHtml.ts"
import { ServiceStatus } from "./StatusWire.ts"

type Request = HttpServerRequest.HttpServerRequest

/** Lifetime of cached incidents. The service levels have their own cache. */
const keptFor = "10 seconds"

const statusRoute: Documented = {
  ...at("GET", "/status", "serviceStatus"),
  summary: "Service levels and incidents of the last 30 days; a page to a browser, the incidents as CSV.",
  callers: "public",
  cost: { cpuMillis: 20, bytesOut: 131_072, statements: 6 },
  answers: {
    200: { description: "The figures.", body: ServiceStatus },
    ...errors({ 503: "The database is unavailable." }, Schema.Struct({ error: text("`temporarily_unavailable`.") }))
  }
}

const bodyOf = (levels: Levels, incidents: ReadonlyArray<Incident>): typeof ServiceStatus.Type => {
  const interrupted = levels.gaps.map((gap) => ({ cause: interruption.cause, ...gap }))
  const all = [...incidents, ...interrupted].toSorted((one, other) => other.from.getTime() - one.from.getTime())
  return {
    days: daysReported,
    since: levels.since.toISOString(),
    settlements: levels.settlements.toString(),
    verify_p95_ms: levels.verifyP95,
    settle_p95_ms: levels.settleP95,
    ended_in_two_ledgers: levels.endedInTwoLedgers,
    confirmed_by_two_endpoints: levels.confirmedByTwo,
    observed_from: levels.observedFrom?.toISOString() ?? null,
    availability: levels.checks === 0 ? null : levels.met / levels.checks,
    checks: levels.checks,
    checks_met: levels.met,
    daily: levels.days.map(({ checks, day, met }) => ({ day, checks, checks_met: met })),
    items: all.slice(0, incidentsMax).map(({ cause, from, to }) => ({
      cause,
      summary: summaryOf(cause),
      from: from.toISOString(),
      to: to?.toISOString() ?? null
    }))
  }
}

const asPage = (body: typeof ServiceStatus.Type) =>
  HttpServerResponse.text(pageOf(body), {
    contentType: "text/html; charset=utf-8",
    headers: {
      "content-security-policy": pagePolicy,
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      vary: "accept"
    }
  })

/** Adds the route. Requires the services of the database. */
export const addStatusRoute = Effect.gen(function* () {
  const levels = yield* ServiceLevels
  const incidents = yield* Incidents
  const read = Effect.flatMap(levels.read, (found) =>
    Effect.map(incidents.read(found.since), (some) => bodyOf(found, some))
  )
  const current = yield* Effect.cachedWithTTL(read, (exit) => (Exit.isSuccess(exit) ? keptFor : 0))

  const answer = (request: Request) =>
    Effect.matchEffect(current, {
      // During an outage we log one line, however often the page is requested.
      onFailure: (error) =>
        Effect.as(
          outageOf(error) ? Effect.void : Effect.logError("the status could not be read", error),
          temporarilyUnavailable
        ),
      onSuccess: (body) =>
        Effect.succeed((request.headers["accept"] ?? "").includes("text/html") ? asPage(body) : listed(request, body))
    })
  yield* addRoutes(routes.group, [route(statusRoute, answer)])
})
