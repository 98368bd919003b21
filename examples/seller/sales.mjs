// @ts-check
// A seller's sales, one state machine for every seller here. Before anything is settled, a payment is bound to the
// first request that it was valid for (method, URL, digest of body or arguments). Its work is computed once and stored.
// Then it is settled, with a key that binds payment and request, until its end is known. Its receipt is stored before
// the work is released. The same request with the same payment resumes at its last step. "Settled before" releases
// nothing by itself: the facilitator repeats a success only for this sale's own key.
import {
  ask,
  encode,
  isSettledBefore,
  makeNotes,
  readVerify,
  requestDigest,
  saleKey,
  settleUntilKnown,
  sha256
} from "./outcome.mjs"
import { authorizationOf } from "./signedCall.mjs"

/** @typedef {import("./stores.mjs").Store} Store */
/** @typedef {import("./outcome.mjs").Asked} Asked */
/** @typedef {import("./outcome.mjs").Client} Client */
/** @typedef {import("./outcome.mjs").Fault} Fault */
/** @typedef {import("./outcome.mjs").Receipt} Receipt */
/** @typedef {import("./outcome.mjs").Verdict} Verdict */

/**
 * An HTTP answer; the body in Base64. `amount`: the price, if it is less than the verified amount.
 * @typedef {{ status: number, headers: Record<string, string | Array<string>>, body: string, amount?: string }} Work
 */
/** One request with one payment. @typedef {{ name: string, exact: string, request: string, key: string }} Sale */
/**
 * Why nothing is released. `refused`: this payment does not pay; the seller sends its terms again. `used`: it has paid
 * for another request, or for an unrecorded one. `pending`: it may have paid, or may still pay. `unavailable`: the
 * facilitator gave no verdict, nothing was settled.
 * @typedef {{ released: false, reason: string, receipt?: Receipt, state: "refused" | "used" }
 *   | { released: false, reason: string, receipt?: Receipt, state: "pending" | "unavailable", fault: Fault }} Withheld
 */
/** @typedef {{ released: true, work: Work, receipt: Receipt, header?: string } | Withheld} Sold */

/**
 * JSON with sorted members.
 * @param {any} value
 * @returns {string}
 */
export const canonical = (value) => {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null"
  const members = Object.keys(value).toSorted()
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join()}}`
}

const isOfChannel = (/** @type {any} */ payment) => payment.accepted?.scheme === "batch-settlement"
/** A refund's voucher is for the charged total, as the last sale's; it pays for nothing. */
const isRefund = (/** @type {any} */ payment) => isOfChannel(payment) && payment.payload.type === "refund"

/**
 * Identity of a payment, independent of its unsigned bytes: a total of a channel, an authorization, or its content. The
 * accepted scheme decides which, because a facilitator compares that with the terms; a payload may contain members of
 * another scheme.
 */
const identityOf = (/** @type {any} */ payment) => {
  const { voucher } = payment.payload
  if (isRefund(payment)) return `refund ${canonical(payment)}`
  const isVoucher = typeof voucher?.channelId === "string" && /^[0-9]{1,39}$/.test(voucher.maxClaimableAmount)
  if (isOfChannel(payment) && isVoucher)
    return `voucher ${voucher.channelId.toLowerCase()} ${BigInt(voucher.maxClaimableAmount)}`
  const signed = isOfChannel(payment) ? undefined : authorizationOf(payment)
  return signed === undefined
    ? canonical(payment.payload)
    : `authorization ${signed.payer.toString("hex")} ${signed.nonce}`
}

/** The record of a payment; one payment has one sale. @param {any} payment */
export const nameOf = (payment) => sha256(identityOf(payment))

/** Hash of the whole payment, which a repetition must match. @param {any} payment */
const exactly = (payment) => sha256(canonical(payment))

/** Whether the payment can be recorded. One nested deeper than the stack has no name. @param {any} payment */
export const isPayment = (payment) => {
  try {
    if (typeof payment?.payload !== "object" || payment.payload === null) return false
    nameOf(payment)
    exactly(payment)
    return true
  } catch {
    return false
  }
}

/**
 * The payment in a header, with its bytes; undefined when the header has none.
 * @param {unknown} header
 * @returns {{ payment: any, bytes: Buffer } | undefined}
 */
export const readPayment = (header) => {
  if (typeof header !== "string") return undefined
  try {
    const bytes = Buffer.from(header, "base64")
    const payment = JSON.parse(bytes.toString("utf8"))
    return isPayment(payment) ? { payment, bytes } : undefined
  } catch {
    return undefined
  }
}

/**
 * `service`: the seller's own name, in the sale's key. @param {any} payment @param {Asked} asked
 * @param {string | Uint8Array} [bytes] @param {string} [service] @returns {Sale}
 */
export const makeSale = (payment, asked, bytes = canonical(payment), service = "") => ({
  name: nameOf(payment),
  exact: exactly(payment),
  request: requestDigest(asked),
  key: saleKey(asked, bytes, service)
})

const isFree = (/** @type {any} */ extra) => extra?.chargedAmount === "0"
const isOfVoucher = (/** @type {any} */ payment) => isOfChannel(payment) && !isRefund(payment)

/**
 * Whether a sale charged less than its voucher: the next voucher may then be for the same total.
 * @param {Receipt} receipt @param {any} payment
 */
const hasRest = ({ extra }, payment) => {
  const total = extra?.channelState?.chargedCumulativeAmount
  const max = payment.payload.voucher?.maxClaimableAmount
  const areAmounts = [total, max].every((one) => /^[0-9]{1,39}$/.test(one ?? ""))
  return isFree(extra) || (areAmounts && BigInt(total) < BigInt(max))
}

/** Key under which a receipt pays for a single sale. @param {Receipt} receipt @param {any} payment */
const soldBy = ({ extra, transaction }, payment) => {
  if (!isOfChannel(payment) || isRefund(payment)) return transaction === "" ? undefined : `transaction/${transaction}`
  // A sale without a charge leaves the total to the sale before it.
  if (isFree(extra)) return undefined
  // A voucher has no transaction, and the transaction of a deposit may cover several sales.
  const charged = extra?.channelState?.chargedCumulativeAmount
  const channel = String(payment.payload.voucher?.channelId).toLowerCase()
  return charged === undefined ? undefined : `charged/${channel}/${charged}`
}

/** The records of sales in a store. @param {Store} store */
const makeRecords = (store) => {
  /** @param {string} key @returns {Promise<any>} */
  const read = async (key) => {
    const value = await store.get(key)
    return value === undefined ? undefined : JSON.parse(value)
  }
  /** @param {Sale} sale @returns {Promise<{ key: string, payer: string } | "other" | undefined>} */
  const claimOf = async ({ exact, name, request }) => {
    const claim = await store.get(`claim/${name}`)
    if (claim === undefined) return undefined
    const [paid, asked, key = "", payer = ""] = claim.split(" ")
    return paid === exact && asked === request ? { key, payer } : "other"
  }
  /** @param {string} name @returns {Promise<Work | undefined>} */
  const workOf = (name) => read(`work/${name}`)
  return {
    claimOf,
    workOf,
    /** @param {Sale} sale @param {string} [payer] */
    claim: async (sale, payer = "") => {
      await store.putIfAbsent(`claim/${sale.name}`, [sale.exact, sale.request, sale.key, payer].join(" "))
      return /** @type {{ key: string, payer: string } | "other"} */ (await claimOf(sale))
    },
    /** @param {Sale} sale @returns {Promise<Extract<Sold, { released: true }> | undefined>} */
    sold: async ({ name }) => {
      const [receipt, work, header] = await Promise.all([
        read(`receipt/${name}`),
        workOf(name),
        store.get(`header/${name}`)
      ])
      if (receipt === undefined || work === undefined) return undefined
      return { released: true, work, receipt, ...(header === undefined ? {} : { header }) }
    },
    /** @param {string} name @returns {Promise<Receipt | undefined>} */
    receiptOf: (name) => read(`receipt/${name}`),
    /**
     * Stores that a voucher's sale ended without a charge: the channel's next voucher is for the same total.
     * @param {Sale} sale @param {any} payment
     */
    end: async ({ name }, payment) => {
      if (isOfVoucher(payment)) await store.putIfAbsent(`ended/${name}`, "uncharged")
    },
    /** @param {string} name */
    hasEnded: async (name) => (await store.get(`ended/${name}`)) !== undefined,
    /** The terms of the sale's first settle. @param {string} name @returns {Promise<any>} */
    termsOf: (name) => read(`terms/${name}`),
    /** @param {string} name @param {any} terms @returns {Promise<any>} */
    keepTerms: async (name, terms) => JSON.parse(await store.putIfAbsent(`terms/${name}`, JSON.stringify(terms))),
    /**
     * Stores computed work, and returns the stored work.
     * @param {Sale} sale @param {Work} work
     * @returns {Promise<Work>}
     */
    keep: async ({ name }, work) => JSON.parse(await store.putIfAbsent(`work/${name}`, JSON.stringify(work))),
    /**
     * Stores a receipt; undefined if it has paid for another sale.
     * @param {Sale} sale @param {any} payment @param {Receipt} receipt
     * @returns {Promise<Receipt | undefined>}
     */
    paid: async ({ name }, payment, receipt) => {
      const once = soldBy(receipt, payment)
      if (once !== undefined && (await store.putIfAbsent(once, name)) !== name) return undefined
      return JSON.parse(await store.putIfAbsent(`receipt/${name}`, JSON.stringify(receipt)))
    },
    /** Stores the header of the answer, as the middleware wrote it. @param {Sale} sale @param {string} header */
    answered: ({ name }, header) => store.putIfAbsent(`header/${name}`, header)
  }
}

/** @param {string} reason @param {Receipt} [receipt] @returns {Withheld} */
const used = (reason, receipt) => ({
  released: false,
  state: "used",
  reason,
  ...(receipt === undefined ? {} : { receipt })
})
const otherSale = used("payment_already_used")

/**
 * The steps of a sale over a store; `patience`: milliseconds that one call repeats an unanswered settle.
 * @param {{ store: Store, log?: (line: string) => void, patience?: number }} options
 */
export const makeSales = ({ log, patience, store }) => {
  const records = makeRecords(store)
  const { counters, note } = makeNotes(log)
  return {
    counters,
    ...records,
    /**
     * The sale of a voucher's turn. After a sale that charged less than its voucher, the channel's next voucher may be
     * for the same total: its request is the next turn. Every other voucher has a single sale.
     * @param {Sale} sale @param {any} payment @returns {Promise<Sale>}
     */
    turnOf: async (sale, payment) => {
      if (!isOfVoucher(payment)) return sale
      for (let turn = 1, at = sale; ; turn++) {
        const claim = await records.claimOf(at)
        if (claim === undefined) return at
        const receipt = await records.receiptOf(at.name)
        const hasNext =
          receipt === undefined ? await records.hasEnded(at.name) : claim === "other" && hasRest(receipt, payment)
        if (!hasNext) return at
        at = { ...sale, name: sha256(`${sale.name} ${turn}`) }
      }
    },
    /**
     * The record of a sale, before any call. For a voucher of another sale the channel's server is asked: it corrects a
     * buyer with an old total.
     * @param {Sale} sale @param {any} payment @returns {Promise<Sold | undefined>}
     */
    known: async (sale, payment) => {
      const claim = await records.claimOf(sale)
      if (claim === "other") return isOfVoucher(payment) ? undefined : otherSale
      return claim === undefined ? undefined : records.sold(sale)
    },
    /**
     * Verifies a payment, and claims a valid one for this sale.
     * @param {Client} client @param {any} payment @param {any} requirements @param {Sale} sale
     * @returns {Promise<{ answer: any } | Withheld>}
     */
    verify: async (client, payment, requirements, sale) => {
      const verdict = readVerify(await ask(client, "verify", payment, requirements, sale.key))
      if (verdict.state === "unavailable") {
        const { fault } = verdict
        note("verify", client.url, fault)
        return { released: false, state: "unavailable", reason: `facilitator_${fault.cause}`, fault }
      }
      if (verdict.state === "refused") {
        const { reason, transaction = "" } = verdict
        if (!isSettledBefore(reason)) return { released: false, state: "refused", reason }
        return used(reason, { success: false, errorReason: reason, transaction, network: requirements.network })
      }
      const claim = await records.claim(sale, verdict.answer.payer)
      return claim === "other" ? otherSale : { answer: verdict.answer }
    },
    /**
     * Settles a payment that this sale has claimed, always with the terms of its first settle: the seller's terms may
     * have changed since, and a facilitator refuses a recorded payment under other terms.
     * @param {Client} client @param {any} payment @param {any} requirements @param {Sale} sale
     * @returns {Promise<{ receipt: Receipt } | Withheld>}
     */
    settle: async (client, payment, requirements, sale) => {
      const claim = await records.claim(sale)
      if (claim === "other") return otherSale
      const terms = await records.keepTerms(sale.name, requirements)
      const end = await settleUntilKnown(client, payment, terms, claim.key || sale.key, patience)
      if (end.state === "pending") {
        note("settle", client.url, end.fault)
        return {
          released: false,
          state: "pending",
          reason: "settlement_pending",
          fault: end.fault,
          receipt: end.receipt
        }
      }
      if (end.state === "settled") {
        const receipt = await records.paid(sale, payment, end.receipt)
        return receipt === undefined ? used("payment_already_used", end.receipt) : { receipt }
      }
      if (!isSettledBefore(end.reason)) {
        await records.end(sale, payment)
        return { released: false, state: "refused", reason: end.reason, receipt: end.receipt }
      }
      const receipt = await records.receiptOf(sale.name)
      const isOwn = receipt !== undefined && receipt.transaction === end.receipt.transaction
      return isOwn ? { receipt } : used(end.reason, end.receipt)
    }
  }
}

const messages = {
  pending:
    "The payment may have settled, and its end is not known yet. " +
    "Send the same request with the same payment again; do not sign another.",
  used:
    "The payment has paid for another request, or this seller has no record that it was for this one. " +
    "Do not sign another for the same page before the seller has answered you.",
  unavailable: "The seller's facilitator gives no verdict. Nothing was settled; send the same payment again."
}

/**
 * The HTTP answer to a sale that is neither released nor refused, with the payment's identity; undefined for a refused
 * one, which is answered by a 402.
 * @param {Withheld} withheld @param {any} payment
 * @returns {{ status: number, headers: Record<string, string>, body: any } | undefined}
 */
export const answerWithheld = (withheld, payment) => {
  if (withheld.state === "refused") return undefined
  const { reason, receipt, state } = withheld
  const signed = authorizationOf(payment)
  const accepted = payment.accepted ?? {}
  const identity = {
    id: nameOf(payment),
    ...(typeof accepted.scheme === "string" ? { scheme: accepted.scheme } : {}),
    ...(typeof accepted.network === "string" ? { network: accepted.network } : {}),
    ...(receipt?.transaction ? { transaction: receipt.transaction } : {}),
    ...(signed === undefined ? {} : { nonce: String(signed.nonce), expirationLedger: signed.expiry })
  }
  const fault = "fault" in withheld ? withheld.fault : undefined
  const wait = fault?.retryAfter
  return {
    status: fault === undefined ? 409 : state === "pending" ? 503 : fault.status,
    headers: {
      "content-type": "application/json",
      "cache-control": "private, no-store",
      ...(wait === undefined ? {} : { "retry-after": String(wait) }),
      ...(receipt === undefined ? {} : { "payment-response": encode(receipt) })
    },
    body: {
      error: reason,
      message: messages[state],
      payment: identity,
      ...(wait === undefined ? {} : { retryAfter: wait })
    }
  }
}
