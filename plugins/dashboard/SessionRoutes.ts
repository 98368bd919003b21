// Sign-in and sign-out of the pages: POST a key to /dashboard/session to get a session cookie, DELETE ends the session
// for every copy of the cookie, GET returns it. The page never keeps the key itself. Wrong keys are rate limited
// by address.
import { Effect, Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { parseJson } from "../../kernel/http/BoundedJson.ts"
import { Authentication } from "../../kernel/http/Authentication.ts"
import { EndedSessions } from "../../kernel/accounts/EndedSessions.ts"
import { json } from "../../kernel/http/httpMiddleware.ts"
import { Keys } from "../../kernel/http/Keys.ts"
import { makeRateLimit } from "../../kernel/http/RateLimit.ts"
import { readBody } from "../../kernel/http/readBody.ts"
import { OperatorAuditLog } from "../../kernel/settlement/operators/OperatorAuditLog.ts"
import { addRoutes, route } from "../../kernel/http/Route.ts"
import { isFromPage, isOverTls, Sessions } from "../../kernel/http/Sessions.ts"
import * as routes from "./description.ts"
import type { SessionClosed, SessionOpened, SessionShown } from "./OperatorWire.ts"

type Request = HttpServerRequest.HttpServerRequest

const bodyBytesMax = 4_096
/** Wrong keys per second from one address. */
const guessesPerSecond = 2
/** A key that signs in again and again has a row for each of these in the audit trail. */
const hourMillis = 3_600_000

const keyIn = (body: unknown): string | undefined => {
  const key = typeof body === "object" && body !== null ? (body as { readonly key?: unknown }).key : undefined
  return typeof key === "string" ? key.trim() : undefined
}

const notFromPage = json(
  { error: "forbidden", message: "only a page of this origin may sign in or out" },
  { status: 403 }
)
const notListed = json({ error: "unauthorized", message: "this key is not listed here" }, { status: 401 })

export const addSessionRoutes = Effect.gen(function* () {
  const callers = yield* Authentication
  const keys = yield* Keys
  const sessions = yield* Sessions
  const { end } = yield* EndedSessions
  const { recordOnce } = yield* OperatorAuditLog
  const takeToken = makeRateLimit(guessesPerSecond)

  const shown = (request: Request): typeof SessionShown.Type => {
    const session = Option.getOrUndefined(sessions.of(request))
    const mayOperate = callers.mayOperate(request)
    return {
      role: session?.role ?? "nobody",
      principal: session?.principal ?? null,
      until: session === undefined ? null : new Date(session.untilSeconds * 1_000).toISOString(),
      may_read: Option.isSome(callers.reader(request)),
      may_operate: mayOperate,
      may_move: mayOperate && keys.operatorKeyed(),
      keys_required: keys.keyed()
    }
  }

  const signIn = Effect.fnUntraced(function* (request: Request) {
    if (!isFromPage(request)) return notFromPage
    const body = yield* Effect.option(Effect.flatMap(readBody(request, bodyBytesMax), parseJson))
    const key = keyIn(Option.getOrUndefined(body))
    if (key === undefined) return json({ error: "invalid_request", details: ["key: a string"] }, { status: 400 })
    const opened = sessions.open(key, isOverTls(request))
    // A listed key is looked up before anything is counted: the guesses of a neighbor delay no sign-in.
    if (Option.isNone(opened)) {
      const wait = yield* takeToken(callers.sourceOf(request))
      return wait === 0
        ? notListed
        : json({ error: "rate_limited" }, { status: 429, headers: { "retry-after": String(wait) } })
    }
    const { cookie, session } = opened.value
    const { principal, role } = session
    yield* recordOnce({ person: principal, via: "page", action: "sign in", subject: role, reason: "" }, hourMillis)
    return json({ role, principal } satisfies typeof SessionOpened.Type, { headers: { "set-cookie": cookie } })
  })

  const signOut = Effect.fnUntraced(function* (request: Request) {
    if (!isFromPage(request)) return notFromPage
    const headers = { "set-cookie": sessions.closed(isOverTls(request)) }
    return yield* Effect.matchEffect(end(request), {
      onFailure: (error) =>
        Effect.as(
          Effect.logError("the end of a session could not be recorded: other replicas accept its cookie", error),
          json({ error: "temporarily_unavailable" }, { status: 503, headers: { ...headers, "retry-after": "1" } })
        ),
      onSuccess: () => Effect.succeed(json({ role: "nobody" } satisfies typeof SessionClosed.Type, { headers }))
    })
  })

  yield* addRoutes(routes.group, [
    route(routes.session, (request) => Effect.sync(() => json(shown(request)))),
    route(routes.signIn, signIn),
    route(routes.signOut, signOut)
  ])
})
