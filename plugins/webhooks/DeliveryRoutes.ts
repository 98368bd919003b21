// GET /webhooks/v1/deliveries: sent and pending deliveries, for operators, as JSON or CSV. It requires an operator's
// key or session; if no operator has a key, a request from this machine. It does not show bodies.
import { Effect, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { SqlClient } from "effect/sql"
import { Authentication } from "../../kernel/http/Authentication.ts"
import { asksForCsv, listed } from "../../kernel/http/csv.ts"
import { json, operatorRequired, temporarilyUnavailable } from "../../kernel/http/httpMiddleware.ts"
import { type Form, isTime, parameter, queryOf, readQuery } from "../../kernel/http/readQuery.ts"
import { addRoutes, answers, at, type Documented, route } from "../../kernel/http/Route.ts"
import { type DeliveryFilter, type DeliveryPage, ListedDeliveries, listDeliveries } from "./deliveryList.ts"

const pageDefault = 50
const pageMax = 200
const csvRowsMax = 10_000

const instant = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?Z)?$/u
/** A parameter's form and description, which an issue repeats. */
const narrowed = (pattern: RegExp, description: string, isValid: Form["isValid"] = () => true) =>
  Schema.optionalKey(parameter({ pattern, expected: description, isValid }, description))

const deliveries = {
  ...at("GET", "/webhooks/v1/deliveries", "webhookDeliveries"),
  summary: "Deliveries to webhook receivers, newest first; a CSV has up to 10,000.",
  callers: "operators",
  cost: { cpuMillis: 10, bytesOut: 131_072, statements: 4 },
  query: Schema.Struct({
    receiver: narrowed(/^[^\p{Cc}]{1,200}$/u, "Name of a receiver."),
    state: narrowed(/^(?:due|delivered|given_up)$/u, "`due`, `delivered` or `given_up`."),
    type: narrowed(/^settlement\.[a-z]{1,20}$/u, "An event, such as `settlement.settled`."),
    settlement: narrowed(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/u, "The id of a settlement."),
    from: narrowed(instant, "Events from this time on, UTC.", isTime),
    to: narrowed(instant, "Events before this time, UTC.", isTime),
    limit: narrowed(/^[1-9][0-9]{0,4}$/u, `Clamped to ${pageMax}; default ${pageDefault}.`),
    cursor: narrowed(/^[1-9][0-9]{0,17}$/u, "Cursor of the previous page.")
  }),
  answers: answers("A page.", ListedDeliveries, {
    400: "`invalid_parameter`, with a sentence for each issue.",
    401: "An operator's key or session is required.",
    503: "The database is unavailable."
  })
} satisfies Documented
const { fields } = deliveries.query
const names = Object.keys(fields) as ReadonlyArray<keyof typeof fields>

/** The query of a request, or a sentence for each malformed parameter. */
const readAsked = (
  request: HttpServerRequest.HttpServerRequest
): { readonly issues: ReadonlyArray<string> } | { readonly filter: DeliveryFilter; readonly page: DeliveryPage } => {
  const read = readQuery(deliveries.query, queryOf(request))
  const given: Partial<Record<keyof typeof fields, string>> = {}
  for (const name of names) {
    const value = read.given(name)
    if (value !== undefined) given[name] = value
  }
  if (read.issues.length > 0) return { issues: read.issues }
  const { cursor, limit, ...filter } = given
  const rows = asksForCsv(request) ? csvRowsMax : Math.min(Number(limit ?? pageDefault), pageMax)
  return { filter, page: { cursor, limit: rows } }
}

export const addDeliveryRoutes = Effect.gen(function* () {
  const callers = yield* Authentication
  const sql = yield* SqlClient.SqlClient
  const answer = (request: HttpServerRequest.HttpServerRequest) => {
    if (!callers.mayOperate(request)) return Effect.succeed(operatorRequired)
    const query = readAsked(request)
    if ("issues" in query)
      return Effect.succeed(json({ error: "invalid_parameter", details: query.issues }, { status: 400 }))
    return listDeliveries(query.filter, query.page).pipe(
      Effect.map((body) => listed(request, body)),
      Effect.provideService(SqlClient.SqlClient, sql),
      Effect.catch((error) =>
        Effect.as(Effect.logError("the deliveries could not be read", error), temporarilyUnavailable)
      )
    )
  }
  yield* addRoutes({ tag: "webhooks", about: "Messages to sellers about their settlements." }, [
    route(deliveries, answer)
  ])
})
