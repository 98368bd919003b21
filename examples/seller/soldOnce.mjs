// @ts-check
// Sells each payment once, over a store. A payment's work is computed once and released each time the same payment
// requests the same thing, so an answer that is lost on the way to the buyer does not lose the sale. It wraps the
// official resource server (its FacilitatorClient, and its middleware, because the middleware's hooks are not called
// for an invalid verify) and serves custom sellers, such as `seller-http.ts`. The steps are in `seller/sales.mjs`. No
// dependency; Node and Deno.
//
// While a payment's end is unknown the buyer gets 503 with the payment's identity, never a new 402; if a facilitator
// gives no verdict, it gets 502 or 503. Nothing is released to another payment or another request, whatever its
// identifier: 409. Across processes the first stored work counts; within one, duplicates wait for each other.
import { AsyncLocalStorage } from "node:async_hooks"
import { encode } from "./outcome.mjs"
import { answerWithheld, canonical, makeSale, makeSales, readPayment } from "./sales.mjs"

export { fileStore, memoryStore, soldTable, sqlStore } from "./stores.mjs"

/** @typedef {import("./stores.mjs").Store} Store */
/** @typedef {import("./outcome.mjs").Asked} Asked */
/** @typedef {import("./outcome.mjs").Client} Client */
/** @typedef {import("./outcome.mjs").Receipt} Receipt */
/** @typedef {import("./sales.mjs").Sale} Sale */
/** @typedef {import("./sales.mjs").Sold} Sold */
/** @typedef {import("./sales.mjs").Withheld} Withheld */
/** @typedef {import("./sales.mjs").Work} Work */

/**
 * The content of an Express request. Throws for a body that no parser has read: the sale would not be bound to it.
 * @param {any} request @returns {Asked}
 */
const askedOf = (request) => {
  const { body, headers, method, originalUrl, protocol = "http", url } = request
  const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0
  // Express 4's parsers leave an empty object for a body of another type.
  const isUnread = request.readableDidRead === false && canonical(body) === "{}"
  if (hasBody && (body === undefined || isUnread))
    throw new Error("a paid request has a body that no parser has read: put the parser before soldOnce's middleware")
  return {
    method,
    url: `${protocol}://${headers.host ?? "seller"}${originalUrl ?? url}`,
    ...(hasBody ? { body: Buffer.isBuffer(body) ? body : canonical(body) } : {})
  }
}

/** Headers that belong to one answer only, or that control the payment middleware's settle. */
const isOfOneAnswer = /^(connection|date|keep-alive|transfer-encoding|content-length|payment-response)$/i
const isForMiddleware = /^settlement-overrides$/i

/** Serializes the duplicates of one payment within this process. */
const makeFlights = () => {
  const flights = /** @type {Map<string, { is: string, running: Promise<any> }>} */ (new Map())
  /**
   * Runs `work` while no other work of that name runs. Duplicates of one `is` share an end that is not a release.
   * @template A
   * @param {string} name @param {string} is @param {() => Promise<A>} work
   * @returns {Promise<A>}
   */
  return async (name, is, work) => {
    for (let other = flights.get(name); other !== undefined; other = flights.get(name)) {
      const ended = await other.running.catch(() => undefined)
      if (other.is === is && ended?.released === false) return ended
    }
    const running = work()
    flights.set(name, { is, running })
    return running.finally(() => flights.delete(name))
  }
}

/**
 * Sells each payment once, over a store. `facilitator` and `middleware` wrap the official client and middleware; `sell`
 * is a sale by a custom server. `counters` has the calls that a facilitator did not answer, by cause; `log` gets a line
 * for each cause. `patience`: milliseconds for which an unanswered settle is repeated. `service`: names this service
 * among those of one owner with stores of their own: without it, a caller that sends the host of one to another, at the
 * same path and price, gets the pages of both for one payment.
 * @param {{ store: Store, log?: (line: string) => void, patience?: number, service?: string }} options
 */
export const soldOnce = (options) => {
  const { service } = options
  const sales = makeSales(options)
  const alone = makeFlights()
  const clients = /** @type {Set<Client>} */ (new Set())
  /** The request that is being paid, for the client that the middleware calls. */
  const current = /** @type {AsyncLocalStorage<{ sale: Sale, isPaying: boolean, withheld?: Withheld }>} */ (
    new AsyncLocalStorage()
  )

  /**
   * A FacilitatorClient for `x402ResourceServer`, below the middleware.
   * @template {object} C
   * @param {C} client
   * @returns {C}
   */
  const facilitator = (client) => {
    const asked = /** @type {any} */ (client)
    clients.add(asked)
    const own = {
      /** @param {any} payment @param {any} requirements @param {string} [key] */
      verify: async (payment, requirements, key) => {
        const paying = current.getStore()
        if (paying === undefined) return asked.verify(payment, requirements, key)
        const { sale } = paying
        // Only a verified payment with stored work may be settled.
        const claim = await sales.claimOf(sale)
        const isResumed = claim !== undefined && claim !== "other" && (await sales.workOf(sale.name)) !== undefined
        const verdict = isResumed
          ? { answer: { isValid: true, payer: claim.payer || undefined } }
          : await sales.verify(asked, payment, requirements, sale)
        if ("answer" in verdict) {
          paying.isPaying = true
          return verdict.answer
        }
        paying.withheld = verdict
        return { isValid: false, invalidReason: verdict.reason }
      },
      /** @param {any} payment @param {any} requirements @param {string} [key] */
      settle: async (payment, requirements, key) => {
        const paying = current.getStore()
        if (paying === undefined) return asked.settle(payment, requirements, key)
        const settled = await sales.settle(asked, payment, requirements, paying.sale)
        if (!("released" in settled)) {
          paying.isPaying = true
          return settled.receipt
        }
        paying.withheld = settled
        const { network } = requirements
        return settled.receipt?.success === false
          ? settled.receipt
          : { success: false, errorReason: settled.reason, transaction: "", network }
      }
    }
    return new Proxy(client, {
      get: (target, member) => {
        if (member === "verify" || member === "settle") return own[member]
        const value = Reflect.get(target, member)
        return typeof value === "function" ? value.bind(target) : value
      }
    })
  }

  /** After the payment middleware: the stored work of the payment, or the handler's answer, which is stored first. */
  const serve = async (
    /** @type {Sale} */ sale,
    /** @type {any} */ payment,
    /** @type {any} */ response,
    /** @type {(error?: unknown) => void} */ next
  ) => {
    const work = await sales.workOf(sale.name)
    if (work !== undefined) return write(response, work)
    const keep = async (/** @type {Work} */ done) => {
      if (done.status < 400) return sales.keep(sale, done)
      await sales.end(sale, payment)
      return done
    }
    capture(response, keep, next)
    next()
  }

  /**
   * The end of a sale whose settle was sent before. The middleware cannot find it: its terms may have changed since.
   * @param {Sale} sale @param {any} payment @returns {Promise<Sold | undefined>}
   */
  const resume = async (sale, payment) => {
    // The scheme of channels adds its own members to a settle.
    if (payment.accepted?.scheme === "batch-settlement") return undefined
    const [terms, work] = await Promise.all([sales.termsOf(sale.name), sales.workOf(sale.name)])
    const [client, other] = clients
    if (terms === undefined || work === undefined || client === undefined || other !== undefined) return undefined
    const settled = await sales.settle(client, payment, terms, sale)
    return "released" in settled ? settled : { released: true, work, ...settled }
  }

  /**
   * Wraps a payment middleware of Express. Put it before the handlers, and parsers of bodies before it.
   * @param {(request: any, response: any, next: (error?: unknown) => void) => unknown} pay
   */
  const middleware =
    (pay) => async (/** @type {any} */ request, /** @type {any} */ response, /** @type {any} */ next) => {
      const read = readPayment(request.headers["payment-signature"] ?? request.headers["x-payment"])
      if (read === undefined) return pay(request, response, next)
      try {
        const { bytes, payment } = read
        const first = makeSale(payment, askedOf(request), bytes, service)
        await alone(first.name, "", async () => {
          const sale = await sales.turnOf(first, payment)
          const known = (await sales.known(sale, payment)) ?? (await resume(sale, payment))
          if (known?.released === true) return release(response, known)
          if (known !== undefined && writeWithheld(response, known, payment)) return
          const paying = /** @type {{ sale: Sale, isPaying: boolean, withheld?: Withheld }} */ ({
            sale,
            isPaying: false
          })
          guardEnd(response, paying, payment, (header) => sales.answered(sale, header))
          // If the middleware called neither verify nor settle, the route is free; ignore the payment header.
          const paid = (/** @type {unknown} */ error) =>
            error !== undefined || !paying.isPaying ? next(error) : serve(sale, payment, response, next).catch(next)
          await current.run(paying, () => pay(request, response, paid))
        })
      } catch (error) {
        next(error)
      }
    }

  /** @param {Sale} sale @param {any} payment @param {() => Promise<Work> | Work} work */
  const workOrEnd = async (sale, payment, work) => {
    try {
      return await work()
    } catch (error) {
      await sales.end(sale, payment)
      throw error
    }
  }

  /**
   * One sale: `work` is computed for a valid payment, and released each time it is requested once it is paid. `bytes`:
   * the payment as received; `request`: the purchase (a text is its URL).
   * @param {{
   *   client: Client, payment: any, requirements: any, request: Asked | string, bytes?: string | Uint8Array,
   *   work: () => Promise<Work> | Work
   * }} given
   * @returns {Promise<Sold>}
   */
  const sell = async ({ bytes, client, payment, request, requirements, work }) => {
    const asked = typeof request === "string" ? { method: "GET", url: request } : request
    const first = makeSale(payment, asked, bytes, service)
    return alone(first.name, `${first.exact} ${first.request}`, async () => {
      const sale = await sales.turnOf(first, payment)
      const known = await sales.known(sale, payment)
      if (known !== undefined) return known
      // A payment with a claim and stored work was valid: it resumes at the settle.
      const claim = await sales.claimOf(sale)
      let done = claim === undefined || claim === "other" ? undefined : await sales.workOf(sale.name)
      if (done === undefined) {
        const verdict = await sales.verify(client, payment, requirements, sale)
        if ("released" in verdict) return verdict
        done = (await sales.workOf(sale.name)) ?? (await sales.keep(sale, await workOrEnd(sale, payment, work)))
      }
      const { amount = requirements.amount } = done
      const settled = await sales.settle(client, payment, { ...requirements, amount }, sale)
      return "released" in settled ? settled : { released: /** @type {const} */ (true), work: done, ...settled }
    })
  }

  return { counters: sales.counters, facilitator, middleware, sell }
}

/** @param {any} response @param {Withheld} withheld @param {any} payment */
const writeWithheld = (response, withheld, payment) => {
  const answer = answerWithheld(withheld, payment)
  if (answer === undefined) return false
  for (const name of ["payment-required", "content-length", "etag"]) response.removeHeader(name)
  response.statusCode = answer.status
  for (const [name, value] of Object.entries(answer.headers)) response.setHeader(name, value)
  response.end(JSON.stringify(answer.body))
  return true
}

/**
 * Stores the header of a paid answer before it is sent. Sends the known state instead of the middleware's request for a
 * new payment.
 * @param {any} response @param {{ withheld?: Withheld }} paying @param {any} payment
 * @param {(header: string) => Promise<unknown>} note
 */
const guardEnd = (response, paying, payment, note) => {
  const { end } = response
  response.end = (/** @type {Array<any>} */ ...args) => {
    response.end = end
    const { withheld } = paying
    if (withheld !== undefined && !response.headersSent && writeWithheld(response, withheld, payment)) return response
    const header = response.getHeader("payment-response")
    const send = () => end.apply(response, args)
    if (header === undefined || response.statusCode >= 400) send()
    else note(String(header)).then(send, send)
    return response
  }
}

/** Buffers a handler's answer. When it has ended, writes the result of `keep` instead. */
const capture = (
  /** @type {any} */ response,
  /** @type {(work: Work) => Promise<Work>} */ keep,
  /** @type {(error: unknown) => void} */ fail
) => {
  const { end, flushHeaders, write: writeOn, writeHead } = response
  const chunks = /** @type {Array<Buffer>} */ ([])
  const push = (/** @type {any} */ chunk, /** @type {any} */ encoding) => {
    if (chunk === undefined || chunk === null || typeof chunk === "function") return
    chunks.push(Buffer.from(chunk, typeof encoding === "string" ? /** @type {any} */ (encoding) : undefined))
  }
  response.flushHeaders = () => undefined
  response.writeHead = (/** @type {number} */ status, /** @type {Array<any>} */ ...more) => {
    response.statusCode = status
    for (const [key, value] of Object.entries(more.at(-1) ?? {})) response.setHeader(key, value)
    return response
  }
  response.write = (/** @type {any} */ chunk, /** @type {any} */ encoding) => {
    push(chunk, encoding)
    return true
  }
  response.end = (/** @type {any} */ chunk, /** @type {any} */ encoding) => {
    push(chunk, encoding)
    Object.assign(response, { end, flushHeaders, write: writeOn, writeHead })
    const headers = Object.fromEntries(
      Object.entries(response.getHeaders())
        .filter(([key]) => !isOfOneAnswer.test(key))
        .map(([key, value]) => [key, Array.isArray(value) ? value : String(value)])
    )
    const body = Buffer.concat(chunks).toString("base64")
    keep({ status: response.statusCode, headers, body }).then((work) => write(response, work), fail)
    return response
  }
}

/** @param {any} response @param {Work} work */
const write = (response, { body, headers, status }) => {
  response.statusCode = status
  for (const [key, value] of Object.entries(headers)) response.setHeader(key, value)
  response.removeHeader("content-length")
  response.end(Buffer.from(body, "base64"))
}

/** @param {any} response @param {Extract<Sold, { released: true }>} sold */
const release = (response, { header, receipt, work }) => {
  const headers = Object.fromEntries(Object.entries(work.headers).filter(([key]) => !isForMiddleware.test(key)))
  write(response, {
    ...work,
    headers: { ...headers, "payment-response": header ?? encode(receipt), "cache-control": "private, no-store" }
  })
}
