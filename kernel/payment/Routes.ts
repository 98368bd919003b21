// The payment routes: /verify, /settle, /supported, /settlements. Each answer carries the payment's shape whatever went
// wrong, in the spelling of the request. The routes only read, check, ask the facilitator and write; the work is not
// theirs, so a client that hangs up interrupts nothing but its own waiting.
import { Effect, Metric, Option } from "effect"
import { HttpRouter, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { Limits } from "../config/Limits.ts"
import { Network } from "../config/Network.ts"
import { Server } from "../config/Server.ts"
import { WireWords } from "../config/WireWords.ts"
import { parseJsonWithMembers } from "../http/BoundedJson.ts"
import { Callers } from "../http/Callers.ts"
import { json } from "../http/Guard.ts"
import type { Principal } from "../http/Principal.ts"
import { makeRateLimit } from "../http/RateLimit.ts"
import { readBody } from "../http/readBody.ts"
import { Crypto } from "../platform/Crypto.ts"
import { ChannelCount } from "../settlement/channels/ChannelCount.ts"
import { Signer } from "../signer/Signer.ts"
import type { SettleAnswer, VerifyAnswer } from "./Answer.ts"
import { checkEnvelope } from "./checkEnvelope.ts"
import { Extensions } from "./Extension.ts"
import { Facilitator } from "./Facilitator.ts"
import { observePayment } from "./observePayment.ts"
import type { Payment } from "./Payment.ts"
import { isRefusal, type Refusal, refusal } from "./Refusal.ts"
import { Schemes } from "./Scheme.ts"
import { encodeSettlementState } from "./settlementState.ts"
import { encodeSupported } from "./supported.ts"
import { type AnswerIn, answerIn, decodePayment, encodeSettle, encodeVerify, extensionsPath } from "./Wire.ts"

type Response = HttpServerResponse.HttpServerResponse
type Request = HttpServerRequest.HttpServerRequest

/** One of the two payment operations, as far as their HTTP differs. */
interface Operation<A> {
  readonly name: "verify" | "settle"
  readonly run: (payment: Payment) => Effect.Effect<A>
  readonly refuse: (refused: Refusal) => A
  readonly encode: (answer: A, into: AnswerIn) => Readonly<Record<string, unknown>>
  readonly refusalOf: (answer: A) => Refusal | undefined
  readonly wordOf: (answer: A) => string
  /** The payer when the decision lets extensions observe the payment. */
  readonly observable: (
    answer: A
  ) => { readonly payer: string; readonly transaction: Option.Option<string> } | undefined
}

/** A word of a refusal is from the house's own table, so it may be a label. */
const answersTotal = Metric.counter("tollkeeper_payment_answers_total", {
  description: "Payments answered, by operation and word; `ok` for valid and settled ones.",
  incremental: true
})

const unauthorizedHeaders = { "www-authenticate": "Bearer" }

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const facilitator = yield* Facilitator
    const schemes = yield* Schemes
    const extensions = yield* Extensions
    const callers = yield* Callers
    const network = yield* Network
    const server = yield* Server
    const limits = yield* Limits
    const words = yield* WireWords
    const signer = yield* Signer
    const channelCount = yield* ChannelCount
    const crypto = yield* Crypto
    const scope = yield* Effect.scope
    const context = { network, hasScheme: (scheme: string) => Option.isSome(schemes.find(scheme)) }
    const unread: AnswerIn = { dialect: words.dialects[0], network: "", words }

    const answer = <A>(
      operation: Operation<A>,
      given: A,
      into: AnswerIn,
      headers: Readonly<Record<string, string>> = {}
    ): Response => {
      const refused = operation.refusalOf(given)
      const busy = refused !== undefined && schemes.statusOf(refused.reason) === 503
      return json(operation.encode(given, into), {
        status: refused === undefined ? 200 : schemes.statusOf(refused.reason),
        headers: { ...(busy ? { "retry-after": "1" } : {}), ...headers }
      })
    }

    const refuseEarly = <A>(
      operation: Operation<A>,
      reason: string,
      message: string,
      headers?: Readonly<Record<string, string>>
    ) => answer(operation, operation.refuse(refusal(reason, message)), unread, headers)

    const handle = <A>(operation: Operation<A>, perSecond: number) => {
      const takeToken = makeRateLimit(perSecond)
      return Effect.fnUntraced(function* (request: Request) {
        const caller = callers.identify(request)
        if (Option.isNone(caller)) {
          const body = operation.encode(
            operation.refuse(refusal("unauthorized", "a listed bearer key is required")),
            unread
          )
          return json({ ...body, error: "unauthorized" }, { status: 401, headers: unauthorizedHeaders })
        }
        const wait = yield* takeToken(caller.value.source)
        if (wait > 0)
          return refuseEarly(operation, "rate_limited", "too many requests", { "retry-after": String(wait) })
        return yield* readAndRun(operation, request, caller.value)
      })
    }

    const readAndRun = Effect.fnUntraced(function* <A>(
      operation: Operation<A>,
      request: Request,
      principal: Principal
    ) {
      const body = yield* Effect.result(
        Effect.flatMap(readBody(request, server.requestBytesMax), (bytes) =>
          parseJsonWithMembers(bytes, extensionsPath)
        )
      )
      if (body._tag === "Failure") {
        const tooLarge = body.failure._tag === "BodyRefused" && body.failure.status === 413
        return refuseEarly(operation, tooLarge ? "request_too_large" : "invalid_request", body.failure.message)
      }
      const { dropped, value } = body.success
      const payment = decodePayment(value, { principal, words, crypto, dropped })
      if ("_tag" in payment) {
        const into = { dialect: payment.dialect ?? words.dialects[0], network: payment.network, words }
        return answer(operation, operation.refuse(payment.refusal), into)
      }
      const into = answerIn(payment, words)
      const refused = checkEnvelope(payment, context)
      const given = refused === undefined ? yield* operation.run(payment) : operation.refuse(refused)
      const unfit = operation.refusalOf(given)
      // What could not be judged, for want of a ledger or a database, is no verification.
      if (operation.name === "verify" && (unfit === undefined || schemes.statusOf(unfit.reason) < 500))
        yield* extensions.judged(unfit === undefined)
      if (refused !== undefined) return answer(operation, given, into)
      yield* Metric.update(
        Metric.withAttributes(answersTotal, { operation: operation.name, word: operation.wordOf(given) }),
        1
      )
      const observable = operation.observable(given)
      const header =
        observable === undefined
          ? Option.none<string>()
          : yield* observePayment(
              extensions,
              { payment, stage: operation.name === "verify" ? "verified" : "settled", ...observable },
              scope
            )
      return answer(
        operation,
        given,
        into,
        Option.match(header, { onNone: () => ({}), onSome: (value) => ({ "extension-responses": value }) })
      )
    })

    const verify: Operation<VerifyAnswer> = {
      name: "verify",
      run: facilitator.verify,
      refuse: (refused) => refused,
      encode: encodeVerify,
      refusalOf: (given) => (isRefusal(given) ? given : undefined),
      wordOf: (given) => (isRefusal(given) ? given.reason : "ok"),
      observable: (given) => (isRefusal(given) ? undefined : { payer: given.payer, transaction: Option.none() })
    }
    const settle: Operation<SettleAnswer> = {
      name: "settle",
      run: facilitator.settle,
      refuse: (refused) => ({ _tag: "Failed", refusal: refused, transaction: Option.none() }),
      encode: encodeSettle,
      refusalOf: (given) => (given._tag === "Failed" ? given.refusal : undefined),
      wordOf: (given) => (given._tag === "Failed" ? given.refusal.reason : given._tag === "Pending" ? "pending" : "ok"),
      observable: (given) =>
        given._tag === "Settled" ? { payer: given.payer, transaction: Option.some(given.transaction) } : undefined
    }

    const keyed = (run: (request: Request, principal: Principal) => Effect.Effect<Response>) => (request: Request) =>
      Option.match(callers.identify(request), {
        onNone: () => Effect.succeed(json({ error: "unauthorized" }, { status: 401, headers: unauthorizedHeaders })),
        onSome: (principal) => run(request, principal)
      })

    const settlements = keyed((request, principal) =>
      Effect.gen(function* () {
        const params = new URL(request.url, "http://localhost").searchParams
        const identifier = params.get("identifier")
        const hash = params.get("hash")
        const valid =
          identifier !== null
            ? /^[A-Za-z0-9_-]{16,128}$/.test(identifier)
            : hash !== null && /^[0-9a-f]{64}$/.test(hash)
        if (!valid || (identifier !== null && hash !== null)) {
          return json(
            { error: "invalid_request", details: ["one of identifier and hash (64 hex) is required"] },
            { status: 400 }
          )
        }
        const found = yield* facilitator.lookup(principal, identifier !== null ? { identifier } : { hash: hash! })
        // Not knowing is not the same as there being none: who reads “not found” may pay again.
        if (Option.isNone(found))
          return json({ error: "temporarily_unavailable" }, { status: 503, headers: { "retry-after": "1" } })
        const records = found.value
        const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
        return records.length === 0
          ? json({ error: "not_found" }, { status: 404 })
          : json({ items: records.map((record) => encodeSettlementState(record, words.dialects[0], now)) })
      })
    )

    yield* router.add("POST", "/verify", handle(verify, limits.verifyPerSecond))
    yield* router.add("POST", "/settle", handle(settle, limits.settlePerSecond))
    yield* router.add(
      "GET",
      "/supported",
      keyed(() =>
        Effect.sync(() => json(encodeSupported({ channelCount, schemes, extensions, network, signer, words })))
      )
    )
    yield* router.add("GET", "/settlements", settlements)
    yield* extensions.declare("payment-identifier")
  })
)
