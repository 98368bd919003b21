// GET /webhooks/v1/deliveries: what receivers were sent and are owed, for operators, as JSON or CSV. It requires an
// operator's key or session; where no operator has a key, a request from this machine. A body is not shown.
import { Effect, Schema } from "effect"
import { HttpRouter, type HttpServerRequest } from "effect/http"
import { SqlClient } from "effect/sql"
import { Authentication } from "../../kernel/http/Authentication.ts"
import { asksForCsv, listed } from "../../kernel/http/csv.ts"
import { json } from "../../kernel/http/httpMiddleware.ts"
import type { Described } from "../../kernel/http/OpenApi.ts"
import { ErrorBody, text } from "../../kernel/http/wireSchema.ts"
import { type DeliveryFilter, type DeliveryPage, ListedDeliveries, listDeliveries } from "./deliveryList.ts"

const path = "/webhooks/v1/deliveries"
const pageDefault = 50
const pageMax = 200
/** Rows of one CSV. */
const csvRowsMax = 10_000

/** Each parameter's form and what it is. */
const parameters = {
  receiver: [/^[^\p{Cc}]{1,200}$/u, "Name of a receiver."],
  state: [/^(?:due|delivered|given_up)$/u, "`due`, `delivered` or `given_up`."],
  type: [/^settlement\.[a-z]{1,20}$/u, "An event, such as `settlement.settled`."],
  settlement: [/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/u, "The id of a settlement."],
  from: [/^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?Z)?$/u, "Events from this time on, UTC."],
  to: [/^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?Z)?$/u, "Events before this time, UTC."],
  limit: [/^[1-9][0-9]{0,4}$/u, `Clamped to ${pageMax}; ${pageDefault} without it.`],
  cursor: [/^[1-9][0-9]{0,17}$/u, "Of the page before."]
} as const satisfies Readonly<Record<string, readonly [RegExp, string]>>
type Name = keyof typeof parameters
const names = Object.keys(parameters) as ReadonlyArray<Name>

const unauthorized = json(
  { error: "unauthorized", message: "an operator's key is required" },
  { status: 401, headers: { "www-authenticate": "Bearer" } }
)
const away = json({ error: "temporarily_unavailable" }, { status: 503, headers: { "retry-after": "1" } })

/** The query of a request, or a sentence for each parameter that has not its form. */
const readQuery = (
  request: HttpServerRequest.HttpServerRequest
): { readonly issues: ReadonlyArray<string> } | { readonly filter: DeliveryFilter; readonly page: DeliveryPage } => {
  const query = new URL(request.url, "http://localhost").searchParams
  const given: Partial<Record<Name, string>> = {}
  const issues: Array<string> = []
  for (const name of names) {
    const value = query.get(name) ?? ""
    const [form, what] = parameters[name]
    if (value === "") continue
    if (form.test(value) && (!/^(?:from|to)$/.test(name) || !Number.isNaN(Date.parse(value)))) given[name] = value
    else issues.push(`${name}: ${what}`)
  }
  if (issues.length > 0) return { issues }
  const { cursor, limit, ...filter } = given
  const rows = asksForCsv(request) ? csvRowsMax : Math.min(Number(limit ?? pageDefault), pageMax)
  return { filter, page: { cursor, limit: rows } }
}

export const addDeliveryRoutes = Effect.gen(function* () {
  const router = yield* HttpRouter.HttpRouter
  const callers = yield* Authentication
  const sql = yield* SqlClient.SqlClient
  yield* router.add("GET", path, (request: HttpServerRequest.HttpServerRequest) => {
    if (!callers.mayOperate(request)) return Effect.succeed(unauthorized)
    const asked = readQuery(request)
    if ("issues" in asked)
      return Effect.succeed(json({ error: "invalid_parameter", details: asked.issues }, { status: 400 }))
    return listDeliveries(asked.filter, asked.page).pipe(
      Effect.map((body) => listed(request, body)),
      Effect.provideService(SqlClient.SqlClient, sql),
      Effect.catch((error) => Effect.as(Effect.logError("the deliveries were not read", error), away))
    )
  })
})

export const described: Described = {
  tags: { webhooks: "Messages to sellers about their settlements." },
  routes: [
    {
      method: "get",
      path,
      id: "webhookDeliveries",
      summary: "Deliveries to webhook receivers, the newest first; a CSV has up to 10,000.",
      tag: "webhooks",
      callers: "operators",
      query: Schema.Struct(
        Object.fromEntries(
          names.map((name) => {
            const [form, what] = parameters[name]
            return [name, Schema.optionalKey(text(what).check(Schema.isPattern(form)))]
          })
        )
      ),
      answers: {
        200: { description: "A page.", body: ListedDeliveries },
        400: { description: "`invalid_parameter`, with a sentence for each issue.", body: ErrorBody },
        401: { description: "An operator's key or session is required.", body: ErrorBody },
        503: { description: "The database is unavailable.", body: ErrorBody }
      }
    }
  ]
}
