// @ts-check
// More than one facilitator behind one client, in the official FacilitatorClient's form: another is asked when the
// first is unavailable. The rule that makes it safe: once a settle was sent anywhere and is not known to have ended
// without a record, no other facilitator is ever asked to settle that payment. What was sent is stored before it is
// sent, so the rule holds over restarts and over processes that share the store; the authorization's nonce, which moves
// money at most once whichever party submits it, bounds the rest. A payment whose facilitator stays away is pending,
// never failed. A facilitator that keeps no record (`keepsRecords: false`, as the official class) refuses after a crash
// what it has settled before it: what it refuses then is pending until the ledger shows the payment, or that it can
// never be (`proof`, of `ledgerProof.mjs`).
//
// It holds no key. With `soldOnce`: `soldOnce({ store }).facilitator(facilitators([first, second], { store }))`.
import { createHash } from "node:crypto"
import { memoryStore } from "./soldOnce.mjs"

/** @typedef {import("./soldOnce.mjs").Client} Client */
/** @typedef {import("./soldOnce.mjs").Store} Store */

/** Nothing of the request has left this machine, or nothing listened: it cannot be on its way. */
const neverSent = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "UND_ERR_CONNECT_TIMEOUT"])

/** What Deno says, without a code, where no connection came to be. */
const isUnconnected = /client error \(Connect\)/

/** @param {any} error @returns {boolean} */
const wasNeverSent = (error) => {
  for (let at = error; at !== undefined && at !== null; at = at.cause)
    if (neverSent.has(at.code) || isUnconnected.test(at.message ?? "")) return true
  return false
}

/** Answers by which a facilitator says that it has recorded nothing, or cannot say anything now. */
const unavailable = new RegExp(
  "^((ledger|stellar)_unavailable|internal_error|rate_limited|unauthorized|" +
    "settle_(ledger|stellar)_(temporarily_unavailable|sponsor_budget_exceeded))$"
)
const pending = /^(settlement_pending|settle_(ledger|stellar)_transaction_status_unknown)$/

/** @param {any} value @returns {string} */
const canonical = (value) => {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null"
  const members = Object.keys(value).toSorted()
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join()}}`
}

/** One signed payload is one payment, whatever is sent beside it. @param {any} payment */
const nameOf = (payment) => createHash("sha256").update(canonical(payment?.payload)).digest("hex")

/** @param {number} millis */
const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis))

/**
 * `attempts`: how often an unanswered settle is sent to its facilitator again, a pause apart, before it is pending.
 * @param {ReadonlyArray<Client & { url?: string, keepsRecords?: boolean }>} clients in order of preference
 * @param {{ store?: Store, attempts?: number, pauseMillis?: number,
 *   proof?: (payment: any, requirements: any) => Promise<{ transaction: string } | "unspent" | undefined> }} [options]
 */
export const facilitators = (clients, { attempts = 5, pauseMillis = 1_000, proof, store = memoryStore() } = {}) => {
  /** @param {string} what @param {any} payment @param {number} at */
  const mark = (what, payment, at) => `${what}/${nameOf(payment)}/${at}`
  /** @param {string} what @param {any} payment @param {number} at */
  const isMarked = async (what, payment, at) => (await store.get(mark(what, payment, at))) !== undefined
  /** @param {string} what @param {any} payment @param {number} at */
  const note = (what, payment, at) => store.putIfAbsent(mark(what, payment, at), "1")

  /** The one that a settle was sent to and has not ended at; -1 while none holds the payment. @param {any} payment */
  const holderOf = async (payment) => {
    for (const at of clients.keys())
      if ((await isMarked("sent", payment, at)) && !(await isMarked("ended", payment, at))) return at
    return -1
  }

  /**
   * One settle at one facilitator. Undefined: it is known to have recorded nothing.
   * @param {number} at @param {any} payment @param {any} requirements @returns {Promise<any>}
   */
  const settleAt = async (at, payment, requirements) => {
    // Sent by a process that has not noted its end: nothing is known of it, as of a lost answer.
    const wasSentBefore = await isMarked("sent", payment, at)
    await note("sent", payment, at)
    const isUnkept = clients[at]?.keepsRecords === false
    for (let attempt = 1; ; attempt++) {
      const answer = await /** @type {any} */ (clients[at])
        .settle(payment, requirements)
        .catch((/** @type {any} */ error) => ({ lost: true, isUnsent: wasNeverSent(error) }))
        // What says neither yes nor no says nothing of what was recorded.
        .then((/** @type {any} */ given) =>
          given.lost === true || typeof given.success === "boolean" ? given : { lost: true }
        )
      const wasLost = wasSentBefore || (await isMarked("lost", payment, at))
      const isRefused = answer.lost !== true && !answer.success && unavailable.test(answer.errorReason ?? "")
      if (!wasLost && (answer.isUnsent === true || isRefused)) {
        await note("ended", payment, at)
        return undefined
      }
      if (answer.lost === true && answer.isUnsent !== true) await note("lost", payment, at)
      // What it refuses before it sends is final, unless it may have sent it in an earlier life.
      const wasSent = wasLost || attempt > 1 || !/^invalid_/.test(answer.errorReason ?? "")
      const isForgotten = isUnkept && answer.success === false && wasSent
      if (isForgotten || (isUnkept && answer.lost === true)) {
        const shown = await proof?.(payment, requirements).catch(() => undefined)
        const { network } = requirements
        if (shown === "unspent") return { success: false, errorReason: "expired", transaction: "", network }
        if (shown !== undefined) return { success: true, transaction: shown.transaction, network }
      }
      const isOpen = answer.lost === true || isRefused || isForgotten || pending.test(answer.errorReason ?? "")
      if (!isOpen) return answer
      if (attempt >= attempts) {
        const { network } = requirements
        return answer.lost === true || isRefused || isForgotten
          ? { success: false, errorReason: "settlement_pending", transaction: "", network }
          : answer
      }
      await pause(pauseMillis)
    }
  }

  return {
    /** The facilitator that holds a payment, for its records; the first while none does. @param {any} payment */
    holder: async (payment) => clients[Math.max(0, await holderOf(payment))],
    /** @param {any} payment @param {any} requirements */
    verify: async (payment, requirements) => {
      const held = await holderOf(payment)
      let failure = /** @type {unknown} */ (new Error("no facilitator is configured"))
      for (const [at, client] of clients.entries()) {
        if (held >= 0 && at !== held) continue
        try {
          const answer = await client.verify(payment, requirements)
          if (answer.isValid || !unavailable.test(answer.invalidReason ?? "")) return answer
          failure = new Error(`verify: ${answer.invalidReason}`)
        } catch (error) {
          failure = error
        }
      }
      throw failure
    },
    /** @param {any} payment @param {any} requirements */
    settle: async (payment, requirements) => {
      for (;;) {
        const held = await holderOf(payment)
        let at = held
        for (const one of held >= 0 ? [] : clients.keys())
          if (at < 0 && !(await isMarked("ended", payment, one))) at = one
        if (at < 0) {
          const errorReason = "settle_ledger_temporarily_unavailable"
          return { success: false, errorReason, transaction: "", network: requirements.network }
        }
        const answer = await settleAt(at, payment, requirements)
        if (answer !== undefined) return answer
      }
    }
  }
}
