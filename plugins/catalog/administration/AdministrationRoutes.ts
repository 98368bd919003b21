// The routes below /catalog/v1. They explain why a URL is or is not listed, to callers with a key (or to all callers if
// no keys are configured), and explain an account's listings to the browser that has shown control of it. Operators'
// actions need a separate key; if none is configured, HTTP refuses them and only the command line offers them.
import { Effect, Option } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import { SqlClient } from "effect/sql"
import { AccountSessions } from "../../../kernel/accounts/AccountSessions.ts"
import { Facts } from "../../../kernel/facts/Facts.ts"
import { parseJson } from "../../../kernel/http/BoundedJson.ts"
import { Authentication } from "../../../kernel/http/Authentication.ts"
import { listed } from "../../../kernel/http/csv.ts"
import { json, temporarilyUnavailable, unauthorized } from "../../../kernel/http/httpMiddleware.ts"
import { Keys } from "../../../kernel/http/Keys.ts"
import { readBody } from "../../../kernel/http/readBody.ts"
import { queryOf, readQuery } from "../../../kernel/http/readQuery.ts"
import { addRoutes, route } from "../../../kernel/http/Route.ts"
import { type AuditEntry, OperatorAuditLog } from "../../../kernel/settlement/operators/OperatorAuditLog.ts"
import { viaOf } from "../../../kernel/http/Sessions.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import type { AccountExplanation, ListingExplanation, ActionResult } from "../AnswerWire.ts"
import * as routes from "../description.ts"
import { readPaging } from "../discovery/filters.ts"
import { Changes } from "../store/Changes.ts"
import { Sightings } from "../store/Sightings.ts"
import { explainAccount, explainListing } from "./explainListing.ts"
import { moveResource, type MoveRequest, operatorMoves } from "./moveResource.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

const bodyBytesMax = 16_384

const readMove = (body: unknown, by: string): MoveRequest | ReadonlyArray<string> => {
  const fields = typeof body === "object" && body !== null ? (body as Readonly<Record<string, unknown>>) : {}
  const { move, note = "", toolName = "", type = "http", url } = fields
  const wrong: Array<string> = []
  if (type !== "http" && type !== "mcp") wrong.push("type: http or mcp")
  if (typeof url !== "string" || url === "") wrong.push("url: the URL of the resource")
  if (typeof toolName !== "string" || (type === "mcp" && toolName === ""))
    wrong.push("toolName: required with type mcp")
  if (!operatorMoves.some((known) => known === move)) wrong.push(`move: ${operatorMoves.join(", ")}`)
  if (typeof note !== "string") wrong.push("note: a string")
  return wrong.length > 0
    ? wrong
    : ({ type, url, toolName: type === "mcp" ? toolName : "", move, note, by } as MoveRequest)
}

const entryOf = (request: Request, { by, move, note, url }: MoveRequest): AuditEntry => ({
  person: by,
  via: viaOf(request),
  action: `catalog ${move}`,
  subject: url,
  reason: note
})

export const addAdministrationRoutes = Effect.gen(function* () {
  const callers = yield* Authentication
  const sessions = yield* AccountSessions
  const keys = yield* Keys
  const log = yield* OperatorAuditLog
  const crypto = yield* Crypto
  const facts = yield* Facts
  const sql = yield* SqlClient.SqlClient
  const changes = yield* Changes
  const sightings = yield* Sightings

  const explain = Effect.fnUntraced(function* (request: Request) {
    const reader = callers.reader(request)
    if (Option.isNone(reader)) return unauthorized
    const query = queryOf(request)
    const paging = readPaging(query, { limitDefault: 50, limitMax: 200, clamp: true })
    const url = readQuery(routes.explain.query, query).given("url") ?? ""
    const wrong = [...(url === "" || url.length > 4_096 ? ["url: the URL of the resource"] : []), ...paging.issues]
    if (wrong.length > 0) return json({ error: "invalid_filter", details: wrong }, { status: 400 })
    // Stored first, so that the explanation has the newest observations.
    yield* Effect.ignore(sightings.flush)
    const explained = yield* explainListing({ url, ...paging, only: reader.value.only }, crypto)
    return json({ x402Version: 2, ...explained } satisfies typeof ListingExplanation.Type)
  })

  const explainOwn = Effect.fnUntraced(function* (request: Request) {
    const session = yield* sessions.of(request)
    if (Option.isNone(session)) return unauthorized
    const paging = readPaging(queryOf(request), { limitDefault: 50, limitMax: 200, clamp: true })
    if (paging.issues.length > 0) return json({ error: "invalid_filter", details: paging.issues }, { status: 400 })
    yield* Effect.ignore(sightings.flush)
    const explained = yield* explainAccount(session.value.account, paging)
    return listed(request, { x402Version: 2, ...explained } satisfies typeof AccountExplanation.Type)
  })

  const move = Effect.fnUntraced(function* (request: Request) {
    if (!keys.operatorKeyed())
      return json(
        { error: "forbidden", details: ["no operator key is configured; use the command line"] },
        { status: 403 }
      )
    const label = callers.operator(request)
    if (Option.isNone(label)) return unauthorized
    const body = yield* Effect.option(Effect.flatMap(readBody(request, bodyBytesMax), (bytes) => parseJson(bytes)))
    if (Option.isNone(body))
      return json({ error: "invalid_request", details: ["a JSON object is required"] }, { status: 400 })
    const read = readMove(body.value, label.value)
    if (!("move" in read)) return json({ error: "invalid_request", details: read }, { status: 400 })
    const moved = yield* log.record(
      entryOf(request, read),
      moveResource(read, facts, crypto),
      Option.match({ onNone: () => ({}), onSome: ({ from, to }) => ({ before: from, after: to }) })
    )
    if (Option.isNone(moved)) return json({ error: "not_found" }, { status: 404 })
    yield* changes.moved
    return json(moved.value satisfies typeof ActionResult.Type)
  })

  const answered = <E>(answer: Effect.Effect<Response, E, SqlClient.SqlClient>) =>
    Effect.catch(Effect.provideService(answer, SqlClient.SqlClient, sql), (error) =>
      Effect.as(Effect.logError("catalog administration: the database query failed", error), temporarilyUnavailable)
    )

  yield* addRoutes(routes.catalog, [
    route(routes.explain, (request) => answered(explain(request))),
    route(routes.explainOwn, (request) => answered(explainOwn(request))),
    route(routes.move, (request) => answered(move(request)))
  ])
})
