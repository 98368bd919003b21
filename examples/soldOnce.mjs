// @ts-check
// A seller's record of its sales, over a small store: a payment's work is computed once and released as often as the
// same payment requests the same thing, so that an answer that is lost on the way to the buyer is no lost sale. It
// wraps the official resource server (its FacilitatorClient and its middleware, whose hooks are not called for an
// invalid verify) and serves custom sellers, such as `seller-http.ts`. No dependency; Node and Deno.
//
// Order: the lookup precedes verify; the first request that a payment is verified for claims it; the work is stored
// before the payment is settled, the receipt before anything is released. After a crash the same payment sent again
// continues: verify is valid until the success was delivered; afterwards the facilitator's own record
// (`GET /settlements`, which shows this seller's alone) proves that this seller was paid, and the stored work is
// released. Nothing is released to another payment or another request, whatever identifier it carries, and one
// transaction of the ledger releases one thing. Across processes the first stored work counts; within one, duplicates
// wait for each other.
import { createHash, randomUUID } from "node:crypto"
import { link, mkdir, open, readFile, unlink } from "node:fs/promises"
import { join } from "node:path"

/**
 * What is stored stays: `putIfAbsent` gives the value that is stored, the caller's own or an earlier one.
 * @typedef {{
 *   get: (key: string) => Promise<string | undefined>,
 *   putIfAbsent: (key: string, value: string) => Promise<string>
 * }} Store
 */
/**
 * An HTTP answer; the body in Base64. `amount`: what it costs, where that is less than what was verified.
 * @typedef {{ status: number, headers: Record<string, string | Array<string>>, body: string, amount?: string }} Work
 */
/**
 * @typedef {{ success: boolean, transaction: string, network: string, payer?: string, errorReason?: string }} Receipt
 */
/** @typedef {{ isValid: boolean, payer?: string, invalidReason?: string }} Verdict */
/**
 * The payment part of an official FacilitatorClient.
 * @typedef {{
 *   verify: (payment: any, requirements: any) => Promise<any>,
 *   settle: (payment: any, requirements: any) => Promise<any>
 * }} Client
 */

/**
 * Lost when the process ends: for tests and for goods that may be lost with it. The oldest entries leave.
 * @param {number} entriesMax
 * @returns {Store}
 */
export const memoryStore = (entriesMax = 100_000) => {
  const entries = /** @type {Map<string, string>} */ (new Map())
  return {
    get: async (key) => entries.get(key),
    putIfAbsent: async (key, value) => {
      const stored = entries.get(key)
      if (stored !== undefined) return stored
      entries.set(key, value)
      const [oldest] = entries.keys()
      if (entries.size > entriesMax && oldest !== undefined) entries.delete(oldest)
      return value
    }
  }
}

/**
 * One file an entry in a folder, for the processes of one machine. Survives a crash of the process and of the machine.
 * @param {string} folder
 * @returns {Store}
 */
export const fileStore = (folder) => {
  const ready = mkdir(folder, { recursive: true })
  /** @param {string} key */
  const pathOf = (key) => join(folder, key.replaceAll("/", "-"))
  /** @type {Store["get"]} */
  const get = async (key) => {
    try {
      return await readFile(pathOf(key), "utf8")
    } catch (error) {
      if (/** @type {{ code?: string }} */ (error).code === "ENOENT") return undefined
      throw error
    }
  }
  return {
    get,
    putIfAbsent: async (key, value) => {
      await ready
      const draft = join(folder, `${randomUUID()}.draft`)
      const file = await open(draft, "wx")
      try {
        await file.writeFile(value)
        await file.sync()
      } finally {
        await file.close()
      }
      try {
        // A link is atomic, and never replaces another.
        await link(draft, pathOf(key))
        return value
      } catch (error) {
        if (/** @type {{ code?: string }} */ (error).code !== "EEXIST") throw error
        return (await get(key)) ?? value
      } finally {
        await unlink(draft)
      }
    }
  }
}

/** The table of `sqlStore`, for PostgreSQL. */
export const soldTable = `create table if not exists sold (
  key text primary key, value text not null, stored_at timestamptz not null default now())`

/**
 * For several machines: a table in PostgreSQL, by any client's query function that gives `{ rows }`.
 * @param {(sql: string, values: Array<string>) => Promise<{ rows: Array<any> }>} query
 * @returns {Store}
 */
export const sqlStore = (query) => {
  /** @type {Store["get"]} */
  const get = async (key) => (await query("select value from sold where key = $1", [key])).rows[0]?.value
  return {
    get,
    putIfAbsent: async (key, value) => {
      await query("insert into sold (key, value) values ($1, $2) on conflict do nothing", [key, value])
      return (await get(key)) ?? value
    }
  }
}

/**
 * JSON with its members in order.
 * @param {any} value
 * @returns {string}
 */
const canonical = (value) => {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null"
  const members = Object.keys(value).toSorted()
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join()}}`
}

/** @param {string} text */
const digest = (text) => createHash("sha256").update(text).digest("hex")

/** Key of the signed content: a payment has one sale, independent of unsigned fields. @param {any} payment */
const nameOf = (payment) => digest(canonical(payment?.payload))

/** The whole payment, as a repetition must send it. @param {any} payment */
const exactly = (payment) => digest(canonical(payment))

/** @param {any} payment @param {string} request */
const boundTo = (payment, request) => `${exactly(payment)} ${digest(request)}`

const isHash = /^[0-9a-f]{64}$/

/** The facilitator has settled this authorization before, in either spelling. @param {unknown} reason */
const isSettledBefore = (reason) => /^settle_(ledger|stellar)_already_settled$/.test(String(reason))

/**
 * Whether the facilitator's own records show that this seller was paid these terms by the transaction. `GET
 * /settlements` answers the caller's own settlements alone.
 * @param {any} client an official HTTPFacilitatorClient, or anything with its `url` and `createAuthHeaders`
 * @param {string} transaction
 * @param {any} terms
 */
const wasPaid = async (client, transaction, terms) => {
  const { headers = {} } = (await client.createAuthHeaders?.("settle")) ?? {}
  const url = `${String(client.url).replace(/\/+$/, "")}/settlements?hash=${transaction}`
  const response = await fetch(url, { headers })
  if (!response.ok) return false
  const { items = [] } = /** @type {any} */ (await response.json())
  return items.some(
    (/** @type {any} */ item) =>
      item.status === "success" &&
      item.transaction === transaction &&
      item.scheme === terms.scheme &&
      item.asset === terms.asset &&
      item.payTo === terms.payTo &&
      item.amount === terms.amount
  )
}

/** @param {unknown} value */
const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64")

/**
 * The payment that a request carries; undefined without one that can be read.
 * @param {import("node:http").IncomingMessage} request
 * @returns {any}
 */
export const paymentOf = ({ headers }) => {
  const header = headers["payment-signature"] ?? headers["x-payment"]
  if (typeof header !== "string") return undefined
  try {
    const payment = JSON.parse(Buffer.from(header, "base64").toString("utf8"))
    return typeof payment?.payload === "object" && payment.payload !== null ? payment : undefined
  } catch {
    return undefined
  }
}

/**
 * What a request asks for: method, URL and, where a parser before this has read it, the body.
 * @param {any} request
 */
const requestOf = ({ body, method, originalUrl, url }) => canonical([method, originalUrl ?? url, body ?? null])

/** Headers that belong to one answer, or set what the payment middleware settles. */
const isOfOneAnswer = /^(connection|date|keep-alive|transfer-encoding|content-length|payment-response)$/i
const isForMiddleware = /^settlement-overrides$/i

/**
 * What was sold, in a store.
 * @param {Store} store
 */
const makeSales = (store) => {
  /** @param {string} key @returns {Promise<any>} */
  const read = async (key) => {
    const value = await store.get(key)
    return value === undefined ? undefined : JSON.parse(value)
  }
  /** @param {any} payment @returns {Promise<Work | undefined>} */
  const workOf = (payment) => read(`work/${nameOf(payment)}`)
  /** @param {any} payment @returns {Promise<Receipt | undefined>} */
  const receiptOf = (payment) => read(`receipt/${nameOf(payment)}`)
  return {
    workOf,
    receiptOf,
    /**
     * What the payment has bought; `other` when that was something else.
     * @param {any} payment
     * @param {string} request
     */
    lookup: async (payment, request) => {
      const name = nameOf(payment)
      const claim = await store.get(`claim/${name}`)
      if (claim === undefined) return undefined
      if (claim !== boundTo(payment, request)) return /** @type {const} */ ("other")
      const [receipt, work, header] = await Promise.all([
        receiptOf(payment),
        workOf(payment),
        store.get(`header/${name}`)
      ])
      return receipt === undefined || work === undefined ? undefined : { work, receipt, header }
    },
    /**
     * True for the payment's first request, and for the same request again. Called once it is verified.
     * @param {any} payment @param {string} request
     */
    claim: async (payment, request) => {
      const bound = boundTo(payment, request)
      return (await store.putIfAbsent(`claim/${nameOf(payment)}`, bound)) === bound
    },
    /**
     * Stores what was computed, and gives what is stored.
     * @param {any} payment
     * @param {Work} work
     * @returns {Promise<Work>}
     */
    keep: async (payment, work) => JSON.parse(await store.putIfAbsent(`work/${nameOf(payment)}`, JSON.stringify(work))),
    /** Whether this very payment has stored work that is not paid yet. @param {any} payment */
    isComputed: async (payment) => {
      const claim = await store.get(`claim/${nameOf(payment)}`)
      return claim?.split(" ")[0] === exactly(payment) && (await workOf(payment)) !== undefined
    },
    /**
     * Stores the receipt, and gives the one that is stored; undefined when the transaction has paid for another sale.
     * @param {any} payment @param {Receipt} receipt @returns {Promise<Receipt | undefined>}
     */
    paid: async (payment, receipt) => {
      const name = nameOf(payment)
      if ((await store.putIfAbsent(`transaction/${receipt.transaction}`, name)) !== name) return undefined
      return JSON.parse(await store.putIfAbsent(`receipt/${name}`, JSON.stringify(receipt)))
    },
    /** The header that was answered, as the middleware wrote it. @param {any} payment @param {string} header */
    answered: (payment, header) => store.putIfAbsent(`header/${nameOf(payment)}`, header)
  }
}

/**
 * The two calls of a facilitator, on top of the store.
 * @param {ReturnType<typeof makeSales>} sales
 * @param {any} client
 */
const asking = (sales, client) => ({
  /** @param {any} payment @param {any} requirements @returns {Promise<Verdict>} */
  verify: async (payment, requirements) => {
    const verdict = await client.verify(payment, requirements)
    if (verdict.isValid || !isSettledBefore(verdict.invalidReason)) return verdict
    // Settle decides: its answer has the hash by which the facilitator's record is found.
    const isKnown = (await sales.receiptOf(payment)) !== undefined || (await sales.isComputed(payment))
    return isKnown ? { isValid: true, payer: verdict.payer } : verdict
  },
  /** @param {any} payment @param {any} requirements @returns {Promise<Receipt>} */
  settle: async (payment, requirements) => {
    const answer = await client.settle(payment, requirements)
    const { errorReason, network, payer, transaction } = answer
    if (!answer.success) {
      if (!isSettledBefore(errorReason) || !isHash.test(transaction)) return answer
      const known = await sales.receiptOf(payment)
      if (known !== undefined) return known.transaction === transaction ? known : answer
      const isPaid =
        (await sales.isComputed(payment)) &&
        (await wasPaid((await client.holder?.(payment)) ?? client, transaction, requirements))
      if (!isPaid) return answer
    }
    const receipt = answer.success ? answer : { success: true, payer, transaction, network }
    const stored = await sales.paid(payment, receipt)
    return stored ?? { success: false, errorReason: "payment_already_used", payer, transaction, network }
  }
})

/** Serializes duplicates of one payment within this process. */
const makeFlights = () => {
  const flights = /** @type {Map<string, Promise<unknown>>} */ (new Map())
  /**
   * Runs `work` while no other of that name runs; `known` is asked before, and again after each other.
   * @template A
   * @param {string} name @param {() => Promise<A | undefined>} known @param {() => Promise<A>} work
   * @returns {Promise<A>}
   */
  return async (name, known, work) => {
    for (;;) {
      const found = await known()
      if (found !== undefined) return found
      const other = flights.get(name)
      if (other === undefined) break
      await other
    }
    const running = work()
    flights.set(
      name,
      running.then(
        () => undefined,
        () => undefined
      )
    )
    try {
      return await running
    } finally {
      flights.delete(name)
    }
  }
}

/**
 * Sells each payment once, over a store. `facilitator` and `middleware` go around the official client and middleware;
 * `sell` is a sale by a server of one's own.
 * @param {{ store: Store }} options
 */
export const soldOnce = ({ store }) => {
  const sales = makeSales(store)
  const alone = makeFlights()
  /** Payments in flight that the facilitator has called valid, or has settled. */
  const verified = /** @type {Set<string>} */ (new Set())

  /**
   * A FacilitatorClient for `x402ResourceServer`.
   * @template {object} C
   * @param {C} client
   * @returns {C}
   */
  const facilitator = (client) => {
    const { settle, verify } = asking(sales, client)
    const own = {
      verify: async (/** @type {any} */ payment, /** @type {any} */ requirements) => {
        const verdict = await verify(payment, requirements)
        if (verdict.isValid) verified.add(nameOf(payment))
        return verdict
      },
      settle: async (/** @type {any} */ payment, /** @type {any} */ requirements) => {
        const receipt = await settle(payment, requirements)
        if (receipt.success) verified.add(nameOf(payment))
        return receipt
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

  /** Behind the payment middleware: what is stored of the payment, or the handler's answer, which is stored first. */
  const serve = async (
    /** @type {any} */ payment,
    /** @type {string} */ asked,
    /** @type {any} */ response,
    /** @type {(error?: unknown) => void} */ next
  ) => {
    // A free route; the payment header is ignored.
    if (!verified.has(nameOf(payment))) return next()
    if (!(await sales.claim(payment, asked))) return refuseOther(response)
    const work = await sales.workOf(payment)
    if (work !== undefined) return write(response, work)
    capture(response, async (done) => (done.status < 400 ? await sales.keep(payment, done) : done), next)
    next()
  }

  /**
   * Around a payment middleware of Express, in front of the handlers; parsers of bodies go before it.
   * @param {(request: any, response: any, next: (error?: unknown) => void) => unknown} pay
   */
  const middleware =
    (pay) => async (/** @type {any} */ request, /** @type {any} */ response, /** @type {any} */ next) => {
      const payment = paymentOf(request)
      if (payment === undefined) return pay(request, response, next)
      const asked = requestOf(request)
      const known = async () => {
        const found = await sales.lookup(payment, asked)
        if (found === undefined) return undefined
        if (found === "other") refuseOther(response)
        else release(response, found.work, found.header ?? encode(found.receipt))
        return true
      }
      const first = async () => {
        noteHeader(response, (header) => sales.answered(payment, header))
        await pay(request, response, (/** @type {unknown} */ error) => {
          if (error === undefined) serve(payment, asked, response, next).catch(next)
          else next(error)
        })
        return true
      }
      try {
        await alone(nameOf(payment), known, () => first().finally(() => verified.delete(nameOf(payment))))
      } catch (error) {
        next(error)
      }
    }

  /**
   * One sale: `work` is computed for a payment that is valid, and released once it is paid, as often as it is asked
   * for.
   * @param {{
   *   client: Client & { url?: string, createAuthHeaders?: (route: string) => Promise<any> },
   *   payment: any, requirements: any, request: string, work: () => Promise<Work> | Work
   * }} sale
   * @returns {Promise<
   *   | { released: true, work: Work, receipt: Receipt }
   *   | { released: false, reason: string, receipt?: Receipt }
   * >}
   */
  const sell = ({ client, payment, request, requirements, work }) => {
    const { settle, verify } = asking(sales, client)
    /** @param {string} reason @param {Receipt} [receipt] */
    const refused = (reason, receipt) => ({
      released: /** @type {const} */ (false),
      reason,
      ...(receipt === undefined ? {} : { receipt })
    })
    const known = async () => {
      const found = await sales.lookup(payment, request)
      if (found === undefined) return undefined
      return found === "other" ? refused("payment_already_used") : { released: /** @type {const} */ (true), ...found }
    }
    const first = async () => {
      const verdict = await verify(payment, requirements)
      if (!verdict.isValid) return refused(verdict.invalidReason ?? "invalid")
      if (!(await sales.claim(payment, request))) return refused("payment_already_used")
      const done = (await sales.workOf(payment)) ?? (await sales.keep(payment, await work()))
      const { amount = requirements.amount } = done
      const receipt = await settle(payment, { ...requirements, amount })
      return receipt.success
        ? { released: /** @type {const} */ (true), work: done, receipt }
        : refused(receipt.errorReason ?? "not settled", receipt)
    }
    return alone(nameOf(payment), known, first)
  }

  return { facilitator, middleware, sell }
}

/** Stores the header of a paid answer before the answer leaves. */
const noteHeader = (/** @type {any} */ response, /** @type {(header: string) => Promise<unknown>} */ note) => {
  const { end } = response
  response.end = (/** @type {Array<any>} */ ...args) => {
    const header = response.getHeader("payment-response")
    const send = () => end.apply(response, args)
    if (header === undefined || response.statusCode >= 400) send()
    else note(String(header)).then(send, send)
    return response
  }
}

/** Buffers what a handler answers; `keep` gives what is written instead once it has ended. */
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

/** @param {any} response @param {Work} work @param {string} header */
const release = (response, work, header) => {
  const headers = Object.fromEntries(Object.entries(work.headers).filter(([key]) => !isForMiddleware.test(key)))
  write(response, {
    ...work,
    headers: { ...headers, "payment-response": header, "cache-control": "private, no-store" }
  })
}

/** @param {any} response */
const refuseOther = (response) => {
  response.statusCode = 409
  response.setHeader("content-type", "application/json")
  response.end(JSON.stringify({ error: "payment_already_used", message: "the payment has bought something else" }))
}
