// The operators' route of the channel store: every channel that this facilitator knows, as JSON or CSV. It requires an
// operator's key or session; where no operator has a key, a request from this machine.
import { Effect } from "effect"
import { HttpRouter, type HttpServerRequest } from "effect/http"
import { SqlClient } from "effect/sql"
import { Network } from "../../kernel/config/Network.ts"
import { Authentication } from "../../kernel/http/Authentication.ts"
import { listed } from "../../kernel/http/csv.ts"
import { json } from "../../kernel/http/httpMiddleware.ts"
import { KnownChannels } from "../x402-batch/contract.ts"
import { reportChannels } from "./channelReport.ts"

const unauthorized = json(
  { error: "unauthorized", message: "an operator's key is required" },
  { status: 401, headers: { "www-authenticate": "Bearer" } }
)
const away = json({ error: "temporarily_unavailable" }, { status: 503, headers: { "retry-after": "1" } })

export const addOperatorRoutes = Effect.gen(function* () {
  const router = yield* HttpRouter.HttpRouter
  const callers = yield* Authentication
  const services = yield* Effect.context<KnownChannels | Network | SqlClient.SqlClient>()
  const report = Effect.provideContext(reportChannels, services)

  yield* router.add("GET", "/batch/v1/operator/channels", (request: HttpServerRequest.HttpServerRequest) =>
    callers.mayOperate(request)
      ? report.pipe(
          Effect.map((body) => listed(request, body)),
          Effect.catch((error) => Effect.as(Effect.logError("the channels of batches were not read", error), away))
        )
      : Effect.succeed(unauthorized)
  )
})
