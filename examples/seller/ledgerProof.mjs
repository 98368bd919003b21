// @ts-check
// Whether an `exact` payment is on the ledger, according to ledger RPCs: the transfer that the payer signed, by its
// nonce, in every ledger in which its authorization could be spent. For facilitators without records: killed between
// submission and answer, they later refuse a payment that they settled (`facilitators.mjs`). A transaction proves a
// payment only if it makes this exact call with only this authorization: then the ledger spent it there.
import { authorizationOf, signedCall, transferBytes } from "./signedCall.mjs"

/** The shortest ledger that a buyer may have assumed, seconds, and the maximum distance between two nodes, ledgers. */
const secondsPerLedger = 1
const ledgersApart = 10
const pageSize = 200
const pagesMax = 50
const answerMillis = 10_000

/** @typedef {{ transaction: string } | "unspent" | undefined} Proof */
/** @typedef {NonNullable<ReturnType<typeof authorizationOf>>} Signed */

/**
 * The authorization, if the payment is the terms' transfer and nothing else.
 * @param {any} payment @param {any} terms
 */
const signedTransfer = (payment, terms) => {
  if (terms.scheme !== undefined && terms.scheme !== "exact") return undefined
  const signed = authorizationOf(payment)
  if (signed === undefined || signed.below > 0 || !signed.isWhole) return undefined
  return signed.called.equals(transferBytes(terms, signed.payer)) ? signed : undefined
}

/**
 * `"spent"`: the transaction made the transfer by this authorization. `"mentioned"`: it has the authorization's bytes,
 * or an authorization by this payer with this nonce, in another shape, so it proves nothing.
 * @param {Buffer} envelope @param {Signed} signed
 */
const carries = (envelope, { called, expiry, nonce, payer }) => {
  const found = signedCall(envelope)
  const [entry, other] = found?.entries ?? []
  const isCall = found?.called.equals(called) === true
  const isAuthorization =
    other === undefined &&
    entry?.payer?.equals(payer) === true &&
    entry.nonce === nonce &&
    entry.expiry === expiry &&
    entry.below === 0 &&
    entry.called.equals(called)
  if (isCall && isAuthorization) return "spent"
  const nonceBytes = Buffer.alloc(8)
  nonceBytes.writeBigInt64BE(nonce)
  return envelope.includes(Buffer.concat([payer, nonceBytes])) ? "mentioned" : undefined
}

/** @param {string} rpcUrl @param {string} method @param {any} params @returns {Promise<any>} */
const ask = async (rpcUrl, method, params) => {
  const response = await fetch(rpcUrl, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, ...(params === undefined ? {} : { params }) }),
    signal: AbortSignal.timeout(answerMillis)
  })
  const { error, result } = /** @type {any} */ (await response.json())
  if (result === undefined) throw new Error(`${method}: ${error?.message}`)
  return result
}

/**
 * The answer of one endpoint. Each page reports the ledgers that it was read from: a node that is behind proves
 * nothing.
 * @param {string} rpcUrl @param {Signed} signed @param {number} first @returns {Promise<Proof>}
 */
const askOne = async (rpcUrl, signed, first) => {
  const { oldestLedger } = await ask(rpcUrl, "getHealth", undefined)
  const from = Math.max(first, oldestLedger)
  let isMentioned = false
  /** @type {any} */
  let page = { startLedger: from, pagination: { limit: pageSize } }
  for (let turn = 0; turn < pagesMax; turn++) {
    const { cursor, latestLedger, transactions } = await ask(rpcUrl, "getTransactions", page)
    for (const { envelopeXdr, ledger, status, txHash } of transactions) {
      if (status !== "SUCCESS" || ledger > signed.expiry) continue
      const found = carries(Buffer.from(envelopeXdr, "base64"), signed)
      if (found === "spent") return { transaction: txHash }
      isMentioned ||= found === "mentioned"
    }
    const isPast = transactions.some((/** @type {any} */ one) => one.ledger > signed.expiry)
    if (isPast || transactions.length < pageSize) {
      const hasAll = from === first && latestLedger > signed.expiry
      return hasAll && !isMentioned ? "unspent" : undefined
    }
    page = { pagination: { cursor, limit: pageSize } }
  }
  return undefined
}

/**
 * `{ transaction }`: it was settled there; `"unspent"`: it can never be settled; undefined: it may still be, or the
 * endpoints cannot decide. Of two or more endpoints, two have to agree.
 * @param {{ rpcUrl: string | ReadonlyArray<string> }} options
 */
export const ledgerProof = ({ rpcUrl }) => {
  const urls = [...new Set([rpcUrl].flat())]
  const needed = Math.min(2, urls.length)
  /** @param {any} payment @param {any} requirements @returns {Promise<Proof>} */
  return async (payment, requirements) => {
    const signed = signedTransfer(payment, requirements)
    if (signed === undefined) return undefined
    const life = Math.ceil(requirements.maxTimeoutSeconds / secondsPerLedger) + ledgersApart
    const first = Math.max(1, signed.expiry - life)
    const words = await Promise.all(urls.map((url) => askOne(url, signed, first).catch(() => undefined)))
    const names = words.map((word) => (typeof word === "object" ? word.transaction : word))
    const at = names.findIndex((one) => one !== undefined && names.filter((other) => other === one).length >= needed)
    // Endpoints that contradict each other prove nothing.
    const isDisputed = names.some((one) => one !== undefined && one !== names[at])
    return at < 0 || isDisputed ? undefined : words[at]
  }
}
