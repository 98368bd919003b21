// @ts-check
// A seller by the Fetch API: one function from a `Request` to a `Response`, which Hono, Next's app router, Workers,
// Deno and Bun take as it is, and `node:http`, Express and Fastify through `toNode`. The 402, verify, the work, settle,
// the receipt; a payment's work is computed once and released for every repetition of its request (`soldOnce.mjs`).
//
//   const sell = makeSell({ payTo, asset, amount, facilitator })
//   export const GET = (request) => sell(request, () => ({ city: "Riga", celsius: 17 }))
import { facilitators } from "./facilitators.mjs"
import { memoryStore, soldOnce } from "./soldOnce.mjs"

/**
 * `amount`: the price, or the maximum of `upto`, atomic units. `facilitator`: base URLs, in order of preference.
 * `extra`: of the facilitator's kind, for `upto`. `prepareUrl`: named to buyers that ask what to sign. `paywall`: the
 * 402 for browsers (`paywall.mjs`).
 * @typedef {{ payTo: string, asset: string, amount: string, facilitator: string | ReadonlyArray<string>,
 *   network?: string, scheme?: string, maxTimeoutSeconds?: number, description?: string, apiKey?: string,
 *   extra?: any, store?: import("./soldOnce.mjs").Store,
 *   prepareUrl?: string, paywall?: { generateHtml: (required: any) => string } }} Options
 */
/** What is sold: JSON, and by `upto` what it costs. @typedef {{ body: unknown, amount?: string }} Priced */

const encode = (/** @type {unknown} */ value) => Buffer.from(JSON.stringify(value)).toString("base64")

/** @param {string} text */
const decode = (text) => {
  try {
    return JSON.parse(Buffer.from(text, "base64").toString("utf8"))
  } catch {
    return undefined
  }
}

const pending = /^(settlement_pending|settle_(ledger|stellar)_(transaction_status_unknown|temporarily_unavailable))$/

/** The two calls of a facilitator; a pending payment is settled again. @param {string} url @param {string} [apiKey] */
export const facilitatorAt = (url, apiKey) => {
  const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
  /** @param {string} route @param {any} paymentPayload @param {any} paymentRequirements */
  const ask = async (route, paymentPayload, paymentRequirements) => {
    const response = await fetch(`${url}/${route}`, {
      method: "POST",
      headers: /** @type {any} */ ({ "content-type": "application/json", ...headers }),
      body: JSON.stringify({ x402Version: 2, paymentPayload, paymentRequirements })
    })
    return /** @type {any} */ (await response.json())
  }
  return {
    url,
    createAuthHeaders: async () => ({ headers }),
    /** @param {any} payment @param {any} requirements */
    verify: (payment, requirements) => ask("verify", payment, requirements),
    /** @param {any} payment @param {any} requirements */
    settle: async (payment, requirements) => {
      for (let attempt = 1; ; attempt++) {
        const answer = await ask("settle", payment, requirements)
        if (answer.success || !pending.test(answer.errorReason) || attempt === 20) return answer
        await new Promise((resolve) => setTimeout(resolve, 1_000))
      }
    }
  }
}

/** @param {Options} options */
const clientOf = ({ apiKey, facilitator, store }) => {
  const [first, ...others] = [facilitator].flat()
  if (first === undefined) throw new Error("name a facilitator")
  const one = facilitatorAt(first, apiKey)
  const all = [one, ...others.map((url) => facilitatorAt(url, apiKey))]
  return others.length === 0 ? one : facilitators(all, store === undefined ? {} : { store })
}

/** The answer to one request. @param {Options} options */
export const makeSell = (options) => {
  const { sell } = soldOnce({ store: options.store ?? memoryStore() })
  const client = clientOf(options)
  const terms = {
    scheme: options.scheme ?? "exact",
    network: options.network ?? "stellar:testnet",
    asset: options.asset,
    amount: options.amount,
    payTo: options.payTo,
    maxTimeoutSeconds: options.maxTimeoutSeconds ?? 60,
    extra: {
      ...(options.extra ?? { areFeesSponsored: true }),
      ...(options.prepareUrl === undefined ? {} : { prepareUrl: options.prepareUrl })
    }
  }
  /**
   * @param {Request} request
   * @param {(request: Request) => unknown | Promise<unknown>} work what is sold, as JSON; by `upto` `priced(…)`
   * @returns {Promise<Response>}
   */
  return async (request, work) => {
    const url = new URL(request.url)
    const refuse = (/** @type {string} */ error, /** @type {unknown} */ receipt) => {
      const resource = { url: url.href, description: options.description ?? "", mimeType: "application/json" }
      const body = { x402Version: 2, error, resource, accepts: [terms] }
      const headers = {
        "payment-required": encode(body),
        ...(receipt === undefined ? {} : { "payment-response": encode(receipt) })
      }
      const isForPeople = /\btext\/html\b/.test(request.headers.get("accept") ?? "")
      return options.paywall !== undefined && isForPeople
        ? new Response(options.paywall.generateHtml(body), {
            status: 402,
            headers: { ...headers, "content-type": "text/html; charset=utf-8" }
          })
        : Response.json(body, { status: 402, headers })
    }
    const header = request.headers.get("payment-signature")
    if (header === null) return refuse("payment required", undefined)
    const payment = decode(header)
    if (payment === undefined) return refuse("PAYMENT-SIGNATURE is not base64 of JSON", undefined)
    const sale = /** @type {any} */ (
      await sell({
        client,
        payment,
        requirements: terms,
        request: `${request.method} ${url.pathname}${url.search}`,
        work: async () => {
          const done = /** @type {any} */ (await work(request))
          const { amount, body } = done instanceof Work ? done : { amount: undefined, body: done }
          const headers = { "content-type": "application/json" }
          return { status: 200, headers, body: encode(body), ...(amount === undefined ? {} : { amount }) }
        }
      })
    )
    if (!sale.released) return refuse(sale.reason, sale.receipt)
    const { body, headers, status } = sale.work
    return new Response(Buffer.from(body, "base64"), {
      status,
      headers: { ...headers, "payment-response": encode(sale.receipt) }
    })
  }
}

class Work {
  /** @param {unknown} body @param {string} amount */
  constructor(body, amount) {
    this.body = body
    this.amount = amount
  }
}

/** Work by use: what was made, and what it costs, at most the maximum. @param {unknown} body @param {string} amount */
export const priced = (body, amount) => new Work(body, amount)

/**
 * A handler of `node:http`, Express or Fastify's raw request. @param {(request: Request) => Promise<Response>} answer
 * @returns {(request: import("node:http").IncomingMessage, response: import("node:http").ServerResponse) => void}
 */
export const toNode = (answer) => (request, response) => {
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers)) if (typeof value === "string") headers.set(name, value)
  const url = `http://${request.headers.host ?? "seller"}${/** @type {any} */ (request).originalUrl ?? request.url}`
  const chunks = /** @type {Array<Uint8Array>} */ ([])
  const read = async () => {
    for await (const chunk of request) chunks.push(chunk)
    return chunks.length === 0 ? {} : { body: Buffer.concat(chunks) }
  }
  const answered = read().then((body) =>
    answer(new Request(url, { method: request.method ?? "GET", headers, ...body }))
  )
  answered.then(
    async (given) => {
      response.writeHead(given.status, Object.fromEntries(given.headers))
      response.end(Buffer.from(await given.arrayBuffer()))
    },
    () => (response.headersSent ? response.destroy() : response.writeHead(502).end())
  )
}
