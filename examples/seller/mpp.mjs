// @ts-check
// The Machine Payments Protocol beside x402: the `charge` intent of its method `stellar`, with sponsored fees (pull
// mode). The buyer signs the same transfer as for x402's `exact`, so its credential becomes an `exact` payment and goes
// through the same sale. A challenge belongs to one request, expires, and is used for one payment. Its id is an HMAC
// over its members, so the seller stores nothing before a payment is valid.
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import { canonical, isPayment, nameOf } from "./sales.mjs"
import { requestDigest } from "./outcome.mjs"

/** @typedef {import("./outcome.mjs").Asked} Asked */
/** @typedef {import("./outcome.mjs").Client} Client */
/** @typedef {import("./stores.mjs").Store} Store */
/** @typedef {Record<string, string>} Challenge */
/** Why a credential pays nothing, as the protocol's type. @typedef {{ problem: string, status: 400 | 402 }} Unread */

/** Shortest secret, characters. */
const secretMin = 32
const hashBytes = 32
const method = "stellar"
const intent = "charge"
/** Members in the order of the HMAC. */
const bound = ["realm", "method", "intent", "request", "expires", "digest", "opaque"]

const toText = (/** @type {unknown} */ value) => Buffer.from(canonical(value)).toString("base64url")

/** @param {string} text @returns {any} */
const fromText = (text) => {
  try {
    return JSON.parse(Buffer.from(text, "base64url").toString("utf8"))
  } catch {
    return undefined
  }
}

/** The problem type for a refusal by the facilitator or by this seller. @param {string} reason */
export const problemOf = (reason) =>
  ["invalid-challenge", "payment-expired"].includes(reason)
    ? reason
    : reason.startsWith("settle_")
      ? "settlement-failed"
      : "verification-failed"

/**
 * `secret`: of at least 32 characters; a list signs with the first and accepts all, for rotation. `realm`: default the
 * request's host.
 * @typedef {{ secret: string | ReadonlyArray<string>, realm?: string }} MppOptions
 */

/**
 * @param {MppOptions} options
 * @param {{ scheme: string, network: string, asset: string, amount: string, payTo: string,
 *   maxTimeoutSeconds: number }} terms
 * @param {Store} store
 * @param {string} [description]
 */
export const makeCharge = ({ realm, secret }, terms, store, description) => {
  const secrets = [secret].flat()
  if (secrets.length === 0 || secrets.some((one) => one.length < secretMin))
    throw new Error(`mpp: a secret has at least ${secretMin} characters`)
  if (terms.scheme !== "exact") throw new Error("mpp: a charge has a fixed price, so its scheme is exact")
  const request = toText({
    amount: terms.amount,
    currency: terms.asset,
    ...(description === undefined ? {} : { description }),
    methodDetails: { feePayer: true, network: terms.network },
    recipient: terms.payTo
  })

  const idOf = (/** @type {Challenge} */ challenge, /** @type {string} */ key) =>
    createHmac("sha256", key)
      .update(bound.map((name) => challenge[name] ?? "").join("|"))
      .digest()

  /** A fresh challenge, as the value of `WWW-Authenticate`. @param {Asked} asked */
  const challenge = (asked) => {
    const { body = "" } = asked
    const made = /** @type {Challenge} */ ({
      realm: realm ?? new URL(asked.url).host,
      ...{ method, intent, request },
      expires: new Date(Date.now() + terms.maxTimeoutSeconds * 1_000).toISOString(),
      ...(body.length === 0 ? {} : { digest: `sha-256=:${createHash("sha256").update(body).digest("base64")}:` }),
      opaque: toText({ nonce: randomBytes(16).toString("base64url"), request: requestDigest(asked) })
    })
    const members = Object.entries({
      id: idOf(made, /** @type {string} */ (secrets[0])).toString("base64url"),
      ...made
    })
    return `Payment ${members.map(([name, value]) => `${name}="${value}"`).join(", ")}`
  }

  /**
   * The payment in an `Authorization` header for this request; undefined without the scheme `Payment`.
   * @param {string | null} header @param {Asked} asked
   * @returns {undefined | Unread | { payment: any, bytes: Buffer, challenge: Challenge }}
   */
  const read = (header, asked) => {
    const credential = /(?:^|,\s*)payment\s+([\w-]+)/i.exec(header ?? "")?.[1]
    if (credential === undefined) return undefined
    const { challenge: echoed, payload } = fromText(credential) ?? {}
    if (typeof echoed?.id !== "string" || typeof payload !== "object" || payload === null)
      return { problem: "malformed-credential", status: 402 }
    if (echoed.method !== method || echoed.intent !== intent) return { problem: "method-unsupported", status: 400 }
    const id = Buffer.from(echoed.id, "base64url")
    const isOurs = secrets.some((key) => id.length === hashBytes && timingSafeEqual(id, idOf(echoed, key)))
    if (!isOurs || fromText(echoed.opaque)?.request !== requestDigest(asked))
      return { problem: "invalid-challenge", status: 402 }
    if (payload.type !== "transaction") return { problem: "verification-failed", status: 402 }
    // This seller signed it, perhaps before its terms changed.
    const { amount, currency, description: text = "", methodDetails, recipient } = fromText(echoed.request)
    const payment = {
      x402Version: 2,
      resource: { url: asked.url, description: text, mimeType: "application/json" },
      accepted: { ...terms, amount, asset: currency, payTo: recipient, network: methodDetails.network },
      payload: { transaction: payload.transaction }
    }
    return isPayment(payment)
      ? { payment, bytes: Buffer.from(credential), challenge: echoed }
      : { problem: "malformed-credential", status: 402 }
  }

  /**
   * A client that also checks the challenge: it has these terms, it has not expired, and it is used for no other
   * payment. A sale that has begun is not verified again, so it continues after the challenge has expired.
   * @param {Client} client @param {Challenge} challenge @returns {Client}
   */
  const checked = (client, { expires = "", id = "", request: seen }) => ({
    ...(client.url === undefined ? {} : { url: client.url }),
    settle: client.settle,
    verify: async (payment, requirements, key) => {
      if (seen !== request) return { isValid: false, invalidReason: "invalid-challenge" }
      if (!(Date.now() < Date.parse(expires))) return { isValid: false, invalidReason: "payment-expired" }
      const verdict = await client.verify(payment, requirements, key)
      if (verdict.isValid !== true) return verdict
      const name = nameOf(payment)
      // Other texts decode to the same bytes.
      const used = `challenge/${Buffer.from(id, "base64url").toString("base64url")}`
      if ((await store.putIfAbsent(used, name)) !== name) return { isValid: false, invalidReason: "invalid-challenge" }
      await store.putIfAbsent(`mpp/${name}`, JSON.stringify(payment))
      return verdict
    }
  })

  /**
   * The payment as it was when it was valid first, else as it is: a seller's other terms, such as its timeout, may have
   * changed since, and the credential names only some of them. @param {any} payment @returns {Promise<any>}
   */
  const begun = async (payment) => {
    const first = await store.get(`mpp/${nameOf(payment)}`)
    return first === undefined ? payment : JSON.parse(first)
  }

  /** The value of `Payment-Receipt`; the same for each repetition. @param {any} payment @param {string} reference */
  const receipt = async (payment, reference) => {
    const timestamp = await store.putIfAbsent(`paid-at/${nameOf(payment)}`, new Date().toISOString())
    return toText({ method, reference, status: "success", timestamp })
  }

  return { begun, challenge, checked, read, receipt }
}
