// @ts-check
// A buyer without an SDK and without its own ledger RPC: Node and Deno only. `preparedSign.mjs` compares and signs each
// payment, and `keptPayments.mjs` stores it before it is sent: a payment with a lost answer is sent again, and no other
// is signed while it may land. `batch-settlement` is in `preparedBatch.mjs`: one deposit, then vouchers.
//
//   BUYER_SECRET=S… node examples/client/prepared.mjs [-X METHOD] [-d BODY] [-H 'name: value'] URL
//   BUYER_SECRET=S… node examples/client/prepared.mjs --resume FILE
import { createHash } from "node:crypto"
import { closeSync, openSync, writeFileSync } from "node:fs"
import { relative } from "node:path"
import { parseArgs } from "node:util"
import {
  ask,
  decode,
  echoed,
  encode,
  filePayments,
  isSpent,
  keptOf,
  keyOf,
  memoryPayments,
  paymentsFolder,
  PaymentUnknown,
  readKept,
  requestOf,
  requiredBy,
  sendKept
} from "./keptPayments.mjs"
import {
  noteAnswered,
  noteCharged,
  noteCorrected,
  noteCuts,
  refundPayload,
  saltOf,
  signedBefore
} from "./preparedBatch.mjs"
import { accountOf, SignatureRefused } from "./preparedBytes.mjs"
import { checkTerms, signUntil } from "./preparedSign.mjs"

export { accountOf, PaymentUnknown, SignatureRefused }

/** @typedef {import("./preparedSign.mjs").Terms} Terms */
/** @typedef {import("./preparedSign.mjs").Options} Options */
/** @typedef {import("./keptPayments.mjs").Kept} Kept */
/**
 * `method`, `body`, `headers` of the request. `payments`: the store of signed payments, default in memory;
 * `filePayments(folder)` uses files. `name`: separates intended repeated purchases of one request. `receive`: gets the
 * page before its payment is forgotten; if it throws, the same call gets the page again.
 * @typedef {Options & import("./keptPayments.mjs").Call & { payments?: import("./keptPayments.mjs").Payments,
 *   name?: string, receive?: (answer: Answer) => unknown }} Purchase
 */
/** The page, paid or not. @typedef {{ response: Response, receipt?: any, payment?: string, reason?: string }} Answer */

const ownPayments = memoryPayments()
const payerOf = (/** @type {Options} */ options) => options.wallet?.contract ?? accountOf(options.secret).account

/**
 * The signed payload of one payment. Throws `SignatureRefused` before signing if the facilitator's bytes differ from
 * the terms.
 * @param {Terms} terms @param {Options} options @returns {Promise<any>}
 */
export const signPrepared = async (terms, options) => (await signUntil(terms, options)).payload

/** The offered terms, without the additions of a correction. @param {Terms} terms @returns {Terms} */
const plain = (terms) => {
  if (terms.extra === undefined) return terms
  const { channelState: _, voucherState: __, ...extra } = terms.extra
  return { ...terms, extra }
}

/** The first option of a 402 that this buyer would pay, else the first of its network. */
const choose = (/** @type {any} */ required, /** @type {string} */ url, /** @type {Options} */ options) => {
  const network = options.network ?? "stellar:testnet"
  if (!Array.isArray(required?.accepts)) throw new SignatureRefused(`${url} answers 402 without terms`)
  const accepts = required.accepts.filter((/** @type {any} */ one) => one?.network === network)
  if (accepts.length === 0) throw new SignatureRefused(`${url} takes nothing on ${network}`)
  const isPaid = (/** @type {Terms} */ one) => {
    try {
      checkTerms(one, options)
      return true
    } catch {
      return false
    }
  }
  const accepted = plain(accepts.find(isPaid) ?? accepts[0])
  checkTerms(accepted, options)
  return accepted
}

/**
 * A channel for each origin: one that copies a seller's terms could otherwise stop that seller's channel, by an answer
 * that contradicts the voucher or by none. `salt`: the one of a payment that is signed already.
 * @template {Options} T @param {string} url @param {T} options @param {string} [salt] @returns {T}
 */
const ofOrigin = (url, options, salt = options.batch?.salt) =>
  options.batch === undefined
    ? options
    : { ...options, batch: { ...options.batch, salt: salt ?? saltOf(new URL(url).origin) } }

/** Key of an unanswered deposit, by buyer and seller. @param {string} url @param {Options} options */
const depositKeyOf = (url, options) =>
  createHash("sha256")
    .update(`deposit\n${payerOf(options)}\n${new URL(url).origin}`)
    .digest("hex")

/** Sends a kept payment, and stores its end. @param {string} key @param {Kept} kept @param {Purchase} given */
const deliver = async (key, kept, given) => {
  const { payments = ownPayments } = given
  const { accepted, payload } = decode(kept.payment)
  const options = ofOrigin(kept.url, given, payload.channelConfig?.salt)
  const sent = await sendKept(kept).catch((error) => {
    if (error instanceof PaymentUnknown) noteCuts(accepted, options, error.cuts)
    throw error
  })
  noteAnswered(accepted, options)
  if (sent.receipt?.success === true) noteCharged(accepted, options, payload, sent.receipt)
  if (payload.type === "deposit") await payments.remove(depositKeyOf(kept.url, options), kept)
  const answer = { ...sent, payment: kept.payment }
  if (!sent.response.ok) return answer
  await options.receive?.(answer)
  await payments.remove(key, kept)
  return answer
}

/**
 * Whether a refusal's total was accepted.
 * @param {any} required @param {Kept} kept @param {Terms} accepted @param {Options} options
 */
const isCorrectedBy = (required, kept, accepted, options) => {
  const max = decode(kept.payment).payload.voucher?.maxClaimableAmount
  if (required === undefined || max === undefined || accepted.scheme !== "batch-settlement") return false
  return noteCorrected(required, accepted, options, { max: BigInt(max), before: BigInt(kept.before ?? 0) })
}

/**
 * Signs and stores a payment. `earlier`: the refused payment of the same request, which it replaces.
 * @param {string} key @param {import("./keptPayments.mjs").Request} request @param {any} required @param {Terms}
 * accepted
 * @param {Purchase} options @param {Kept | undefined} earlier @param {bigint} before
 */
const signAndKeep = async (key, request, required, accepted, options, earlier, before) => {
  const { payments = ownPayments } = options
  const openKey = depositKeyOf(request.url, options)
  const open = accepted.scheme === "batch-settlement" ? await payments.get(openKey) : undefined
  const isOpen = open !== undefined && open.payment !== earlier?.payment
  const after = isOpen ? Infinity : (earlier?.expires ?? 0)
  const { expires, payload } = await signUntil(accepted, options, after)
  const { resource } = required
  const extensions = echoed(required.extensions)
  const payment = encode({ x402Version: 2, payload, resource, accepted, ...(extensions && { extensions }) })
  const more = { ...(expires === undefined ? {} : { expires }), ...(options.name && { name: options.name }) }
  const kept = keptOf(request, payment, { ...more, before })
  if (earlier !== undefined) await payments.remove(key, earlier)
  if (payload.type === "deposit") {
    if (open !== undefined) await payments.remove(openKey, open)
    await payments.putIfAbsent(openKey, kept)
  }
  return payments.putIfAbsent(key, kept)
}

/**
 * Requests `url` and pays on a 402. The payment is stored before it is sent; the next identical call sends a stored one
 * again. It signs a new payment if none is stored, or if the stored one was refused and its last ledger has closed. A
 * channel's total is corrected once with the seller's proof. Throws `PaymentUnknown`, with the payment, if its answer
 * stays unknown.
 * @param {string} url @param {Purchase} given @returns {Promise<Answer>}
 */
export const pay = async (url, given) => {
  const options = ofOrigin(url, given)
  const { payments = ownPayments } = options
  const request = requestOf(url, options)
  const key = keyOf(payerOf(options), request, options.name)
  let kept = await payments.get(key)
  let answer = kept === undefined ? undefined : await deliver(key, kept, options)
  if (answer !== undefined && (answer.response.ok || isSpent(answer.reason))) return answer
  const unpaid = answer?.response.status === 402 ? answer.response : await ask(request)
  if (unpaid.status !== 402) return answer ?? { response: unpaid }
  const required = await requiredBy(unpaid)
  const accepted = choose(required, url, options)
  if (kept !== undefined) isCorrectedBy(answer?.required, kept, accepted, options)
  let before = kept?.before === undefined ? signedBefore(accepted, options) : BigInt(kept.before)
  for (let turn = 1; ; turn++) {
    kept = await signAndKeep(key, request, required, accepted, options, kept, before)
    answer = await deliver(key, kept, options)
    if (answer.response.ok || turn === 2 || !isCorrectedBy(answer.required, kept, accepted, options)) return answer
    before = signedBefore(accepted, options)
  }
}

/** Sends a kept payment again. @param {Kept} kept @param {Purchase} options */
export const resume = (kept, options) => {
  const { headers, method, url } = kept
  const body = kept.body === undefined ? {} : { body: Buffer.from(kept.body, "base64") }
  return deliver(keyOf(payerOf(options), { method, url, headers, ...body }, kept.name), kept, options)
}

/**
 * Asks the seller at `url` to refund the rest of its channel. Returns the receipt.
 * @param {string} url @param {Options} given
 */
export const refund = async (url, given) => {
  const options = ofOrigin(url, given)
  const required = await requiredBy(await ask(requestOf(url, {})))
  const offered = required.accepts.find((/** @type {Terms} */ one) => one.scheme === "batch-settlement")
  if (offered === undefined) throw new Error(`${url} does not offer batch-settlement`)
  const accepted = plain(offered)
  checkTerms(accepted, options)
  const payload = refundPayload(accepted, options)
  const payment = encode({ x402Version: 2, payload, resource: required.resource, accepted })
  const response = await ask(requestOf(url, {}), payment)
  const receipt = decode(response.headers.get("payment-response"))
  if (receipt?.success === true) noteCharged(accepted, options, payload, receipt)
  return { response, receipt }
}

const usage = "prepared.mjs [-X METHOD] [-d BODY] [-H 'name: value']… [--out FILE] URL, or prepared.mjs --resume FILE"

/** @param {Uint8Array} bytes */
const print = (bytes) =>
  new Promise((resolve, reject) => {
    process.stdout.write(bytes, (error) => (error ? reject(error) : resolve(undefined)))
  })

const main = async () => {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      method: { type: "string", short: "X" },
      data: { type: "string", short: "d" },
      header: { type: "string", short: "H", multiple: true },
      out: { type: "string" },
      resume: { type: "string" }
    }
  })
  const { BUYER_SECRET: secret, FACILITATOR_URL, LEDGER_RPC_URL: rpcUrl, NETWORK, UPTO_CONTRACT } = process.env
  const { BATCH_CONTRACT } = process.env
  const [page] = positionals
  if (page === undefined && values.resume === undefined) throw new Error(usage)
  if (secret === undefined) throw new Error("set BUYER_SECRET to the seed of a funded account")
  // A page that cannot be written must not be paid.
  const files = values.out === undefined ? [] : [values.out, `${values.out}.receipt.json`]
  for (const file of files) closeSync(openSync(file, "a"))
  const named = (values.header ?? []).map((line) => {
    const [name = "", ...rest] = line.split(":")
    return [name.trim(), rest.join(":").trim()]
  })
  let isWritten = false
  const write = async (/** @type {Answer} */ { receipt, response }) => {
    isWritten = true
    const bytes = Buffer.from(await response.clone().arrayBuffer())
    if (values.out !== undefined) writeFileSync(values.out, bytes)
    else await print(Buffer.concat([Buffer.from(`${response.status} `), bytes, Buffer.from("\n")]))
    if (receipt === undefined) return
    console.log(receipt)
    if (values.out !== undefined) writeFileSync(`${values.out}.receipt.json`, JSON.stringify(receipt))
  }
  const options = {
    secret,
    payments: filePayments(paymentsFolder()),
    ...(FACILITATOR_URL && { facilitator: FACILITATOR_URL }),
    maxAmount: 1_000_000n,
    ...(NETWORK && { network: NETWORK }),
    ...(rpcUrl && { rpcUrl }),
    ...(UPTO_CONTRACT && { uptoContracts: [UPTO_CONTRACT] }),
    ...(BATCH_CONTRACT && { batch: { contracts: [BATCH_CONTRACT] } }),
    ...(values.method && { method: values.method }),
    ...(values.data !== undefined && { body: values.data }),
    headers: Object.fromEntries(named),
    receive: (/** @type {Answer} */ answer) =>
      write(answer).catch((error) => {
        const kept = "its payment is kept: the same call gets the page again"
        throw new Error(`the page cannot be written (${error.message}); ${kept}`)
      })
  }
  const bought = values.resume === undefined ? pay(page ?? "", options) : resume(await readKept(values.resume), options)
  const answer = await /** @type {Promise<Answer>} */ (bought)
  if (!isWritten) await write(answer)
  return answer.response.ok ? 0 : 1
}

if (process.argv[1]?.endsWith("prepared.mjs")) {
  process.exitCode = await main().catch((error) => {
    console.error(error.message)
    if (error instanceof PaymentUnknown) {
      console.error(`payment: ${error.kept.payment}`)
      console.error(`resume:  node ${relative("", process.argv[1] ?? "")} --resume ${error.kept.file}`)
    }
    return 1
  })
}
