// A seller's routes below /catalog/v1: showing that a recipient is its own (`POST /catalog/v1/challenge`, without a
// signature for a challenge, with one to answer it), and a probe of an origin before the first payment there (`POST
// /catalog/v1/look?origin=…`). A key is required if the facilitator has any; probes are bounded.
import { Effect, Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { AccountSignatures } from "../../../kernel/accounts/AccountSignatures.ts"
import { Network } from "../../../kernel/config/Network.ts"
import { parseJson } from "../../../kernel/http/BoundedJson.ts"
import { Authentication } from "../../../kernel/http/Authentication.ts"
import { unlistedHost } from "../../../kernel/http/hostValidation.ts"
import { json, temporarilyUnavailable, unauthorized } from "../../../kernel/http/httpMiddleware.ts"
import { readBody } from "../../../kernel/http/readBody.ts"
import { queryOf, readQuery } from "../../../kernel/http/readQuery.ts"
import { addRoutes, route } from "../../../kernel/http/Route.ts"
import { OnBehalfOf } from "../../../kernel/platform/Outbound.ts"
import * as routes from "../description.ts"
import { Challenges } from "../ownership/Challenges.ts"
import { OriginProbes } from "../ownership/OriginProbes.ts"
import { Recipients } from "../ownership/Recipients.ts"

type Request = HttpServerRequest.HttpServerRequest

const bodyBytesMax = 8_192

const invalid = (...details: ReadonlyArray<string>) => json({ error: "invalid_request", details }, { status: 400 })
const forbidden = (...details: ReadonlyArray<string>) => json({ error: "forbidden", details }, { status: 403 })

interface Answered {
  readonly payTo: string
  readonly challenge: string | undefined
  readonly signature: string | undefined
}

const readAnswered = (body: unknown, canSign: (account: string) => boolean): Answered | undefined => {
  const fields = typeof body === "object" && body !== null ? (body as Readonly<Record<string, unknown>>) : {}
  const { challenge, payTo, signature } = fields
  if (typeof payTo !== "string" || !canSign(payTo)) return undefined
  if (challenge === undefined && signature === undefined) return { payTo, challenge: undefined, signature: undefined }
  if (typeof challenge !== "string" || typeof signature !== "string") return undefined
  return { payTo, challenge, signature }
}

export const addSellerRoutes = Effect.gen(function* () {
  const callers = yield* Authentication
  const challenges = yield* Challenges
  const { canSign } = yield* AccountSignatures
  const network = yield* Network
  const recipients = yield* Recipients
  const probes = yield* OriginProbes

  const challenge = Effect.fnUntraced(function* (request: Request) {
    const caller = callers.authenticate(request)
    if (Option.isNone(caller)) return unauthorized
    if (!caller.value.keyed)
      return forbidden(
        "No API keys are configured, so a recipient cannot be bound to a caller. Set FACILITATOR_API_KEYS."
      )
    const body = yield* Effect.option(Effect.flatMap(readBody(request, bodyBytesMax), (bytes) => parseJson(bytes)))
    const read = Option.isNone(body) ? undefined : readAnswered(body.value, canSign)
    if (read === undefined)
      return invalid(
        "payTo: an account (G… or C…)",
        "challenge and signature (base64): both, or neither for a challenge"
      )
    const { payTo, signature } = read
    const host = callers.challengeHost(request)
    if (host === undefined) return forbidden(unlistedHost)
    const place = { host, network: network.id }
    if (read.challenge === undefined || signature === undefined) {
      const made = yield* challenges.make(caller.value, payTo, place)
      if (made === undefined) return invalid("the Host header is not a valid host name")
      const { authorization, expiresAt, challenge } = made
      const instead = authorization === undefined ? {} : { authorization }
      return json({ payTo, challenge, ...instead, expiresAt: expiresAt.toISOString() })
    }
    if (!(yield* challenges.isAnswered(caller.value, payTo, place, read.challenge, signature)))
      return forbidden("the challenge is not of this host and network, has expired, or was not signed by this account")
    const bound = yield* recipients.bind(caller.value, payTo)
    return bound ? json({ payTo, grade: "declared" }) : forbidden("this key has reached its limit of recipients")
  })

  const probe = Effect.fnUntraced(function* (request: Request) {
    const caller = callers.authenticate(request)
    if (Option.isNone(caller)) return unauthorized
    const given = readQuery(routes.look.query, queryOf(request)).given("origin") ?? ""
    const { source } = caller.value
    const answer = yield* Effect.provideService(probes.probe(given, source), OnBehalfOf, source)
    switch (answer._tag) {
      case "Refused":
        return invalid(`origin: ${answer.detail}`)
      case "Later":
        return json({ error: "rate_limited" }, { status: 429, headers: { "retry-after": String(answer.seconds) } })
      case "Probed": {
        const { _tag, ...found } = answer
        return json(found)
      }
    }
  })

  const answered = <E>(answer: Effect.Effect<ReturnType<typeof json>, E>) =>
    Effect.catch(answer, (error) =>
      Effect.as(Effect.logError("a seller's request failed", error), temporarilyUnavailable)
    )

  yield* addRoutes(routes.catalog, [
    route(routes.challenge, (request) => answered(challenge(request))),
    route(routes.look, (request) => answered(probe(request)))
  ])
})
