// @ts-check
// A seller for the Fetch API: one function from a `Request` to a `Response`. Hono, Next's app router, Workers, Deno and
// Bun use it directly, and `node:http`, Express, Fastify and Koa through adapters. It handles the 402, verify, the
// work, settle and the receipt. A payment's work is computed once and released for every repetition of its request
// (`soldOnce.mjs`).
//
//   const sell = makeSell({ payTo, asset, amount, facilitator })
//   export const GET = (request) => sell(request, () => ({ city: "Riga", celsius: 17 }))
import { facilitators } from "./facilitators.mjs"
import { makeCharge, problemOf } from "./mpp.mjs"
import { encode, facilitatorAt } from "./outcome.mjs"
import { answerWithheld, readPayment } from "./sales.mjs"
import { memoryStore, soldOnce } from "./soldOnce.mjs"

export { facilitatorAt }

/** @typedef {import("./outcome.mjs").Asked} Asked */
/**
 * `amount`: the price, or the maximum of `upto`, atomic units. `facilitator`: base URLs, in order of preference.
 * `extra`: from the facilitator's kind, for `upto`. `prepareUrl`: sent to buyers that ask for the bytes to sign.
 * `paywall`: the 402 for browsers (`paywall.mjs`). `mpp`: also offers a charge of the Machine Payments Protocol
 * (`mpp.mjs`). `log`: gets one line for each cause for which a facilitator gave no answer.
 * `patience`: milliseconds for which an unanswered settle is repeated before the buyer gets 503. `service`: names
 * this service among those of one owner (`soldOnce.mjs`); default the description.
 * @typedef {{ payTo: string, asset: string, amount: string, facilitator: string | ReadonlyArray<string>,
 *   network?: string, scheme?: string, maxTimeoutSeconds?: number, description?: string, apiKey?: string,
 *   extra?: any, store?: import("./soldOnce.mjs").Store, log?: (line: string) => void, patience?: number,
 *   service?: string, prepareUrl?: string, mpp?: import("./mpp.mjs").MppOptions,
 *   paywall?: { headers?: Record<string, string>, generateHtml: (required: any) => string } }} Options
 */

/** @param {Options} options */
const clientOf = ({ apiKey, facilitator, store }) => {
  const [first, ...others] = [facilitator].flat()
  if (first === undefined) throw new Error("name a facilitator")
  const one = facilitatorAt(first, apiKey)
  const all = [one, ...others.map((url) => facilitatorAt(url, apiKey))]
  return others.length === 0 ? one : facilitators(all, store === undefined ? {} : { store })
}

/** A request's body for the sale's record; its own reader keeps the original. @param {Request} request */
const bodyOf = async (request) => {
  if (request.body === null && !request.bodyUsed) return {}
  if (request.bodyUsed) throw new Error("the body of a paid request was read before the sale: sell before it is parsed")
  return { body: new Uint8Array(await request.clone().arrayBuffer()) }
}

/**
 * The answer to one request. Its `counters` have the calls that the facilitator did not answer, by cause.
 * @param {Options} options
 */
export const makeSell = (options) => {
  const { description, mpp, paywall, store = memoryStore() } = options
  const { counters, sell } = soldOnce({ service: description ?? "", ...options, store })
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
  const charge = mpp === undefined ? undefined : makeCharge(mpp, terms, store, description)
  /**
   * @param {Request} request @param {Asked} asked @param {string} error
   * @param {{ receipt?: unknown, problem?: string, status?: number }} [about] `problem`: of an MPP credential
   */
  const refuse = (request, asked, error, { problem, receipt, status = 402 } = {}) => {
    const resource = { url: request.url, description: description ?? "", mimeType: "application/json" }
    const body = { x402Version: 2, error, resource, accepts: [terms] }
    const headers = {
      "cache-control": "no-store",
      "payment-required": encode(body),
      ...(charge === undefined ? {} : { "www-authenticate": charge.challenge(asked) }),
      ...(receipt === undefined ? {} : { "payment-response": encode(receipt) })
    }
    if (problem !== undefined) {
      const type = `https://paymentauth.org/problems/${problem}`
      const problemBody = { type, title: problem.replaceAll("-", " "), status, detail: error, ...body }
      return Response.json(problemBody, { status, headers: { ...headers, "content-type": "application/problem+json" } })
    }
    const isForPeople = /\btext\/html\b/.test(request.headers.get("accept") ?? "")
    return paywall !== undefined && isForPeople
      ? new Response(paywall.generateHtml(body), {
          status,
          headers: { ...headers, ...paywall.headers, "content-type": "text/html; charset=utf-8" }
        })
      : Response.json(body, { status, headers })
  }
  /**
   * @param {Request} request
   * @param {(request: Request) => unknown | Promise<unknown>} work what is sold, as JSON; by `upto` `priced(…)`
   * @returns {Promise<Response>}
   */
  const answer = async (request, work) => {
    const header = request.headers.get("payment-signature")
    const credential = header === null ? request.headers.get("authorization") : null
    const isBound = header !== null || charge !== undefined
    const asked = { method: request.method, url: request.url, ...(isBound ? await bodyOf(request) : {}) }
    const read = header === null ? charge?.read(credential, asked) : readPayment(header)
    if (read === undefined)
      return refuse(
        request,
        asked,
        header === null ? "payment required" : "PAYMENT-SIGNATURE is not base64 of a payment"
      )
    if ("problem" in read) return refuse(request, asked, "the credential pays nothing", read)
    const { bytes } = read
    const challenge = /** @type {{ challenge?: import("./mpp.mjs").Challenge }} */ (read).challenge
    const payment = challenge && charge ? await charge.begun(read.payment) : read.payment
    const sold = await sell({
      ...{ bytes, payment, requirements: terms, request: asked },
      client: (challenge && charge?.checked(client, challenge)) ?? client,
      work: async () => {
        const done = /** @type {any} */ (await work(request))
        const { amount, body } = done instanceof Work ? done : { amount: undefined, body: done }
        const headers = { "content-type": "application/json" }
        return { status: 200, headers, body: encode(body), ...(amount === undefined ? {} : { amount }) }
      }
    })
    if (!sold.released) {
      const withheld = answerWithheld(sold, payment)
      if (withheld !== undefined) return Response.json(withheld.body, withheld)
      const { reason, receipt } = sold
      return refuse(request, asked, reason, { receipt, ...(challenge && { problem: problemOf(reason) }) })
    }
    const { body, headers, status } = sold.work
    return new Response(Buffer.from(body, "base64"), {
      status,
      headers: {
        .../** @type {Record<string, string>} */ (headers),
        "cache-control": "private, no-store",
        "payment-response": encode(sold.receipt),
        ...(challenge && charge && { "payment-receipt": await charge.receipt(payment, sold.receipt.transaction) })
      }
    })
  }
  return Object.assign(answer, { counters })
}

class Work {
  /** @param {unknown} body @param {string} amount */
  constructor(body, amount) {
    this.body = body
    this.amount = amount
  }
}

/** Work priced by use: its result, and its price, at most the maximum. @param {unknown} body @param {string} amount */
export const priced = (body, amount) => new Work(body, amount)

/** Maximum body that `toNode` reads itself, and its parts: a part of one byte takes half a kilobyte. */
const bodyBytesMax = 8 * 2 ** 20
const [partsAlways, bytesPerPart] = [1_024, 64]
class TooLarge extends Error {}

const isForm = (/** @type {string} */ type) => /^application\/x-www-form-urlencoded\b/i.test(type)
const isText = (/** @type {unknown} */ value) => typeof value === "string"

/**
 * A parser's result as bytes, with their type where it is another: a form with texts alone as a form, else JSON.
 * @param {any} parsed @param {string} type @returns {{ body: Buffer, type?: string }}
 */
const encodeParsed = (parsed, type) => {
  if (typeof parsed === "string" || Buffer.isBuffer(parsed)) return { body: Buffer.from(parsed) }
  if (!isForm(type)) return { body: Buffer.from(JSON.stringify(parsed)) }
  const fields = Object.entries(parsed).map(([name, value]) => /** @type {const} */ ([name, [value].flat()]))
  if (!fields.every(([, values]) => values.every(isText)))
    return { body: Buffer.from(JSON.stringify(parsed)), type: "application/json" }
  const form = new URLSearchParams(fields.flatMap(([name, values]) => values.map((one) => [name, String(one)])))
  return { body: Buffer.from(form.toString()) }
}

/**
 * The body of a request of `node:http`, or a parser's result; throws if a parser read it and kept nothing.
 * @param {any} request @param {unknown} parsed @returns {Promise<{ body: any, type?: string } | undefined>}
 */
const nodeBody = async (request, parsed) => {
  // The Fetch API does not allow a body for these methods.
  if (request.method === "GET" || request.method === "HEAD") return undefined
  if (request.readableDidRead !== true && request.readableEnded !== true) {
    const chunks = /** @type {Array<Uint8Array>} */ ([])
    let length = 0
    for await (const chunk of request) {
      length += chunk.length
      const isSplit = chunks.push(chunk) > partsAlways + length / bytesPerPart
      if (length > bodyBytesMax || isSplit)
        throw new TooLarge(`a body has at most ${bodyBytesMax} bytes, in parts of ${bytesPerPart} and more`)
    }
    return chunks.length === 0 ? undefined : { body: Buffer.concat(chunks) }
  }
  const body = parsed ?? request.body
  if (body === undefined) {
    const isEmpty =
      request.headers["transfer-encoding"] === undefined && !(Number(request.headers["content-length"]) > 0)
    if (isEmpty) return undefined
    throw new Error(
      "a parser has read the body of this request and kept nothing: pass the parsed body to toNode's handler"
    )
  }
  return encodeParsed(body, request.headers["content-type"] ?? "")
}

/** @param {any} response @param {unknown} error */
const fail = (response, error) => {
  if (error instanceof TooLarge && !response.headersSent)
    return void response.writeHead(413, { connection: "close" }).end(error.message)
  console.error(error)
  if (response.headersSent) response.destroy()
  else response.writeHead(500, { "content-type": "application/json" }).end(JSON.stringify({ error: "internal_error" }))
}

/**
 * A handler of `node:http`, Express or Fastify's raw request. A body that a parser has read before is Express's
 * `request.body`, or the handler's third argument. @param {(request: Request) => Promise<Response>} answer
 * @returns {(request: import("node:http").IncomingMessage, response: import("node:http").ServerResponse,
 *   parsed?: unknown) => Promise<void>}
 */
export const toNode = (answer) => async (request, response, parsed) => {
  try {
    const headers = new Headers()
    for (const [name, value] of Object.entries(request.headers)) if (typeof value === "string") headers.set(name, value)
    const { originalUrl, protocol = "http" } = /** @type {any} */ (request)
    const url = `${protocol}://${request.headers.host ?? "seller"}${originalUrl ?? request.url}`
    // Express passes `next` there.
    const read = await nodeBody(request, typeof parsed === "function" ? undefined : parsed)
    // The length of the parsed body may differ.
    headers.delete("content-length")
    if (read?.type !== undefined) headers.set("content-type", read.type)
    const given = await answer(
      new Request(url, { method: request.method ?? "GET", headers, ...(read === undefined ? {} : { body: read.body }) })
    )
    response.writeHead(given.status, Object.fromEntries(given.headers))
    response.end(Buffer.from(await given.arrayBuffer()))
  } catch (error) {
    fail(response, error)
  }
}

/** A route of Fastify, after its parsers have read the body. @param {(request: Request) => Promise<Response>} answer */
export const toFastify = (answer) => (/** @type {any} */ request, /** @type {any} */ reply) => {
  reply.hijack()
  return toNode(answer)(request.raw, reply.raw, request.body ?? undefined)
}

/** Middleware of Koa; uses a body that a parser kept. @param {(request: Request) => Promise<Response>} answer */
export const toKoa = (answer) => async (/** @type {any} */ context) => {
  context.respond = false
  await toNode(answer)(context.req, context.res, context.request.body)
}
