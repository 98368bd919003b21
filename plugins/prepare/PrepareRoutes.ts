// `POST /prepare`: authenticated and rate-limited like /verify, or open if the operator allows it. It reads terms with
// the decoder of /verify and answers the result of `preparePayment`; a refusal is a 422 with the reason of verify.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Effect, Layer, Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { Network } from "../../kernel/config/Network.ts"
import { Server } from "../../kernel/config/Server.ts"
import { WireVocabulary } from "../../kernel/config/WireVocabulary.ts"
import { encodeNetwork, encodeReason } from "../../kernel/Dialect.ts"
import { Authentication, type Principal } from "../../kernel/http/Authentication.ts"
import { parseJson } from "../../kernel/http/BoundedJson.ts"
import { json } from "../../kernel/http/httpMiddleware.ts"
import { readBody } from "../../kernel/http/readBody.ts"
import { addRoutes, type Documented, route } from "../../kernel/http/Route.ts"
import { LedgerClock } from "../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc } from "../../kernel/ledger/LedgerRpc.ts"
import { checkEnvelope } from "../../kernel/payment/checkEnvelope.ts"
import { isRefusal } from "../../kernel/payment/Refusal.ts"
import { Schemes } from "../../kernel/payment/Scheme.ts"
import { decodeTerms } from "../../kernel/payment/wire/decodeTerms.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Signer } from "../../kernel/signer/Signer.ts"
import { Config } from "./Config.ts"
import { type Choices, preparePayment } from "./preparePayment.ts"
import { prepareRoute } from "./PrepareWire.ts"

type Request = HttpServerRequest.HttpServerRequest

const isPlainAddress = (text: unknown): text is string =>
  typeof text === "string" && (StrKey.isValidEd25519PublicKey(text) || StrKey.isValidContract(text))

const fault = (status: number, error: string, message: string, headers: Readonly<Record<string, string>> = {}) =>
  json({ error, message }, { status, headers })

/** The principal of a request. If the route is open, a caller without a key is identified by its address. */
const makeCaller = Effect.gen(function* () {
  const callers = yield* Authentication
  const { isPublic } = yield* Config
  return (request: Request): Option.Option<Principal> =>
    Option.orElse(callers.authenticate(request), () =>
      isPublic
        ? Option.some<Principal>({ owner: "anonymous", source: callers.sourceOf(request), keyed: false })
        : Option.none()
    )
})

const makeAnswer = Effect.gen(function* () {
  const services = yield* Effect.context<Crypto | LedgerClock | LedgerRpc | Network | Schemes | Signer>()
  const server = yield* Server
  const words = yield* WireVocabulary
  const schemes = yield* Schemes
  const network = yield* Network
  const crypto = yield* Crypto
  const clock = yield* LedgerClock
  const context = { network, hasScheme: (scheme: string) => Option.isSome(schemes.find(scheme)) }

  return Effect.fnUntraced(
    function* (request: Request, principal: Principal) {
      const body = yield* Effect.result(
        Effect.flatMap(readBody(request, server.requestBytesMax), (bytes) => parseJson(bytes))
      )
      if (body._tag === "Failure") {
        const { failure } = body
        return failure._tag === "BodyRefused"
          ? fault(failure.status, failure.status === 413 ? "request_too_large" : "invalid_request", failure.message)
          : fault(400, "invalid_request", failure.message)
      }
      const sent = body.success as Readonly<Record<string, unknown>>
      const payment = decodeTerms(sent ?? {}, { principal, words, crypto })
      if ("_tag" in payment) return fault(400, payment.refusal.reason, payment.refusal.message)
      const { dialect, requirements } = payment
      const { payer } = sent
      if (!isPlainAddress(payer)) return fault(400, "invalid_request", "payer: G… or C… is required")
      if (!isPlainAddress(requirements.payTo))
        return fault(400, "invalid_request", "paymentRequirements.payTo: G… or C… is required")
      const { choices = {} } = sent
      if (typeof choices !== "object" || choices === null || Array.isArray(choices))
        return fault(400, "invalid_request", "choices: an object is required if it is sent")
      yield* clock.attend
      yield* clock.caughtUp
      const given =
        checkEnvelope(payment, context) ??
        (yield* preparePayment(payment, payer, choices as Choices, encodeNetwork(requirements.network, dialect)))
      return isRefusal(given) ? fault(422, encodeReason(given.reason, dialect), given.message) : json(given)
    },
    Effect.catchTag("LedgerUnavailable", ({ message }) =>
      Effect.succeed(fault(503, "ledger_unavailable", message, { "retry-after": "1" }))
    ),
    Effect.provideContext(services)
  )
})

const about = { tag: "prepare", about: "Prepares the bytes that a payer signs, for clients without an SDK." }

export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { isPublic } = yield* Config
    const callerOf = yield* makeCaller
    const answer = yield* makeAnswer
    const prepare = Effect.fnUntraced(function* (request: Request) {
      const caller = callerOf(request)
      if (Option.isNone(caller))
        return fault(401, "unauthorized", "a listed bearer key is required", { "www-authenticate": "Bearer" })
      return yield* answer(request, caller.value)
    })
    const callers: Documented["callers"] = isPublic ? "public" : "keyed"
    yield* addRoutes(about, [route({ ...prepareRoute, callers }, prepare)])
  })
).pipe(Layer.provide(Config.layer))
