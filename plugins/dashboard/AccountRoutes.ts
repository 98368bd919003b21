// Sign-in as the paid account: POST an account to /dashboard/account/challenge, have the account sign the returned
// sentence, and POST both to /dashboard/account; DELETE signs out, GET returns this browser's account. The account's
// reports are in `/analytics/v1/account` and `/catalog/v1/account`. Only a page of this origin may sign in or out, and
// attempts are rate limited by address.
import { Effect, Option, Schema } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import { type AccountChallenge, AccountChallenges } from "../../kernel/accounts/AccountChallenges.ts"
import { AccountSessions } from "../../kernel/accounts/AccountSessions.ts"
import { parseJson } from "../../kernel/http/BoundedJson.ts"
import { Authentication } from "../../kernel/http/Authentication.ts"
import { unlistedHost } from "../../kernel/http/hostValidation.ts"
import { json, temporarilyUnavailable } from "../../kernel/http/httpMiddleware.ts"
import { readBody } from "../../kernel/http/readBody.ts"
import { queryOf, readQuery } from "../../kernel/http/readQuery.ts"
import { addRoutes, route } from "../../kernel/http/Route.ts"
import { isFromPage, isOverTls } from "../../kernel/http/Sessions.ts"
import { AccountAnswered, AccountAsked, type AccountChallenged, type AccountShown } from "./AccountWire.ts"
import * as routes from "./description.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

const bodyBytesMax = 8_192

const notFromPage = json(
  { error: "forbidden", message: "only a page of this origin may sign in or out" },
  { status: 403 }
)
const refused = (message: string, status: 400 | 403) =>
  json({ error: status === 400 ? "invalid_request" : "forbidden", message }, { status })
const shown = (account: string | null, until: Date | null) =>
  json({ account, until: until?.toISOString() ?? null } satisfies typeof AccountShown.Type)

const challenged = (account: string, { authorization, challenge, expiresAt }: AccountChallenge) =>
  json({
    account,
    challenge,
    ...(authorization === undefined ? {} : { authorization }),
    expires_at: expiresAt.toISOString()
  } satisfies typeof AccountChallenged.Type)

const answered = <E>(answer: Effect.Effect<Response, E>): Effect.Effect<Response> =>
  Effect.catch(answer, (error) =>
    Effect.as(
      Effect.logError("a session of an account could not ask the database or the ledger", error),
      temporarilyUnavailable
    )
  )

export const addAccountRoutes = Effect.gen(function* () {
  const callers = yield* Authentication
  const challenges = yield* AccountChallenges
  const sessions = yield* AccountSessions

  /** Decodes a page's request; otherwise the refusal. */
  const read = Effect.fnUntraced(function* <A>(request: Request, schema: Schema.Codec<A, unknown>, what: string) {
    if (!isFromPage(request)) return { refusal: notFromPage }
    const body = yield* Effect.option(Effect.flatMap(readBody(request, bodyBytesMax), parseJson))
    const asked = Option.flatMap(body, Schema.decodeUnknownOption(schema))
    return Option.isNone(asked) ? { refusal: refused(what, 400) } : { asked: asked.value }
  })

  const challenge = Effect.fnUntraced(function* (request: Request) {
    const { asked, refusal } = yield* read(
      request,
      AccountAsked,
      "account: the account (G…, or a contract account C…) that is paid"
    )
    if (asked === undefined) return refusal
    const host = callers.challengeHost(request)
    if (host === undefined) return refused(unlistedHost, 403)
    const made = yield* challenges.make("session", host, asked.account)
    return typeof made === "string" ? refused(made, 400) : challenged(asked.account, made)
  })

  const signIn = Effect.fnUntraced(function* (request: Request) {
    const { asked, refusal } = yield* read(request, AccountAnswered, "account, challenge and signature: strings")
    if (asked === undefined) return refusal
    const host = callers.challengeHost(request)
    if (host === undefined) return refused(unlistedHost, 403)
    const opened = yield* sessions.open(
      { ...asked, host },
      { source: callers.sourceOf(request), overTls: isOverTls(request) }
    )
    if (typeof opened === "string") return refused(opened, 403)
    const { account, until } = opened.session
    return json({ account, until: until.toISOString() } satisfies typeof AccountShown.Type, {
      headers: { "set-cookie": opened.cookie }
    })
  })

  const signOut = Effect.fnUntraced(function* (request: Request) {
    if (!isFromPage(request)) return notFromPage
    const everywhere = readQuery(routes.accountSignOut.query, queryOf(request)).given("everywhere") === "1"
    yield* sessions.end(request, everywhere)
    return json({ account: null, until: null }, { headers: { "set-cookie": sessions.closed(isOverTls(request)) } })
  })

  const current = (request: Request) =>
    Effect.map(
      sessions.of(request),
      Option.match({
        onNone: () => shown(null, null),
        onSome: ({ account, until }) => shown(account, until)
      })
    )

  yield* addRoutes(routes.group, [
    route(routes.accountChallenge, (request) => answered(challenge(request))),
    route(routes.accountSignIn, (request) => answered(signIn(request))),
    route(routes.accountSignOut, (request) => answered(signOut(request))),
    route(routes.accountShown, (request) => answered(current(request)))
  ])
})
