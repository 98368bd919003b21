// Requests for approval over HTTP, for a dashboard or another program of an operator: GET `/approvals` lists the open
// ones, POST `/approvals/{id}` with `{decision: "approve" | "deny", reason?}` decides one. The decision is recorded as
// an operator's act. Both require an operator's key. With an agent's own key an agent could approve its own payments.
import { Data, Effect, type FileSystem, Option, type Path, Schema } from "effect"
import { HttpRouter, type HttpServerRequest } from "effect/http"
import { Server } from "../../../kernel/config/Server.ts"
import { parseJson } from "../../../kernel/http/BoundedJson.ts"
import { json } from "../../../kernel/http/httpMiddleware.ts"
import { readBody } from "../../../kernel/http/readBody.ts"
import { mountRoutes, route } from "../../../kernel/http/Route.ts"
import { Admission, ToolsConfig } from "../../mcp-tools/contract.ts"
import { Config } from "../Config.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import { keepAct } from "../../../kernel/settlement/operators/keptActs.ts"
import { Approvals } from "./Approvals.ts"
import { ApprovalDecision, encodeListed, stateOf } from "./ApprovalWire.ts"

type Request = HttpServerRequest.HttpServerRequest

const unavailable = json(
  { error: "store_unavailable", message: "the store of approval requests is unavailable; retry later" },
  { status: 503 }
)
const notFound = json({ error: "not_found", message: "no open request has this id" }, { status: 404 })
const unrecorded = json(
  { error: "not_recorded", message: "the decision cannot be recorded in the state folder; nothing was decided" },
  { status: 503 }
)
class NotOpen extends Data.TaggedError("NotOpen")<{ readonly message: string }> {}
const decodeDecision = Schema.decodeUnknownOption(ApprovalDecision)

const readDecision = (request: Request, bytesMax: number) =>
  readBody(request, bytesMax).pipe(
    Effect.flatMap((bytes) => parseJson(bytes)),
    Effect.map(decodeDecision),
    Effect.orElseSucceed(() => Option.none())
  )

const cost = { cpuMillis: 10, bytesOut: 262_144 }

/** Only if agents are served over HTTP; with stdio, operators use the command line. */
export const addApprovalRoutes = Effect.gen(function* () {
  const { transport } = yield* ToolsConfig
  if (transport !== "http") return
  const { admitOperator } = yield* Admission
  const approvals = yield* Approvals
  const { policy } = yield* Config
  const { requestBytesMax } = yield* Server
  const { stateFolder } = yield* Host
  const files = yield* Effect.context<FileSystem.FileSystem | Path.Path>()

  const list = (request: Request) =>
    Effect.gen(function* () {
      yield* admitOperator(request)
      return json({ approvals: (yield* approvals.all(policy.approvalMillis)).map(encodeListed) })
    }).pipe(
      Effect.catchTag("BudgetUnavailable", () => Effect.succeed(unavailable)),
      Effect.catch((refused) => Effect.succeed(refused))
    )

  const decide = (request: Request) =>
    Effect.gen(function* () {
      const person = yield* admitOperator(request)
      const { id = "" } = yield* HttpRouter.params
      const decided = yield* readDecision(request, requestBytesMax)
      if (Option.isNone(decided))
        return json({ error: "invalid_request", message: "`decision` must be approve or deny" }, { status: 400 })
      const state = stateOf(decided.value)
      if (!/^[0-9a-f]{1,64}$/.test(id)) return notFound
      const { decision: action, reason = "no reason was given" } = decided.value
      const entry = { person, via: "api", action, subject: id, reason } as const
      yield* keepAct(
        stateFolder,
        entry
      )(
        Effect.filterOrFail(
          approvals.decide(id, state, policy.approvalMillis),
          (isDecided) => isDecided,
          () => new NotOpen({ message: "no open request has this id" })
        )
      )
      return json({ id, state })
    }).pipe(
      Effect.provideContext(files),
      Effect.catchTag("NotOpen", () => Effect.succeed(notFound)),
      Effect.catchTag("PlatformError", () => Effect.succeed(unrecorded)),
      Effect.catchTag("BudgetUnavailable", () => Effect.succeed(unavailable)),
      Effect.catch((refused) => Effect.succeed(refused))
    )

  yield* mountRoutes([
    route({ method: "GET", path: "/approvals", callers: "operators", cost }, list),
    route({ method: "POST", path: "/approvals/:id", callers: "operators", cost }, decide)
  ])
})
