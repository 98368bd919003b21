// The operators' route of the channel store: every channel in this facilitator's store and caches, as JSON or CSV. It
// requires an operator's key or session. If no operator has a key, it only accepts requests from this machine.
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { SqlClient } from "effect/sql"
import { Network } from "../../kernel/config/Network.ts"
import { Authentication } from "../../kernel/http/Authentication.ts"
import { asksForCsv, listed } from "../../kernel/http/csv.ts"
import { json, operatorRequired, temporarilyUnavailable } from "../../kernel/http/httpMiddleware.ts"
import { queryOf, readQuery } from "../../kernel/http/readQuery.ts"
import { addRoutes, route } from "../../kernel/http/Route.ts"
import { KnownChannels } from "../x402-batch/contract.ts"
import { type ChannelFilter, type ChannelPage, pageOfChannels, reportChannels, reportMax } from "./channelReport.ts"
import * as routes from "./description.ts"

const invalid = json(
  { error: "invalid_request", message: "payer, payTo, asset, key, state, limit and cursor as /openapi.json has them" },
  { status: 400 }
)

const names = Object.keys(routes.report.query.fields) as ReadonlyArray<keyof typeof routes.report.query.fields>

/** The filter and page of a request; undefined when a member has not its form. A CSV has all that is filtered. */
const readAsked = (request: HttpServerRequest.HttpServerRequest): (ChannelFilter & ChannelPage) | undefined => {
  const read = readQuery(routes.report.query, queryOf(request))
  const given = names.flatMap((name) => {
    const value = read.given(name)
    return value === undefined ? [] : [[name, value] as const]
  })
  if (read.issues.length > 0) return undefined
  const { limit, ...rest } = Object.fromEntries(given) as Partial<Record<(typeof names)[number], string>>
  return { ...rest, limit: asksForCsv(request) ? reportMax : Math.min(Number(limit ?? reportMax), reportMax) }
}

export const addOperatorRoutes = Effect.gen(function* () {
  const callers = yield* Authentication
  const services = yield* Effect.context<KnownChannels | Network | SqlClient.SqlClient>()
  const report = Effect.provideContext(reportChannels, services)

  yield* addRoutes(routes.group, [
    route(routes.report, (request) => {
      if (!callers.mayOperate(request)) return Effect.succeed(operatorRequired)
      const asked = readAsked(request)
      if (asked === undefined) return Effect.succeed(invalid)
      return report.pipe(
        Effect.map((body) => listed(request, pageOfChannels(body, asked, asked))),
        Effect.catch((error) =>
          Effect.as(Effect.logError("the batch channels could not be read", error), temporarilyUnavailable)
        )
      )
    })
  ])
})
