// @ts-check
// Classifies a facilitator's answers, for every seller in this folder and in the folder above. After a settle was sent,
// only a known end is final: a success, or a refusal with a reason that rules out settlement. Every other answer (401,
// 429, 500, `{}`, a cut connection, no answer in time) leaves the payment pending. At verify, an answer without a
// verdict is the facilitator's fault, never the buyer's. No dependency; Node, Deno and Workers.
import { createHash } from "node:crypto"

/**
 * @typedef {{ success: boolean, transaction: string, network: string, payer?: string, errorReason?: string,
 *   extra?: any }} Receipt
 */
/** `retryAfter`: seconds. @typedef {{ cause: string, status: 502 | 503, remedy: string, retryAfter: number }} Fault */
/**
 * @typedef {{ state: "valid", answer: any }
 *   | { state: "refused", reason: string, transaction?: string }
 *   | { state: "unavailable", fault: Fault }} Verdict
 */
/**
 * `isUnsent`: the request never left this machine. `isUnrecorded`: the facilitator reports that it recorded nothing.
 * @typedef {{ state: "settled", receipt: Receipt }
 *   | { state: "ended", reason: string, receipt: Receipt }
 *   | { state: "pending", fault: Fault, receipt: Receipt, isUnsent: boolean, isUnrecorded: boolean }} End
 */
/** The result of a call: its answer, or its error. @typedef {{ answer: any } | { error: any }} Given */
/**
 * The payment part of an official FacilitatorClient, with the Idempotency-Key as a third argument.
 * @typedef {{
 *   verify: (payment: any, requirements: any, key?: string) => Promise<any>,
 *   settle: (payment: any, requirements: any, key?: string) => Promise<any>,
 *   url?: string
 * }} Client
 */

/** A facilitator answers a settle within 25 s. */
const answerMillis = 40_000
/** How long an unanswered settle is repeated before its payment becomes pending. */
const patienceMillis = 15_000
const pauseMillis = { first: 250, most: 2_000 }
const retrySeconds = { least: 1, most: 60 }

/** @param {string | Uint8Array} text */
export const sha256 = (text) => createHash("sha256").update(text).digest("hex")

/** A header of x402. @param {unknown} value */
export const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64")

/** A header's JSON; undefined for anything else. @param {string | null | undefined} header @returns {any} */
export const decode = (header) => {
  try {
    return header == null ? undefined : JSON.parse(Buffer.from(header, "base64").toString("utf8"))
  } catch {
    return undefined
  }
}

/** The facilitator's answer is missing, lacks a payment's shape, or is not about this payment. */
export class NoAnswer extends Error {
  /** @param {string} message @param {{ statusCode?: number, reason?: string, retryAfter?: number }} [about] */
  constructor(message, { reason, retryAfter, statusCode } = {}) {
    super(message)
    this.name = "NoAnswer"
    this.statusCode = statusCode
    this.reason = reason
    this.retryAfter = retryAfter
  }
}

/** Statuses of refusals that are about this payment or its request. */
const aboutPayment = new Set([200, 400, 409, 413])

/** @param {string} text */
const parsed = (text) => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * The two calls of a facilitator, each sent once. They reject if the answer is not about the payment.
 * @param {string} url @param {string} [apiKey]
 * @returns {Client & { url: string, createAuthHeaders: () => Promise<{ headers: Record<string, string> }> }}
 */
export const facilitatorAt = (url, apiKey) => {
  const headers = /** @type {Record<string, string>} */ (
    apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
  )
  /** @param {"verify" | "settle"} route @param {any} payment @param {any} requirements @param {string} [key] */
  const send = async (route, payment, requirements, key) => {
    const response = await fetch(`${url}/${route}`, {
      method: "POST",
      // The body is a signed payment, and goes to no other origin.
      redirect: "manual",
      headers: {
        "content-type": "application/json",
        ...headers,
        ...(key === undefined ? {} : { "idempotency-key": key })
      },
      body: JSON.stringify({ x402Version: 2, paymentPayload: payment, paymentRequirements: requirements }),
      signal: AbortSignal.timeout(answerMillis)
    })
    const answer = parsed(await response.text())
    const isShaped = typeof answer?.[route === "verify" ? "isValid" : "success"] === "boolean"
    if (isShaped && aboutPayment.has(response.status)) return answer
    const reason = isShaped ? (answer.invalidReason ?? answer.errorReason) : undefined
    const wait = Number(response.headers.get("retry-after") ?? Number.NaN)
    throw new NoAnswer(`${route} at ${url}: ${response.status} ${reason ?? "without a payment's answer"}`, {
      statusCode: response.status,
      ...(reason === undefined ? {} : { reason }),
      ...(Number.isFinite(wait) ? { retryAfter: wait } : {})
    })
  }
  return {
    url,
    createAuthHeaders: async () => ({ headers }),
    verify: (payment, requirements, key) => send("verify", payment, requirements, key),
    settle: (payment, requirements, key) => send("settle", payment, requirements, key)
  }
}

/**
 * An official client with a key among the headers that its method returns.
 * @param {any} client @param {string} [key]
 */
const withKey = (client, key) => {
  if (key === undefined || typeof client.createAuthHeaders !== "function") return client
  const createAuthHeaders = async (/** @type {string} */ route) => {
    const given = await client.createAuthHeaders(route)
    return { ...given, headers: { ...given?.headers, "Idempotency-Key": key } }
  }
  return Object.create(client, { createAuthHeaders: { value: createAuthHeaders } })
}

/**
 * One call of a facilitator, with the key of the sale.
 * @param {Client} client @param {"verify" | "settle"} route @param {any} payment @param {any} requirements
 * @param {string} [key] @returns {Promise<Given>}
 */
export const ask = async (client, route, payment, requirements, key) => {
  try {
    return { answer: await withKey(client, key)[route](payment, requirements, key) }
  } catch (error) {
    return { error }
  }
}

/** The request never left this machine, or the address does not listen. */
const neverSent = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "UND_ERR_CONNECT_TIMEOUT"])

/** Deno's message for a connection that failed; the error has no code. */
const isUnconnected = /client error \(Connect\)/

/** @param {any} error @returns {boolean} */
const wasNeverSent = (error) => {
  for (let at = error; at !== undefined && at !== null; at = at.cause)
    if (neverSent.has(at.code) || isUnconnected.test(at.message ?? "")) return true
  return false
}

/** Reasons for which the facilitator has recorded nothing and cannot decide this payment now. */
const unrecorded = new RegExp(
  "^((ledger|stellar)_unavailable|internal_error|rate_limited|unauthorized|" +
    "settle_(ledger|stellar)_(temporarily_unavailable|sponsor_budget_exceeded)|" +
    "invalid_batch_settlement_[a-z]+_(rpc_read_failed|channel_busy|verification_state_unavailable))$"
)

/** Reasons for which this payment will not settle. */
const knownEnd = new RegExp(
  "^((invalid|unsupported)_[a-z0-9_]+|network_mismatch|requirements_mismatch|insufficient_funds|request_too_large|" +
    "expired|payment_identifier_(required|conflict)|" +
    "settle_([a-z]+_)?(ledger|stellar)_(transaction_failed|transaction_expired|authorization_spent|already_settled|" +
    "signer_selection_failed|transaction_signing_failed|fee_bump_signing_failed))$"
)

/** The facilitator settled this authorization before, in either spelling. @param {unknown} reason */
export const isSettledBefore = (reason) => /^settle_(ledger|stellar)_already_settled$/.test(String(reason))

/** @type {ReadonlyArray<[string, 502 | 503, (status: number, reason: string) => boolean, string]>} */
const faults = [
  [
    "unauthorized",
    502,
    (status, reason) => status === 401 || status === 403 || reason === "unauthorized",
    "set the seller's API key to one that this facilitator lists"
  ],
  [
    "rate_limited",
    503,
    (status, reason) => status === 429 || reason === "rate_limited",
    "ask the facilitator's operator for a higher rate, or name a second facilitator"
  ],
  [
    "budget_exceeded",
    503,
    (_, reason) => /sponsor_budget_exceeded$/.test(reason),
    "ask the facilitator's operator to raise the fee budget, or name a second facilitator"
  ],
  [
    "not_a_facilitator",
    502,
    (status) => status === 404 || status === 405 || (status >= 300 && status < 400),
    "correct the facilitator's URL: no facilitator answers there"
  ],
  [
    "busy",
    503,
    (status, reason) => status === 503 || unrecorded.test(reason) || /pending$|status_unknown$/.test(reason),
    "wait; if it lasts, read the facilitator's /health/ready or name a second facilitator"
  ]
]
const unreachable = "start the facilitator, or correct its URL; a second facilitator would be asked meanwhile"
const broken = "read the facilitator's log, or what answers in its place"

/** Why a call gave no answer about the payment. @param {Given} given @returns {Fault} */
const faultOf = (given) => {
  const error = "error" in given ? given.error : undefined
  const answer = "answer" in given ? given.answer : undefined
  const reason = String(
    error?.reason ?? error?.errorReason ?? error?.invalidReason ?? answer?.errorReason ?? answer?.invalidReason ?? ""
  )
  // If the body lacks a payment's shape, the official client has the status only in its message.
  const status = Number(error?.statusCode ?? /failed \((\d{3})\)/.exec(error?.message ?? "")?.[1] ?? 0)
  const wait = Number(error?.retryAfter ?? retrySeconds.least)
  const retryAfter = Math.ceil(Math.min(retrySeconds.most, Math.max(retrySeconds.least, wait)))
  for (const [cause, code, fits, remedy] of faults)
    if (fits(status, reason)) return { cause, status: code, remedy, retryAfter }
  if (error !== undefined && status === 0 && error.reason === undefined) {
    const cause = wasNeverSent(error) ? "unreachable" : "no_answer"
    return { cause, status: 503, remedy: unreachable, retryAfter }
  }
  return { cause: "broken_answer", status: 502, remedy: broken, retryAfter }
}

/** @param {Given} given @returns {Verdict} */
export const readVerify = (given) => {
  const answer = "answer" in given ? given.answer : { isValid: false, ...given.error }
  if ("answer" in given && answer?.isValid === true) return { state: "valid", answer }
  const reason = answer?.invalidReason
  const isVerdict =
    typeof reason === "string" &&
    answer.isValid === false &&
    !unrecorded.test(reason) &&
    !/pending$|status_unknown$/.test(reason)
  // The official client throws a refusal with any status except 200.
  const isAbout = "answer" in given || aboutPayment.has(given.error?.statusCode)
  if (!isVerdict || !isAbout) return { state: "unavailable", fault: faultOf(given) }
  return { state: "refused", reason, ...(answer.transaction === undefined ? {} : { transaction: answer.transaction }) }
}

/** @param {Given} given @param {string} network @returns {End} */
export const readSettle = (given, network) => {
  const isThrown = "error" in given
  const answer = isThrown ? given.error : given.answer
  const transaction = typeof answer?.transaction === "string" ? answer.transaction : ""
  if (!isThrown && answer?.success === true && typeof answer.transaction === "string")
    return { state: "settled", receipt: answer }
  const reason = String(answer?.errorReason ?? answer?.reason ?? "")
  const payer = typeof answer?.payer === "string" ? { payer: answer.payer } : {}
  const isAbout = isThrown ? aboutPayment.has(answer?.statusCode) : answer?.success === false
  const isEnd = isAbout && knownEnd.test(reason) && !unrecorded.test(reason)
  if (isEnd) {
    const receipt = isThrown ? { success: false, errorReason: reason, transaction, network, ...payer } : answer
    return { state: "ended", reason, receipt }
  }
  return {
    state: "pending",
    fault: faultOf(given),
    receipt: { success: false, errorReason: "settlement_pending", transaction, network, ...payer },
    isUnsent: isThrown && wasNeverSent(answer),
    isUnrecorded: unrecorded.test(reason)
  }
}

/** @param {number} millis */
export const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis))

/**
 * Settles until the end is known or `patience` runs out, with the same payment and key each time.
 * @param {Client} client @param {any} payment @param {any} requirements @param {string} [key]
 * @param {number} [patience] milliseconds
 * @returns {Promise<End>}
 */
export const settleUntilKnown = async (client, payment, requirements, key, patience = patienceMillis) => {
  const begun = performance.now()
  let transaction = ""
  for (let wait = pauseMillis.first; ; wait = Math.min(pauseMillis.most, 2 * wait)) {
    const end = readSettle(await ask(client, "settle", payment, requirements, key), requirements.network)
    if (end.state !== "pending") return end
    // Keep the first hash: it identifies the payment, even if a later answer lacks it.
    transaction = end.receipt.transaction || transaction
    const left = patience - (performance.now() - begun)
    // A refused key stays refused until its owner acts.
    if (left < wait || end.fault.cause === "unauthorized") return { ...end, receipt: { ...end.receipt, transaction } }
    await pause(
      Math.min(left, Math.max(wait, end.fault.retryAfter > retrySeconds.least ? end.fault.retryAfter * 1_000 : 0))
    )
  }
}

/**
 * The purchase: `body`, or the arguments as canonical JSON for tools.
 * @typedef {{ method: string, url: string, body?: string | Uint8Array }} Asked
 */

/** @param {Asked} asked */
const linesOf = ({ body = "", method, url }) => `${method}\n${url}\n${sha256(body)}`

/** One request. @param {Asked} asked */
export const requestDigest = (asked) => sha256(linesOf(asked))

/**
 * The Idempotency-Key of a sale: one request with one payment, at one service. A caller chooses the host in its URL, so
 * only their names separate two services of one owner.
 * @param {Asked} asked @param {string | Uint8Array} bytes the payment as it was received @param {string} [service]
 */
export const saleKey = (asked, bytes, service = "") =>
  sha256(`tollkeeper-sale-v1\n${service === "" ? "" : `${sha256(service)}\n`}${linesOf(asked)}\n${sha256(bytes)}`)

/**
 * Counts causes for which a facilitator gave no answer. Logs one line when a cause begins, and again after a minute.
 * @param {(line: string) => void} [log]
 */
export const makeNotes = (log = console.error) => {
  const counters = /** @type {Record<string, number>} */ ({})
  const logged = /** @type {Map<string, number>} */ (new Map())
  return {
    counters,
    /** @param {"verify" | "settle"} route @param {string | undefined} url @param {Fault} fault */
    note: (route, url, { cause, remedy }) => {
      const name = `${route}_${cause}`
      const count = (counters[name] ?? 0) + 1
      counters[name] = count
      const now = performance.now()
      if (now - (logged.get(name) ?? -Infinity) < 60_000) return
      logged.set(name, now)
      log(`facilitator ${url ?? ""} gave no answer to ${route}: ${cause} (${count}); ${remedy}`)
    }
  }
}
