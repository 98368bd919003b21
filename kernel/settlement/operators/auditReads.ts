// Records in the audit trail which routes operators read: a row a day for each operator and route, so that a page that
// polls does not fill it. The row is written after the answer, which never waits for it.
import { Effect, Option } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import type { Authentication } from "../../http/Authentication.ts"
import { pathOf } from "../../http/httpMiddleware.ts"
import type { DeclaredRules } from "../../http/RouteRules.ts"
import { viaOf } from "../../http/Sessions.ts"
import type { AuditEntry, OperatorAuditLog } from "./OperatorAuditLog.ts"

const dayMillis = 86_400_000

/** Wraps the router's handler. */
export const makeAuditReads = (
  callers: Authentication["Service"],
  { recordOnce }: OperatorAuditLog["Service"],
  routes: DeclaredRules
) => {
  const entryOf = (request: HttpServerRequest.HttpServerRequest): AuditEntry | undefined => {
    const person = request.method === "GET" ? Option.getOrUndefined(callers.operator(request)) : undefined
    const rules = person === undefined ? undefined : routes.of("GET", pathOf(request.url))
    return person === undefined || rules === undefined || rules.callers === "public"
      ? undefined
      : { person, via: viaOf(request), action: "read", subject: rules.path, reason: "" }
  }
  return <E, R>(handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      Effect.tap(handler, ({ status }) => {
        const entry = status < 400 ? entryOf(request) : undefined
        return entry === undefined ? Effect.void : Effect.forkDetach(recordOnce(entry, dayMillis))
      })
    )
}
