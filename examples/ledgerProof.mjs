// @ts-check
// Whether an `exact` payment is on the ledger, asked of a ledger RPC: by the payer's own nonce, in every ledger in
// which its authorization could be spent. For facilitators that keep no record: killed between their submission and
// their answer, they refuse afterwards what they have settled (`facilitators.mjs`). Node and Deno alone.

/** The shortest ledger that a buyer may have reckoned with, seconds, and ledgers that two nodes may differ by. */
const secondsPerLedger = 1
const ledgersApart = 10
const pageSize = 200
const pagesMax = 50

const transferCall = Buffer.from("000000087472616e7366657200000003", "hex")

/** The payer's address, its nonce and its last ledger, as the authorization in an envelope has them in a row. */
const authorizationIn = (/** @type {Buffer} */ envelope) => {
  const args = envelope.indexOf(transferCall) + transferCall.length
  // The first argument is the payer: u32 18, then an account of 40 bytes or a contract of 36.
  if (args < transferCall.length || envelope.readUInt32BE(args) !== 18) return undefined
  const payer = envelope.subarray(args + 4, args + 4 + (envelope.readUInt32BE(args + 4) === 0 ? 40 : 36))
  for (const kind of ["0000000100000001", "0000000100000002"]) {
    const marker = Buffer.concat([Buffer.from(kind, "hex"), payer])
    const at = envelope.indexOf(marker, args)
    if (at < 0) continue
    const bytes = envelope.subarray(at + 8, at + marker.length + 12)
    return { bytes, lastLedger: envelope.readUInt32BE(at + marker.length + 8) }
  }
  return undefined
}

/**
 * `{ transaction }`: it was settled there; `"unspent"`: it can never be; undefined: it may be yet, or the RPC does not
 * know.
 * @param {{ rpcUrl: string }} options
 */
export const ledgerProof = ({ rpcUrl }) => {
  /** @param {string} method @param {any} [params] @returns {Promise<any>} */
  const ask = async (method, params) => {
    const response = await fetch(rpcUrl, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, ...(params === undefined ? {} : { params }) })
    })
    const { error, result } = /** @type {any} */ (await response.json())
    if (result === undefined) throw new Error(`${method}: ${error?.message}`)
    return result
  }
  /**
   * @param {any} payment @param {any} requirements
   * @returns {Promise<{ transaction: string } | "unspent" | undefined>}
   */
  return async (payment, requirements) => {
    const found = authorizationIn(Buffer.from(payment.payload.transaction ?? "", "base64"))
    if (found === undefined) return undefined
    const { bytes, lastLedger } = found
    const life = Math.ceil(requirements.maxTimeoutSeconds / secondsPerLedger) + ledgersApart
    const first = Math.max(1, lastLedger - life)
    const { oldestLedger, sequence } = { ...(await ask("getHealth")), ...(await ask("getLatestLedger")) }
    const from = Math.max(first, oldestLedger)
    /** @type {any} */
    let page = { startLedger: from, pagination: { limit: pageSize } }
    for (let turn = 0; turn < pagesMax; turn++) {
      const { cursor, transactions } = await ask("getTransactions", page)
      const carrier = transactions.find(
        (/** @type {any} */ one) =>
          one.status === "SUCCESS" && Buffer.from(one.envelopeXdr, "base64").indexOf(bytes) >= 0
      )
      if (carrier !== undefined) return { transaction: carrier.txHash }
      const isPast = transactions.some((/** @type {any} */ one) => one.ledger > lastLedger)
      if (transactions.length < pageSize || isPast)
        return sequence > lastLedger && from === first ? "unspent" : undefined
      page = { pagination: { cursor, limit: pageSize } }
    }
    return undefined
  }
}
