// The payment routes: /verify, /settle, /supported, /settlements. Each answer has the payment's shape, errors included,
// in the spelling of the request. The routes only read, check, call the facilitator and write. The work runs in its own
// fiber, so a client that hangs up interrupts only its own wait.
import { Effect, Layer, Option } from "effect"
import { Hex } from "effect/encoding"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import { Limits } from "../../config/Limits.ts"
import { Network } from "../../config/Network.ts"
import { Server } from "../../config/Server.ts"
import { WireVocabulary } from "../../config/WireVocabulary.ts"
import { parseJsonWithMembers } from "../../http/BoundedJson.ts"
import { readIdempotencyKey } from "../../http/idempotencyKey.ts"
import { Authentication, type Principal } from "../../http/Authentication.ts"
import { json } from "../../http/httpMiddleware.ts"
import { makeCompressed, makeRendered } from "../../http/rendered.ts"
import { noteUnsafe, type RequestFacts } from "../../http/RequestNotes.ts"
import { OpenApi } from "../../http/OpenApi.ts"
import { makeRateLimit } from "../../http/RateLimit.ts"
import { addRoutes, route } from "../../http/Route.ts"
import { readBody } from "../../http/readBody.ts"
import { Crypto } from "../../platform/Crypto.ts"
import type { SettlementRecord } from "../../settlement/store/Settlements.ts"
import { ChannelCount } from "../../settlement/channels/ChannelCount.ts"
import { measure, measureUnsafe } from "../../telemetry/Measure.ts"
import { traffic } from "../../telemetry/metrics.ts"
import { Signer } from "../../signer/Signer.ts"
import type { SettleAnswer, VerifyAnswer } from "../Answer.ts"
import { type CheckContext, checkEnvelope } from "../checkEnvelope.ts"
import { Extensions } from "../Extension.ts"
import { Facilitator } from "../Facilitator.ts"
import { observePayment } from "../observePayment.ts"
import { makeSettledExtensions } from "../settledExtensions.ts"
import type { Payment } from "../Payment.ts"
import { coreReasons, isRefusal, type Refusal, refusal } from "../Refusal.ts"
import { isUntimedFor, Schemes, weightOf } from "../Scheme.ts"
import { makeDeliverSuccess } from "./deliverSuccess.ts"
import { lookupSettlements } from "./settlementState.ts"
import { encodeSupported } from "./supported.ts"
import { explainReasons } from "../reasons.ts"
import {
  describePayments,
  paymentRoutes,
  reasonsRoute,
  settleRoute,
  settlementsRoute,
  supportedRoute,
  verifyRoute
} from "../wire/description.ts"
import { type AnswerIn, answerIn, decodePayment, encodeSettle, encodeVerify, extensionsPath } from "../wire/Wire.ts"

type Response = HttpServerResponse.HttpServerResponse
type Request = HttpServerRequest.HttpServerRequest

/** One of the two payment operations: the parts that differ in HTTP. */
interface Operation<A> {
  readonly name: "verify" | "settle"
  readonly run: (payment: Payment) => Effect.Effect<A>
  readonly refuse: (refused: Refusal) => A
  readonly encode: (answer: A, into: AnswerIn) => Readonly<Record<string, unknown>>
  readonly refusalOf: (answer: A) => Refusal | undefined
  readonly reasonOf: (answer: A) => string
  /** Fields of the answer for the request's log line. */
  readonly factsOf: (answer: A) => RequestFacts
  /** The recorded outcome of a success that hooks may add to. */
  readonly settledBy: (answer: A) => SettlementRecord | undefined
  /** The payer when the decision lets extensions observe the payment. */
  readonly observable: (
    answer: A
  ) => { readonly payer: string; readonly transaction: Option.Option<string> } | undefined
}

const unauthorizedHeaders = { "www-authenticate": "Bearer" }

const factsOfRefusal = ({ payer, reason }: Refusal): RequestFacts => ({
  reason,
  ...Option.match(payer, { onNone: () => ({}), onSome: (payer) => ({ payer }) })
})

const transactionOf = (transaction: Option.Option<string>): RequestFacts =>
  Option.match(transaction, { onNone: () => ({}), onSome: (transaction) => ({ transaction }) })

const verifying = (run: Facilitator["Service"]["verify"]): Operation<VerifyAnswer> => ({
  name: "verify",
  run,
  refuse: (refused) => refused,
  encode: encodeVerify,
  refusalOf: (given) => (isRefusal(given) ? given : undefined),
  reasonOf: (given) => (isRefusal(given) ? given.reason : "ok"),
  factsOf: (given) => (isRefusal(given) ? factsOfRefusal(given) : { payer: given.payer }),
  settledBy: () => undefined,
  observable: (given) => (isRefusal(given) ? undefined : { payer: given.payer, transaction: Option.none() })
})

const settling = (run: Facilitator["Service"]["settle"]): Operation<SettleAnswer> => ({
  name: "settle",
  run,
  refuse: (refused) => ({ _tag: "Failed", refusal: refused, transaction: Option.none() }),
  encode: encodeSettle,
  refusalOf: (given) => (given._tag === "Failed" ? given.refusal : undefined),
  reasonOf: (given) => (given._tag === "Failed" ? given.refusal.reason : given._tag === "Pending" ? "pending" : "ok"),
  factsOf: (given) =>
    given._tag === "Failed"
      ? { ...factsOfRefusal(given.refusal), ...transactionOf(given.transaction) }
      : {
          payer: given.payer,
          transaction: given.transaction,
          ...(given._tag === "Pending" ? { reason: "pending" } : {})
        },
  settledBy: (given) => (given._tag === "Settled" ? given.record : undefined),
  observable: (given) =>
    // A payment without a transaction is not a sale on the ledger.
    given._tag === "Settled" && given.transaction !== ""
      ? { payer: given.payer, transaction: Option.some(given.transaction) }
      : undefined
})

/** A busy facilitator's estimate is in its body; a refusal that ends with time has the true wait. */
const retryAfter = (status: number, millis: number | undefined): Headers =>
  status === 503
    ? { "retry-after": "1" }
    : millis === undefined
      ? {}
      : { "retry-after": String(Math.ceil(millis / 1_000)) }

type Headers = Readonly<Record<string, string>>

/** The part of a request that was read before its answer. */
interface RequestContext {
  readonly principal?: Principal
  readonly payment?: Payment
}

interface ExtensionAdditions {
  readonly headers?: Headers
  /** For the body. */
  readonly extensions?: Readonly<Record<string, unknown>> | undefined
}
const nothingAdded: ExtensionAdditions = {}

/**
 * Every answer is counted by its reason and appears in the request's log line, however early it was given. A refusal is
 * also counted by its key, and passed to the watchers. Reasons and key labels come from this service, so they may be
 * metric labels.
 */
const makeReported = Effect.map(Extensions, (extensions) => {
  const labelOf = makeLabels()
  return <A>(
    { factsOf, name, reasonOf, refusalOf }: Operation<A>,
    given: A,
    context: RequestContext
  ): Effect.Effect<void> =>
    Effect.withFiber((fiber) => {
      const facts = factsOf(given)
      noteUnsafe(fiber, facts)
      measureUnsafe(fiber, traffic.answers, 1, { operation: name, reason: reasonOf(given) })
      const refused = refusalOf(given)
      if (refused === undefined) return Effect.void
      const { message, payer, reason } = refused
      const principal = context.principal?.owner
      measureUnsafe(fiber, traffic.refusals, 1, { operation: name, reason, principal: labelOf(principal) })
      return extensions.refused({
        operation: name,
        reason,
        message,
        principal: Option.fromUndefinedOr(principal),
        payer,
        transaction: Option.fromUndefinedOr(facts.transaction ?? refused.transaction),
        payment: Option.fromUndefinedOr(context.payment)
      })
    })
})

/** Maximum number of keys with a separate label. */
const labelsMax = 50

/** A key's label, `anonymous`, `none`, or `other` for the keys beyond the first fifty. */
const makeLabels = () => {
  const labels = new Set<string>(["anonymous", "none"])
  return (owner: string | undefined): string => {
    const label = (owner ?? "none").replace(/^key:/, "")
    if (labels.size >= labelsMax + 2 && !labels.has(label)) return "other"
    labels.add(label)
    return label
  }
}

/** Writes answers of an operation, with the status that the reason's owner registered. */
const makeAnswering = Effect.gen(function* () {
  const schemes = yield* Schemes
  const words = yield* WireVocabulary
  const reported = yield* makeReported
  const unread: AnswerIn = { dialect: words.dialects[0], network: "", words }

  const answer = <A>(
    operation: Operation<A>,
    given: A,
    into: AnswerIn,
    added: ExtensionAdditions = nothingAdded
  ): Response => {
    const refused = operation.refusalOf(given)
    const status = refused === undefined ? 200 : schemes.statusOf(refused.reason)
    const body = operation.encode(given, into)
    return json(added.extensions === undefined ? body : { ...body, extensions: added.extensions }, {
      status,
      headers: { ...retryAfter(status, refused?.retryAfterMillis), ...added.headers }
    })
  }

  return {
    answer,
    reported,
    /** A refusal before the payment was read. */
    refuseEarly: <A>(operation: Operation<A>, principal: Principal, refused: Refusal, headers?: Headers) => {
      const given = operation.refuse(refused)
      return Effect.as(
        reported(operation, given, { principal }),
        answer(operation, given, unread, headers && { headers })
      )
    },
    unauthorized: <A>(operation: Operation<A>) => {
      const given = operation.refuse(refusal("unauthorized", "a listed bearer key is required"))
      const body = { ...operation.encode(given, unread), error: "unauthorized" }
      return Effect.as(reported(operation, given, {}), json(body, { status: 401, headers: unauthorizedHeaders }))
    }
  }
})

/** Runs the extensions and counts; returns their additions, if any. */
const makeObserving = Effect.gen(function* () {
  const schemes = yield* Schemes
  const extensions = yield* Extensions
  const scope = yield* Effect.scope
  const settledExtensions = yield* makeSettledExtensions

  /**
   * A payment that could not be checked, without a ledger, a database or a budget, does not count as a verification.
   */
  const countVerified = Effect.fnUntraced(function* <A>({ name, refusalOf }: Operation<A>, given: A) {
    const unfit = refusalOf(given)
    const isChecked = unfit === undefined || (unfit.resetAtMillis === undefined && schemes.statusOf(unfit.reason) < 500)
    if (name === "verify" && isChecked) yield* extensions.verified(unfit === undefined)
  })

  const authorization = (payment: Payment) => (): Option.Option<string> =>
    Option.flatMap(schemes.find(payment.requirements.scheme), (scheme) =>
      Option.map(scheme.authorization(payment), ({ key }) => {
        const nonce = scheme.nonces.nonceOf(key)
        const once = nonce === undefined || nonce === "none" ? key : `${nonce.address} ${nonce.nonce}`
        return `${payment.requirements.network} ${scheme.scheme} ${once}`
      })
    )

  const answered = Effect.fnUntraced(function* <A>(operation: Operation<A>, payment: Payment, given: A) {
    const observable = operation.observable(given)
    if (observable === undefined) return nothingAdded
    const record = operation.settledBy(given)
    const added = record === undefined ? undefined : yield* settledExtensions({ payment, record })
    const stage = operation.name === "verify" ? "verified" : "settled"
    const observation = { payment, stage, authorization: authorization(payment), ...observable } as const
    const header = yield* observePayment(extensions, observation, scope)
    return {
      extensions: added,
      headers: Option.match(header, { onNone: () => ({}), onSome: (value) => ({ "extension-responses": value }) })
    }
  })

  return { countVerified, answered }
})

/** Takes further tokens of the caller's rate; the seconds to wait for them. */
type Take = (tokens: number) => Effect.Effect<number>
const limited = refusal("rate_limited", "too many requests")
const retryIn = (seconds: number): Headers => ({ "retry-after": String(seconds) })
const wrongKey = refusal("invalid_request", "Idempotency-Key is not 16 to 128 visible ASCII characters")

/** Reads a caller's payment, verifies or settles it, and answers. */
const makeRun = Effect.gen(function* () {
  const schemes = yield* Schemes
  const network = yield* Network
  const server = yield* Server
  const words = yield* WireVocabulary
  const crypto = yield* Crypto
  const digest = (key: string) => Hex.encode(crypto.sha256(new TextEncoder().encode(key)))
  const { answer, refuseEarly, reported } = yield* makeAnswering
  const { answered, countVerified } = yield* makeObserving
  const context: CheckContext = {
    network,
    hasScheme: (scheme) => Option.isSome(schemes.find(scheme)),
    isUntimed: (payment) => Option.exists(schemes.find(payment.requirements.scheme), isUntimedFor(payment))
  }

  return Effect.fnUntraced(function* <A>(operation: Operation<A>, request: Request, principal: Principal, take: Take) {
    const key = readIdempotencyKey(request.headers["idempotency-key"])
    if (key === undefined) return yield* refuseEarly(operation, principal, wrongKey)
    const body = yield* Effect.result(
      Effect.flatMap(readBody(request, server.requestBytesMax), (bytes) => parseJsonWithMembers(bytes, extensionsPath))
    )
    if (body._tag === "Failure") {
      const tooLarge = body.failure._tag === "BodyRefused" && body.failure.status === 413
      const refused = refusal(tooLarge ? "request_too_large" : "invalid_request", body.failure.message)
      return yield* refuseEarly(operation, principal, refused)
    }
    const { dropped, value } = body.success
    const idempotencyKey = Option.getOrUndefined(Option.map(key, digest))
    const payment = decodePayment(value, { principal, words, crypto, dropped, idempotencyKey })
    if ("_tag" in payment) {
      const into = { dialect: payment.dialect ?? words.dialects[0], network: payment.network, words }
      const given = operation.refuse(payment.refusal)
      yield* reported(operation, given, { principal })
      return answer(operation, given, into)
    }
    const into = answerIn(payment, words)
    const refused = checkEnvelope(payment, context)
    const wait = refused === undefined ? yield* take(weightOf(schemes, payment) - 1) : 0
    if (wait > 0) return yield* refuseEarly(operation, principal, limited, retryIn(wait))
    const given = refused === undefined ? yield* operation.run(payment) : operation.refuse(refused)
    yield* reported(operation, given, { principal, payment })
    yield* countVerified(operation, given)
    if (refused !== undefined) return answer(operation, given, into)
    return answer(operation, given, into, yield* answered(operation, payment, given))
  })
})

export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const facilitator = yield* Facilitator
    const schemes = yield* Schemes
    const extensions = yield* Extensions
    const callers = yield* Authentication
    const network = yield* Network
    const limits = yield* Limits
    const words = yield* WireVocabulary
    const signer = yield* Signer
    const channelCount = yield* ChannelCount
    const { refuseEarly, unauthorized } = yield* makeAnswering
    const run = yield* makeRun
    const { answerNow, within } = yield* makeDeliverSuccess
    // Registered at 0, so that an alert sees the first of each.
    for (const operation of ["verify", "settle"])
      for (const { reason } of coreReasons) yield* measure(traffic.answers, 0, { operation, reason })

    const handle = <A>(operation: Operation<A>, perSecond: () => number) => {
      const takeToken = makeRateLimit(perSecond)
      return Effect.fnUntraced(function* (request: Request) {
        const caller = callers.authenticate(request)
        if (Option.isNone(caller)) return yield* unauthorized(operation)
        const wait = yield* takeToken(caller.value.source)
        if (wait > 0) return yield* refuseEarly(operation, caller.value, limited, retryIn(wait))
        // At most a burst, which is twice the rate: the costliest payload waits, and is not refused for good.
        const take: Take = (tokens) => takeToken(caller.value.source, Math.min(tokens, 2 * perSecond() - 1))
        const answering = run(operation, request, caller.value, take)
        return yield* operation.name === "settle" ? within(request, answering) : answering
      })
    }

    const keyed = (run: (request: Request, principal: Principal) => Effect.Effect<Response>) => (request: Request) =>
      Option.match(callers.authenticate(request), {
        onNone: () => Effect.succeed(json({ error: "unauthorized" }, { status: 401, headers: unauthorizedHeaders })),
        onSome: (principal) => run(request, principal)
      })

    const settle = (payment: Payment) => Effect.flatMap(facilitator.settle(payment), answerNow)
    const asJson = { contentType: "application/json", headers: { "cache-control": "no-cache" } }
    const supported = makeRendered(yield* Crypto, asJson)
    const reasons = makeCompressed(yield* Crypto, asJson)
    const supportedText = (owner: string) =>
      JSON.stringify(encodeSupported({ channelCount, schemes, extensions, network, owner, signer, words }))
    const reasonsText = () => JSON.stringify({ items: explainReasons(schemes.reasons(), words.dialects[0]) })
    yield* addRoutes(paymentRoutes, [
      // The document has these two with the bodies of the registered schemes (`describePayments`).
      route(
        verifyRoute,
        handle(verifying(facilitator.verify), () => limits.verifyPerSecond)
      ),
      route(
        settleRoute,
        handle(settling(settle), () => limits.settlePerSecond)
      ),
      route(
        supportedRoute,
        keyed((request, { owner }) => Effect.sync(() => supported(request, supportedText(owner))))
      ),
      route(reasonsRoute, (request) => reasons(request, reasonsText())),
      route(settlementsRoute, keyed(yield* lookupSettlements))
    ])
    yield* (yield* OpenApi).describe(() => describePayments(schemes.all().map(({ scheme }) => scheme)))
    yield* extensions.declare("payment-identifier")
  })
)
