// Compares a receipt with its owner's other records. It reads every stored form of a receipt, compares the claims with
// an answer or with terms, and joins the receipt with the seller's `offer-receipt`, in the draft's terms. Offline.
import { bytesOf, canonical, openReceipt, prove, sha256 } from "./verify.mjs"

const json = (text) => JSON.parse(text)
const isJws = (text) => /^[\w-]+\.[\w-]+\.[\w-]*$/.test(text)
const ofHeader = (text) => new TextDecoder().decode(bytesOf(text))

/**
 * Reads a receipt from a file: the JWS itself, an answer of `GET /receipts/HASH`, a settle answer, or a
 * `PAYMENT-RESPONSE` header. `settled` is the answer around the receipt; `delivery` is the seller's signed receipt.
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

/** A log signs a checkpoint at least every hour, so an older one may be shown to withhold later leaves. */
const staleSeconds = 86_400

/** Rejects the checkpoint of a log that may be frozen: it is older than `most` seconds, or does not state its time. */
export const checkAge = async (tree, most = staleSeconds) => {
  const { time } = tree
  const seconds = Date.now() / 1000
  if (seconds - time <= most && time <= seconds + 600) return
  const of = time === undefined ? "has no time" : `is of ${new Date(time * 1000).toISOString()}`
  throw new Error(`the log may be frozen: its checkpoint ${of}`)
}

const compared = ["network", "transaction", "payer", "payTo", "asset", "amount", "scheme", "resource", "identifierHash"]

/** A network as receipts spell it. Both dialects of the wire mean the same network. */
const spelled = (name, value) => (name === "network" ? String(value).replace(/^ledger:/, "stellar:") : String(value))

/** Names of the claims that differ from `expected`. Members missing in `expected` are not compared. */
export const differingClaims = (claims, expected) =>
  compared.filter(
    (name) => ["string", "number"].includes(typeof expected[name]) && spelled(name, expected[name]) !== claims[name]
  )

/** The issuer of a JWS, before any check. */
export const issuerOf = (jws) => String(json(ofHeader(jws.split(".")[0])).kid).replace(/#.*$/, "")

/** The URL of a did:web document: HTTPS, or HTTP on this machine. */
export const didUrl = (did) => {
  const [host, ...path] = did
    .replace(/^did:web:/, "")
    .split(":")
    .map(decodeURIComponent)
  const scheme = /^(localhost|127\.0\.0\.1)(:\d+)?$/.test(host) ? "http" : "https"
  return `${scheme}://${host}/${path.length === 0 ? ".well-known" : path.join("/")}/did.json`
}

/**
 * The claims of a stored receipt. `proven` is its proof, if it has one, with the hash of the receipt's leaf. A retired
 * key needs a proof: a stolen key can sign anything, and the log shows the time. `at` is a time when the log's
 * checkpoint existed, as for `openCheckpoint`: now, or the time of a witness's signature.
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

/** The payload of the seller's signed receipt (JWS of `offer-receipt`), verified with the seller's DID document. */
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

/** `sha256:HEX` of a text, as receipts and records refer to other texts. */
export const hashText = async (text) => `sha256:${await sha256(text)}`

/** Whether the claims are for a resource. A receipt without a resource matches any; for a long URL it has the hash. */
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

/** The hash of an attestation's canonical JSON, as the record refers to it. */
export const attestationName = ({ format, payload, signature }) => hashText(canonical({ format, payload, signature }))
