// The operators' route of the channel store: every channel that this facilitator knows, as JSON or CSV. It requires an
// operator's key or session; where no operator has a key, a request from this machine.
import { Effect } from "effect"
import { HttpRouter, type HttpServerRequest } from "effect/http"
import { SqlClient } from "effect/sql"
import { Network } from "../../kernel/config/Network.ts"
import { Authentication } from "../../kernel/http/Authentication.ts"
import { asksForCsv, listed } from "../../kernel/http/csv.ts"
import { json } from "../../kernel/http/httpMiddleware.ts"
import { KnownChannels } from "../x402-batch/contract.ts"
import { type ChannelFilter, type ChannelPage, pageOfChannels, reportChannels, reportMax } from "./channelReport.ts"

/** The query of the report, as patterns; `/openapi.json` has the same. */
export const channelQuery = {
  payer: /^[GCM][A-Z2-7]{55,68}$/u,
  payTo: /^[GCM][A-Z2-7]{55,68}$/u,
  asset: /^C[A-Z2-7]{55}$/u,
  key: /^[A-Za-z0-9.:_/-]{1,128}$/u,
  state: /^(?:open|withdrawing)$/u,
  limit: /^[1-9][0-9]{0,3}$/u,
  cursor: /^(?:[0-9T:.+Z-]{1,40})?_[0-9]{1,39}_[0-9a-f]{64}$/u
} as const

/** The filter and page of a request; undefined when a member has not its form. A CSV has all that is filtered. */
const readQuery = (request: HttpServerRequest.HttpServerRequest): (ChannelFilter & ChannelPage) | undefined => {
  const query = new URL(request.url, "http://localhost").searchParams
  const given = (Object.keys(channelQuery) as ReadonlyArray<keyof typeof channelQuery>).flatMap((name) => {
    const value = query.get(name) ?? ""
    return value === "" ? [] : [[name, value] as const]
  })
  if (!given.every(([name, value]) => channelQuery[name].test(value))) return undefined
  const { limit, ...rest } = Object.fromEntries(given) as Partial<Record<keyof typeof channelQuery, string>>
  return { ...rest, limit: asksForCsv(request) ? reportMax : Math.min(Number(limit ?? reportMax), reportMax) }
}

const unauthorized = json(
  { error: "unauthorized", message: "an operator's key is required" },
  { status: 401, headers: { "www-authenticate": "Bearer" } }
)
const invalid = json(
  { error: "invalid_request", message: "payer, payTo, asset, key, state, limit and cursor as /openapi.json has them" },
  { status: 400 }
)
const away = json({ error: "temporarily_unavailable" }, { status: 503, headers: { "retry-after": "1" } })

export const addOperatorRoutes = Effect.gen(function* () {
  const router = yield* HttpRouter.HttpRouter
  const callers = yield* Authentication
  const services = yield* Effect.context<KnownChannels | Network | SqlClient.SqlClient>()
  const report = Effect.provideContext(reportChannels, services)

  yield* router.add("GET", "/batch/v1/operator/channels", (request: HttpServerRequest.HttpServerRequest) => {
    if (!callers.mayOperate(request)) return Effect.succeed(unauthorized)
    const asked = readQuery(request)
    if (asked === undefined) return Effect.succeed(invalid)
    return report.pipe(
      Effect.map((body) => listed(request, pageOfChannels(body, asked, asked))),
      Effect.catch((error) => Effect.as(Effect.logError("the channels of batches were not read", error), away))
    )
  })
})
