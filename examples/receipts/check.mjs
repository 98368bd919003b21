// What a receipt is worth beside what else its owner has: it reads the forms in which a receipt is kept, compares its
// claims with an answer or with terms, and joins it with the seller's `offer-receipt`, by the draft's names. Offline.
import { bytesOf, canonical, openReceipt, prove, sha256 } from "./verify.mjs"

const json = (text) => JSON.parse(text)
const isJws = (text) => /^[\w-]+\.[\w-]+\.[\w-]*$/.test(text)
const ofHeader = (text) => new TextDecoder().decode(bytesOf(text))

/**
 * A receipt from a file: the JWS itself, an answer of `GET /receipts/HASH`, a settle answer, or a `PAYMENT-RESPONSE`
 * header as it was sent. `settled` is what the answer around the receipt says; `delivery` the seller's signed receipt.
 */
export const readKept = (file) => {
  const text = file.trim()
  if (isJws(text)) return { receipt: text, outcomes: [] }
  const value = json(text.startsWith("{") ? text : ofHeader(text))
  const { attestation = undefined, extensions = {}, outcomes = [], receipt = undefined } = value
  return {
    receipt: receipt ?? extensions["tollkeeper-receipt"]?.info?.receipt,
    outcomes,
    attestation: attestation ?? extensions["facilitator-attestation"]?.info?.attestation,
    delivery: extensions["offer-receipt"]?.info?.receipt,
    settled: value
  }
}

const compared = ["network", "transaction", "payer", "payTo", "asset", "amount", "scheme", "resource", "identifierHash"]

/** A network in the spelling of receipts: both dialects of the wire name the same one. */
const spelled = (name, value) => (name === "network" ? String(value).replace(/^ledger:/, "stellar:") : String(value))

/** Names of claims that differ from what is expected; a member that is not expected is not compared. */
export const differingClaims = (claims, expected) =>
  compared.filter(
    (name) => ["string", "number"].includes(typeof expected[name]) && spelled(name, expected[name]) !== claims[name]
  )

/** The issuer that a JWS names, before anything is checked. */
export const issuerOf = (jws) => String(json(ofHeader(jws.split(".")[0])).kid).replace(/#.*$/, "")

/** Where a did:web document is: over HTTP on this machine alone. */
export const didUrl = (did) => {
  const [host, ...path] = did
    .replace(/^did:web:/, "")
    .split(":")
    .map(decodeURIComponent)
  const scheme = /^(localhost|127\.0\.0\.1)(:\d+)?$/.test(host) ? "http" : "https"
  return `${scheme}://${host}/${path.length === 0 ? ".well-known" : path.join("/")}/did.json`
}

/**
 * The claims of a kept receipt, and its proof where it has one: `proven` has it with the hash of the receipt's leaf. A
 * retired key is believed with a proof alone: a stolen one signs what it likes, and the log shows when it did. `at` is
 * when the log's checkpoint is known to have been there, as for `openCheckpoint`: by now, or when a witness signed it.
 */
export const checkKept = async ({ outcomes, receipt, settled = {} }, did, at) => {
  if (receipt === undefined) throw new Error("there is no receipt in it")
  if (settled.success === false) throw new Error("the answer says that the payment did not settle")
  const last = outcomes.length > 0 ? json(outcomes.at(-1).record).outcome : "settled"
  if (last !== "settled") throw new Error(`the newest leaf of the payment says ${last}`)
  const isProven = outcomes.some(({ proof }) => proof)
  const proven = isProven ? await prove({ outcomes, receipt }, did, at) : undefined
  const { claims, key } = proven ?? (await openReceipt(receipt, did))
  const differing = differingClaims(claims, settled)
  if (differing.length > 0) throw new Error(`the receipt is of another payment: ${differing.join(", ")} differ`)
  if (proven === undefined && key.validUntil !== undefined)
    throw new Error(`${key.id} is retired: only a proof shows when it signed`)
  return { claims, key, proven }
}

const algorithms = {
  EdDSA: ["Ed25519", "Ed25519"],
  ES256: [
    { name: "ECDSA", namedCurve: "P-256" },
    { name: "ECDSA", hash: "SHA-256" }
  ]
}

/** The payload of the seller's signed receipt (JWS of `offer-receipt`), by a key of the seller's DID document. */
export const openDelivery = async ({ format, signature }, did) => {
  if (format !== "jws") throw new Error(`a delivery receipt in ${format} is not read`)
  const [header, payload, signed] = signature.split(".")
  const { alg, kid } = json(ofHeader(header))
  const key = did.verificationMethod?.find(({ id }) => id === kid || `${did.id}${id}` === kid)
  if (!Object.hasOwn(algorithms, alg) || key === undefined) throw new Error(`${did.id} has no key ${kid} for ${alg}`)
  const [kind, how] = algorithms[alg]
  const { crv, kty, x, y } = key.publicKeyJwk
  const jwk = { kty, crv, x, ...(y === undefined ? {} : { y }) }
  const publicKey = await crypto.subtle.importKey("jwk", jwk, kind, false, ["verify"])
  const bytes = new TextEncoder().encode(`${header}.${payload}`)
  if (!(await crypto.subtle.verify(how, publicKey, bytesOf(signed), bytes))) throw new Error(`${kid} did not sign it`)
  return json(ofHeader(payload))
}

/** `sha256:HEX` of a text, as receipts and records name what they do not repeat. */
export const hashText = async (text) => `sha256:${await sha256(text)}`

/** Whether the claims are of a resource; a receipt without one is of any. Of a long URL the receipt has the hash. */
const isOfResource = async ({ resource, resourceHash }, url) =>
  resourceHash === undefined ? [undefined, url].includes(resource) : resourceHash === (await hashText(url))

/**
 * The draft's outcome of a payment's receipt and a delivery's (facilitator-attestation, section 7), joined by network
 * and transaction: COMPLETE, UNLINKED (the delivery names no transaction), PAYMENT_ONLY, DELIVERY_ONLY, MISMATCH.
 */
export const outcomeOf = async (claims, delivery) => {
  if (delivery === undefined) return claims === undefined ? "NOT_FOUND" : "PAYMENT_ONLY"
  if (claims === undefined) return "DELIVERY_ONLY"
  if (!delivery.transaction) return "UNLINKED"
  const { network, payer, resourceUrl, transaction } = delivery
  const differing = differingClaims(claims, { network, transaction, payer })
  return differing.length === 0 && (await isOfResource(claims, resourceUrl)) ? "COMPLETE" : "MISMATCH"
}

/** The record's name of an attestation: the hash of its canonical JSON. */
export const attestationName = ({ format, payload, signature }) => hashText(canonical({ format, payload, signature }))
