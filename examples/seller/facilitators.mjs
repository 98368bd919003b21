// @ts-check
// More than one facilitator behind one client, in the official FacilitatorClient's form: it asks another when the first
// is unavailable. The rule that makes it safe: once a settle was sent anywhere and is not known to have ended without a
// record, no other facilitator is ever asked to settle that payment. Each settle is stored before it is sent, so the
// rule holds over restarts and over processes that share the store. The authorization's nonce moves money at most once
// whichever party submits it, and bounds the rest. While its facilitator is unavailable, a payment is pending, never
// failed. "Busy" may come before a record: after a refusal by another facilitator, the first is asked again. A
// facilitator without records (`keepsRecords: false`, such as the official class) may refuse after a crash a payment
// that it settled before: such a refusal is pending until the ledger shows the payment, or that it can never be
// spent (`proof`, of `ledgerProof.mjs`).
//
// It holds no key. With `soldOnce`: `soldOnce({ store }).facilitator(facilitators([first, second], { store }))`.
import { randomUUID } from "node:crypto"
import { ask, NoAnswer, pause, readSettle, readVerify, sha256 } from "./outcome.mjs"
import { nameOf } from "./sales.mjs"
import { memoryStore } from "./stores.mjs"

/** @typedef {import("./outcome.mjs").Client} Client */
/** @typedef {import("./stores.mjs").Store} Store */

/** The authorization was used, by this payment or another. */
const isUsed = /_(authorization_spent|already_settled)$/

/**
 * `attempts`: how often an unanswered settle is sent to its facilitator again, with a pause between, before it is
 * pending.
 * @param {ReadonlyArray<Client & { keepsRecords?: boolean }>} clients in order of preference
 * @param {{ store?: Store, attempts?: number, pauseMillis?: number,
 *   proof?: (payment: any, requirements: any) => Promise<{ transaction: string } | "unspent" | undefined> }} [options]
 */
export const facilitators = (clients, { attempts = 5, pauseMillis = 1_000, proof, store = memoryStore() } = {}) => {
  if (clients.length === 0) throw new Error("no facilitator is configured")
  // By address, because the order may change while a payment is pending.
  const places = clients.map(({ url }, at) => sha256(url ?? String(at)).slice(0, 16))
  /**
   * One round asks each facilitator at most once; the next begins when none of them recorded anything. Each settle is
   * first written as sent, under its sender's name. Then the first of two decisions counts, in every process:
   * `ended`, by the only sender, or `held`, by a lost answer or by another sender.
   */
  const marks = (/** @type {any} */ payment, /** @type {number} */ round) => {
    const name = `${nameOf(payment)}/${round}`
    const keyOf = (/** @type {string} */ what, /** @type {number} */ at) => `${what}/${name}/${places[at]}`
    return {
      isSent: async (/** @type {number} */ at) => (await store.get(keyOf("sent", at))) !== undefined,
      /** Whether no other sender came before. */
      send: async (/** @type {number} */ at) => {
        const sender = randomUUID()
        return (await store.putIfAbsent(keyOf("sent", at), sender)) === sender
      },
      fate: (/** @type {number} */ at) => store.get(keyOf("fate", at)),
      decide: (/** @type {number} */ at, /** @type {"ended" | "held"} */ fate) =>
        store.putIfAbsent(keyOf("fate", at), fate)
    }
  }

  /** The payment's round, and the facilitator with an unfinished settle. @param {any} payment */
  const holding = async (payment) => {
    for (let round = 0; ; round++) {
      const marked = marks(payment, round)
      let next = -1
      for (const at of clients.keys()) {
        const hasEnded = (await marked.fate(at)) === "ended"
        if (!hasEnded && (await marked.isSent(at))) return { marked, held: at, next: at }
        if (!hasEnded && next < 0) next = at
      }
      if (next >= 0) return { marked, held: -1, next }
    }
  }

  /**
   * One settle at one facilitator. Undefined if that facilitator has certainly recorded nothing.
   * @param {ReturnType<typeof marks>} marked @param {number} at @param {any} payment @param {any} requirements
   * @param {string} [key] @returns {Promise<any>}
   */
  const settleAt = async (marked, at, payment, requirements, key) => {
    const client = /** @type {Client & { keepsRecords?: boolean }} */ (clients[at])
    const { network } = requirements
    // A process sent it and recorded no end: it has died, or it still waits.
    if (!(await marked.send(at)) && (await marked.decide(at, "held")) === "ended") return undefined
    const isUnkept = client.keepsRecords === false
    for (let attempt = 1; ; attempt++) {
      const end = readSettle(await ask(client, "settle", payment, requirements, key), network)
      if (end.state === "settled") return end.receipt
      const isPending = end.state === "pending"
      if (isPending) {
        const isUnrecorded = end.isUnsent || end.isUnrecorded
        if ((await marked.decide(at, isUnrecorded ? "ended" : "held")) === "ended") return undefined
      }
      const wasLost = (await marked.fate(at)) === "held"
      // A refusal before sending is final, unless an earlier process may have sent it.
      const wasSent = wasLost || attempt > 1 || !/^invalid_/.test(isPending ? "" : end.reason)
      const isForgotten = isUnkept && !isPending && wasSent
      if (isForgotten || (isUnkept && isPending)) {
        const shown = await proof?.(payment, requirements).catch(() => undefined)
        if (shown === "unspent") return { success: false, errorReason: "expired", transaction: "", network }
        if (shown !== undefined) return { success: true, transaction: shown.transaction, network }
      }
      if (!isPending && !isForgotten) return end.receipt
      if (attempt >= attempts)
        return isPending ? end.receipt : { success: false, errorReason: "settlement_pending", transaction: "", network }
      await pause(pauseMillis)
    }
  }

  /**
   * After a refusal: the settlement by a facilitator that answered earlier that it had recorded nothing, perhaps at its
   * timeout, before its record. Undefined if none has it.
   * @param {any} payment @param {any} requirements @param {string | undefined} key @param {number} by the refusing one
   * @param {string} reason
   */
  const settledAnyway = async (payment, requirements, key, by, reason) => {
    for (const [at, client] of clients.entries()) {
      if (at === by || !(await marks(payment, 0).isSent(at))) continue
      const end = readSettle(await ask(client, "settle", payment, requirements, key), requirements.network)
      // The money has moved, perhaps by this one.
      if (end.state === "settled" || (end.state === "pending" && isUsed.test(reason))) return end.receipt
    }
    return undefined
  }

  return {
    /** @param {any} payment @param {any} requirements @param {string} [key] */
    verify: async (payment, requirements, key) => {
      const { held } = await holding(payment)
      let failure = /** @type {unknown} */ (undefined)
      for (const [at, client] of clients.entries()) {
        if (held >= 0 && at !== held) continue
        const given = await ask(client, "verify", payment, requirements, key)
        const verdict = readVerify(given)
        if (verdict.state === "valid") return verdict.answer
        if (verdict.state === "refused")
          return "answer" in given ? given.answer : { isValid: false, invalidReason: verdict.reason }
        failure =
          "error" in given ? given.error : new NoAnswer("verify", { reason: String(given.answer?.invalidReason) })
      }
      throw failure
    },
    /** @param {any} payment @param {any} requirements @param {string} [key] */
    settle: async (payment, requirements, key) => {
      for (let asked = 0; asked < clients.length; asked++) {
        const { held, marked, next } = await holding(payment)
        const answer = await settleAt(marked, next, payment, requirements, key)
        const { errorReason = "", success } = answer ?? {}
        if (answer !== undefined && (success === true || errorReason === "settlement_pending")) return answer
        if (answer !== undefined) return (await settledAnyway(payment, requirements, key, next, errorReason)) ?? answer
        if (held >= 0) break
      }
      // None of them recorded anything: the same payment may be settled by any of them later.
      const errorReason = "settle_ledger_temporarily_unavailable"
      return { success: false, errorReason, transaction: "", network: requirements.network }
    }
  }
}
