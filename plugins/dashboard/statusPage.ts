// GET /status: the service levels of the last 30 days, for anyone: JSON, CSV of the gaps for a report, or a page where
// the browser asks for one. Figures of the whole service alone: no payer, seller, key or amount. Read at most once in a
// minute, so that a flood costs the database nothing.
import { Clock, Effect, Schema } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { listed } from "../../kernel/http/csv.ts"
import { json } from "../../kernel/http/httpMiddleware.ts"
import type { RouteDescription } from "../../kernel/http/OpenApi.ts"
import { text, time, units, whole } from "../../kernel/http/wireSchema.ts"
import { daysReported, type Levels, ServiceLevels } from "../../kernel/settlement/operators/ServiceLevels.ts"

type Request = HttpServerRequest.HttpServerRequest

/** How long an answer is given again. */
const keptMillis = 60_000

const share = Schema.NullOr(Schema.Finite)
export const ServiceStatus = Schema.Struct({
  days: whole("Days that are reported."),
  since: time("UTC."),
  settlements: units("Settlements recorded."),
  verify_p95_ms: Schema.NullOr(Schema.Finite).annotate({ description: "Verification within settle." }),
  settle_p95_ms: Schema.NullOr(Schema.Finite).annotate({ description: "From request to settled." }),
  ended_in_two_ledgers: share.annotate({ description: "Share of those with an end on the ledger." }),
  availability: share.annotate({ description: "Share of minutes in which the service could write." }),
  items: Schema.Array(Schema.Struct({ from: time("UTC."), to: time("UTC.") })).annotate({
    description: "Interruptions of two minutes and more, the newest first."
  })
}).annotate({ identifier: "ServiceStatus" })

export const statusRoute: RouteDescription = {
  method: "get",
  path: "/status",
  id: "serviceStatus",
  summary: "Service levels of the last 30 days; a page to a browser, the interruptions as CSV.",
  tag: "dashboard",
  callers: "public",
  answers: {
    200: { description: "The figures.", body: ServiceStatus },
    503: {
      description: "The database is unavailable.",
      body: Schema.Struct({ error: text("`temporarily_unavailable`.") })
    }
  }
}

const bodyOf = (levels: Levels): typeof ServiceStatus.Type => ({
  days: daysReported,
  since: levels.since.toISOString(),
  settlements: levels.settlements.toString(),
  verify_p95_ms: levels.verifyP95,
  settle_p95_ms: levels.settleP95,
  ended_in_two_ledgers: levels.endedInTwoLedgers,
  availability: levels.availability,
  items: levels.gaps.map(({ from, to }) => ({ from: from.toISOString(), to: to.toISOString() }))
})

const percent = (value: number | null) => (value === null ? "none yet" : `${(value * 100).toFixed(2)} %`)
const seconds = (millis: number | null) => (millis === null ? "none yet" : `${(millis / 1_000).toFixed(2)} s`)

/** A page without scripts; every value in it is a figure or a time of our own. */
const pageOf = (body: typeof ServiceStatus.Type): string => {
  const rows = [
    ["Availability", percent(body.availability)],
    ["Settlements", body.settlements],
    ["Verification, 95 of 100 within", seconds(body.verify_p95_ms)],
    ["Settling, 95 of 100 within", seconds(body.settle_p95_ms)],
    ["Ended within two ledgers", percent(body.ended_in_two_ledgers)]
  ]
  const gaps = body.items.map(({ from, to }) => `<li>${from} to ${to}</li>`).join("")
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Tollkeeper: status</title><main><h1>Status, last ${body.days} days</h1>
<table>${rows.map(([name, value]) => `<tr><th scope="row">${name}</th><td>${value}</td></tr>`).join("")}</table>
<h2>Interruptions of two minutes and more</h2>${gaps === "" ? "<p>None.</p>" : `<ul>${gaps}</ul>`}</main></html>`
}

const away = json({ error: "temporarily_unavailable" }, { status: 503, headers: { "retry-after": "1" } })
const policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

export const addStatusRoute = Effect.gen(function* () {
  const router = yield* HttpRouter.HttpRouter
  const { read } = yield* ServiceLevels
  let kept: { readonly body: typeof ServiceStatus.Type; readonly at: number } | undefined

  const current = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    if (kept !== undefined && Math.abs(now - kept.at) < keptMillis) return kept.body
    kept = { body: bodyOf(yield* read), at: now }
    return kept.body
  })

  yield* router.add("GET", "/status", (request: Request) =>
    Effect.matchEffect(current, {
      onFailure: (error) => Effect.as(Effect.logError("the status could not be read", error), away),
      onSuccess: (body) =>
        Effect.succeed(
          (request.headers["accept"] ?? "").includes("text/html")
            ? HttpServerResponse.text(pageOf(body), {
                contentType: "text/html; charset=utf-8",
                headers: {
                  "content-security-policy": policy,
                  "cache-control": "no-store",
                  "x-content-type-options": "nosniff",
                  vary: "accept"
                }
              })
            : listed(request, body)
        )
    })
  )
})
