// The verify and settle bodies on the wire. In: a parsed body becomes a Payment, or an issue names the invalid field;
// unknown fields are ignored at every level; networks and extension keys are read in either spelling. Out: answers in
// the spelling of the request, all in the payment's shape (S49–S58, rules 1 and 2).
import { Option, Predicate } from "effect"
import { Hex } from "effect/encoding"
import type { WireVocabularyValues } from "../../config/WireVocabulary.ts"
import { type Dialect, neutralExtension, readNetwork, encodeNetwork, encodeReason } from "../../Dialect.ts"
import type { Principal } from "../../http/Authentication.ts"
import type { Crypto } from "../../platform/Crypto.ts"
import { canonicalJson } from "./canonicalJson.ts"
import type { AnswerExtra, SettleAnswer, VerifyAnswer } from "../Answer.ts"
import type { SettleBody, VerifyBody } from "./BodyWire.ts"
import type { Payment, Terms } from "../Payment.ts"
import { isRefusal, type Refusal, refusal } from "../Refusal.ts"

type Fields = Readonly<Record<string, unknown>>

const isFields = (value: unknown): value is Fields => Predicate.isObject(value) && !Array.isArray(value)

/**
 * The body is not an envelope, or has an unsupported version. Carries the spelling of the answer, if it is already
 * determined.
 */
export interface Undecodable {
  readonly _tag: "Undecodable"
  readonly refusal: Refusal
  readonly dialect: Dialect | undefined
  /** The network in the form that was sent, for the answer. */
  readonly network: string
}

const decimal = /^(0|[1-9][0-9]{0,38})$/

/** Thrown inside this file only: the first invalid field. */
class Wrong {
  readonly reason: string
  readonly message: string
  /** Not an Error, because capturing its stack would cost more than the reading. */
  constructor(reason: string, message: string) {
    this.reason = reason
    this.message = message
  }
}

const malformed = (path: string, expected: string): Wrong =>
  new Wrong("invalid_request", `${path}: ${expected} is required`)

const fieldsAt = (value: unknown, path: string): Fields => {
  if (isFields(value)) return value
  throw malformed(path, "an object")
}

const textAt = (fields: Fields, key: string, path: string): string => {
  const value = fields[key]
  if (typeof value === "string" && value.length > 0 && value.length <= 512) return value
  throw malformed(`${path}.${key}`, "a string of 1 to 512 characters")
}

const versionAt = (value: unknown, path: string): void => {
  if (!Number.isInteger(value)) throw malformed(path, "an integer")
  if (value !== 2) throw new Wrong("invalid_x402_version", `${path} is not 2`)
}

const termsAt = (value: unknown, path: string, network: Terms["network"]): Terms => {
  const fields = fieldsAt(value, path)
  if (!isKept(fields)) throw malformed(path, "text without NUL and unpaired surrogates")
  const { amount, extra, maxTimeoutSeconds } = fields
  if (typeof amount !== "string") throw malformed(`${path}.amount`, "a string")
  if (typeof maxTimeoutSeconds !== "number" || !Number.isSafeInteger(maxTimeoutSeconds) || maxTimeoutSeconds < 0) {
    throw malformed(`${path}.maxTimeoutSeconds`, "a positive integer as a rule")
  }
  if (extra !== undefined && extra !== null && !isFields(extra)) throw malformed(`${path}.extra`, "an object")
  return {
    scheme: textAt(fields, "scheme", path),
    network,
    asset: textAt(fields, "asset", path),
    amount: decimal.test(amount) ? Option.some(BigInt(amount)) : Option.none(),
    amountText: amount.slice(0, 64),
    payTo: textAt(fields, "payTo", path),
    maxTimeoutSeconds,
    extra: extra ?? {}
  }
}

/**
 * An address that can be stored as text; any other (with a NUL, half a surrogate pair, or too long) counts as absent.
 */
const addressOf = (url: unknown): Option.Option<string> =>
  typeof url === "string" && url.length <= 4_096 && url.isWellFormed() && !/\p{Cc}/u.test(url)
    ? Option.some(url)
    : Option.none()

const identifierPattern = /^[A-Za-z0-9_-]{16,128}$/

const readIdentifier = (extension: unknown): Option.Option<string> => {
  if (!isFields(extension)) return Option.none()
  const info = isFields(extension["info"]) ? extension["info"] : extension
  const { id, required } = info
  if (id === undefined || id === null) {
    if (required === true)
      throw new Wrong("payment_identifier_required", "extensions.payment-identifier: an id is required")
    return Option.none()
  }
  if (typeof id !== "string" || !identifierPattern.test(id)) {
    throw malformed("paymentPayload.extensions.payment-identifier.info.id", "16 to 128 of A-Z a-z 0-9 _ -")
  }
  return Option.some(id)
}

/** `dropped`: keys, as sent, of extensions that were not JSON within the bounds. */
const readExtensions = (value: unknown, dropped: ReadonlySet<string>): Payment["extensions"] => {
  if (!isFields(value)) return new Map()
  const extensions: Payment["extensions"] = new Map([
    ...Object.entries(value).map(([sentKey, value]) => [neutralExtension(sentKey), { sentKey, value }] as const),
    ...[...dropped].map(
      (sentKey) => [neutralExtension(sentKey), { sentKey, value: undefined, isDropped: true as const }] as const
    )
  ])
  return extensions
}

/** The path of the extensions in a body: an issue inside one drops it and never stops a payment (rules 2). */
export const extensionsPath = ["paymentPayload", "extensions"] as const

/** Text that a database can store: without NUL and without half a surrogate pair. This includes keys. */
const isKept = (value: unknown): boolean => {
  if (typeof value === "string") return value.isWellFormed() && !value.includes("\u0000")
  if (Array.isArray(value)) return value.every(isKept)
  return !isFields(value) || Object.entries(value).every(([key, item]) => isKept(key) && isKept(item))
}

/**
 * sha256 of canonical {envelope, accepted, requirements, resource.url}, networks neutral, all from the raw JSON
 * (rules 2).
 */
const fingerprintOf = (
  crypto: Crypto["Service"],
  body: Fields,
  payload: Fields,
  network: string,
  requiredAmount?: bigint
): string => {
  const neutral = (terms: unknown): unknown => (isFields(terms) ? { ...terms, network } : terms)
  const required = neutral(body["paymentRequirements"])
  const resource = isFields(payload["resource"]) ? payload["resource"]["url"] : undefined
  const canonical = canonicalJson({
    accepted: neutral(payload["accepted"]),
    payload: payload["payload"],
    requirements:
      requiredAmount === undefined || !isFields(required)
        ? required
        : { ...required, amount: requiredAmount.toString() },
    resource: resource ?? null
  })
  return Hex.encode(crypto.sha256(new TextEncoder().encode(canonical)))
}

export interface DecodeOptions {
  readonly principal: Principal
  readonly words: WireVocabularyValues
  readonly crypto: Crypto["Service"]
  /** sha256 hex of the call's `Idempotency-Key`. */
  readonly idempotencyKey?: string | undefined
  /** Keys of extensions that the parser dropped. */
  readonly dropped?: ReadonlySet<string>
}

/**
 * A payment that computes its fingerprint on first use: a verification without an identifier does not need it. It is a
 * class, because a getter of each object would give each payment a separate hidden class: every reader would then look
 * up each member again, and the hidden class keeps the payment in memory until all of that is collected.
 */
class PaymentRead implements Payment {
  readonly dialect: Payment["dialect"]
  readonly principal: Payment["principal"]
  readonly requirements: Payment["requirements"]
  readonly accepted: Payment["accepted"]
  readonly payload: Payment["payload"]
  readonly resource: Payment["resource"]
  readonly resourceUrl: Payment["resourceUrl"]
  readonly extensions: Payment["extensions"]
  readonly identifier: Payment["identifier"]
  readonly idempotencyKey: string | undefined
  readonly #makeFingerprint: (requiredAmount?: bigint) => string
  #fingerprint: string | undefined

  constructor(
    makeFingerprint: (requiredAmount?: bigint) => string,
    read: Omit<Payment, "fingerprint" | "fingerprintFor">
  ) {
    this.dialect = read.dialect
    this.principal = read.principal
    this.requirements = read.requirements
    this.accepted = read.accepted
    this.payload = read.payload
    this.resource = read.resource
    this.resourceUrl = read.resourceUrl
    this.extensions = read.extensions
    this.identifier = read.identifier
    this.idempotencyKey = read.idempotencyKey
    this.#makeFingerprint = makeFingerprint
  }

  get fingerprint(): string {
    return (this.#fingerprint ??= this.#makeFingerprint())
  }

  fingerprintFor(requiredAmount: bigint): string {
    return this.#makeFingerprint(requiredAmount)
  }
}

export const decodePayment = (body: unknown, options: DecodeOptions): Payment | Undecodable => {
  let dialect: Dialect | undefined
  let sentNetwork = ""
  try {
    const envelope = fieldsAt(body, "body")
    const requirementsFields = fieldsAt(envelope["paymentRequirements"], "paymentRequirements")
    sentNetwork = textAt(requirementsFields, "network", "paymentRequirements")
    const required = Option.getOrUndefined(readNetwork(sentNetwork))
    dialect = required?.dialect
    versionAt(envelope["x402Version"], "x402Version")
    const payload = fieldsAt(envelope["paymentPayload"], "paymentPayload")
    versionAt(payload["x402Version"], "paymentPayload.x402Version")
    const acceptedFields = fieldsAt(payload["accepted"], "paymentPayload.accepted")
    const acceptedNetwork = textAt(acceptedFields, "network", "paymentPayload.accepted")
    if (required === undefined || !options.words.dialects.includes(required.dialect)) {
      throw new Wrong("unsupported_network", "paymentRequirements.network is not served here")
    }
    const accepted = Option.getOrUndefined(readNetwork(acceptedNetwork))
    if (accepted?.network !== required.network) {
      throw new Wrong("network_mismatch", "paymentPayload.accepted.network and paymentRequirements.network differ")
    }
    const resource = isFields(payload["resource"]) ? payload["resource"] : {}
    const extensions = readExtensions(payload["extensions"], options.dropped ?? new Set())
    const makeFingerprint = (requiredAmount?: bigint) =>
      fingerprintOf(options.crypto, envelope, payload, required.network, requiredAmount)
    return new PaymentRead(makeFingerprint, {
      dialect: required.dialect,
      principal: options.principal,
      requirements: termsAt(requirementsFields, "paymentRequirements", required.network),
      accepted: termsAt(acceptedFields, "paymentPayload.accepted", required.network),
      payload: fieldsAt(payload["payload"], "paymentPayload.payload"),
      resource,
      resourceUrl: addressOf(resource["url"]),
      extensions,
      identifier: readIdentifier(extensions.get("payment-identifier")?.value),
      idempotencyKey: options.idempotencyKey
    })
  } catch (error) {
    if (!(error instanceof Wrong)) throw error
    return {
      _tag: "Undecodable",
      refusal: refusal(error.reason, error.message),
      dialect,
      network: sentNetwork.slice(0, 64)
    }
  }
}

/** The spelling and the network of an answer. */
export interface AnswerIn {
  readonly dialect: Dialect
  readonly network: string
  readonly words: WireVocabularyValues
}

export const answerIn = (payment: Payment, words: WireVocabularyValues): AnswerIn => ({
  dialect: payment.dialect,
  network: encodeNetwork(payment.requirements.network, payment.dialect),
  words
})

const payerField = (payer: Option.Option<string>) =>
  Option.match(payer, { onNone: () => ({}), onSome: (payer) => (payer === "" ? {} : { payer }) })

const retryFields = ({ resetAtMillis, retryAfterMillis }: Refusal) => ({
  ...(retryAfterMillis === undefined ? {} : { retryAfterMs: retryAfterMillis }),
  ...(resetAtMillis === undefined ? {} : { resetAt: new Date(resetAtMillis).toISOString() })
})

const extraField = (extra: AnswerExtra | undefined) => (extra === undefined ? {} : { extra })

const livesUntil = ({ authorizationLivesUntilLedger }: Refusal) =>
  authorizationLivesUntilLedger === undefined ? {} : { authorizationLivesUntilLedger }

export const encodeVerify = (answer: VerifyAnswer, { dialect }: AnswerIn): typeof VerifyBody.Type =>
  isRefusal(answer)
    ? {
        isValid: false,
        invalidReason: encodeReason(answer.reason, dialect),
        invalidMessage: answer.message,
        ...payerField(answer.payer),
        ...retryFields(answer),
        ...livesUntil(answer),
        ...(answer.transaction === undefined ? {} : { transaction: answer.transaction })
      }
    : { isValid: true, payer: answer.payer, ...extraField(answer.extra) }

const unknownReason = "settle_ledger_transaction_status_unknown"

export const encodeSettle = (answer: SettleAnswer, { dialect, network, words }: AnswerIn): typeof SettleBody.Type => {
  switch (answer._tag) {
    case "Settled":
      return {
        success: true,
        ...(answer.hasBuyer === false ? {} : { payer: answer.payer }),
        transaction: answer.transaction,
        network,
        amount: answer.amount === undefined ? "" : answer.amount.toString(),
        ...(answer.asset === undefined ? {} : { asset: answer.asset }),
        ...extraField(answer.extra)
      }
    case "Pending": {
      const spelled = encodeReason(unknownReason, dialect)
      const pending = dialect === "stellar" ? words.stellarPendingReason : spelled
      const why = answer.why ?? "the outcome is not known yet; ask again with the same payment"
      const message = pending === spelled ? why : spelled
      return {
        success: false,
        errorReason: pending,
        errorMessage: message,
        payer: answer.payer,
        transaction: answer.transaction,
        network
      }
    }
    case "Failed":
      return {
        success: false,
        errorReason: encodeReason(answer.refusal.reason, dialect),
        errorMessage: answer.refusal.message,
        ...payerField(answer.refusal.payer),
        ...retryFields(answer.refusal),
        ...livesUntil(answer.refusal),
        transaction: Option.getOrElse(answer.transaction, () => ""),
        network
      }
  }
}
