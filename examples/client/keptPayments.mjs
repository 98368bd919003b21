// @ts-check
// A signed payment is stored before it is sent. While it may still land, it is the only payment for its request: the
// next identical call sends it again, byte for byte. It ends when its page arrives, or when its last ledger has closed
// and the seller still refuses it. A payment that settled without its page stays stored, because only its buyer can
// decide to pay once more. JavaScript, Python and bash use one file format for stored payments. Node and Deno.
import { createHash, randomUUID } from "node:crypto"
import { link, mkdir, open, readFile, unlink } from "node:fs/promises"
import { request as askHttp } from "node:http"
import { request as askHttps } from "node:https"
import { homedir } from "node:os"
import { dirname, join, resolve } from "node:path"

/**
 * The request to pay for.
 * @typedef {{ method?: string, headers?: Record<string, string>, body?: string | Uint8Array }} Call
 */
/** @typedef {{ method: string, url: string, headers: Record<string, string>, body?: Uint8Array }} Request */
/**
 * `body`: base64. `payment`: the value of PAYMENT-SIGNATURE. `expires`: the last ledger in which it can land; absent
 * for a voucher. `before`: for a channel, the highest amount signed before this voucher.
 * @typedef {{ method: string, url: string, headers: Record<string, string>, body?: string, payment: string,
 *   expires?: number, before?: string, name?: string, file?: string }} Kept
 */
/**
 * `putIfAbsent` returns the stored payment: its own argument, or a payment that another call stored first. `remove`
 * leaves another payment that has taken the place of this one.
 * @typedef {{ get: (key: string) => Promise<Kept | undefined>,
 *   remove: (key: string, kept: Kept) => Promise<unknown>,
 *   putIfAbsent: (key: string, kept: Kept) => Promise<Kept> }} Payments
 */

/** The answer was lost or is pending: the payment may have landed, and the buyer signs no other for its request. */
export class PaymentUnknown extends Error {
  /** @param {Kept} kept @param {string} why @param {number} cuts answers in a row that were cut */
  constructor(kept, why, cuts) {
    super(`${why}; the payment may have landed and is kept: send the same one again`)
    this.kept = kept
    this.cuts = cuts
  }
}

/** Lost with the process. @returns {Payments} */
export const memoryPayments = () => {
  const entries = /** @type {Map<string, Kept>} */ (new Map())
  return {
    get: async (key) => entries.get(key),
    putIfAbsent: async (key, kept) => {
      if (!entries.has(key)) entries.set(key, kept)
      return entries.get(key) ?? kept
    },
    remove: async (key, { payment }) => entries.get(key)?.payment === payment && entries.delete(key)
  }
}

/** The folder of the command lines: `PAYMENTS`, or one in the home folder. */
export const paymentsFolder = () => process.env["PAYMENTS"] ?? join(homedir(), ".x402-payments")

/** @param {string} file @returns {Promise<Kept>} */
export const readKept = async (file) => ({ ...JSON.parse(await readFile(file, "utf8")), file: resolve(file) })

const isAbsent = (/** @type {unknown} */ error) => /** @type {{ code?: string }} */ (error)?.code === "ENOENT"

/** Writes a folder's names to the disk: a crash of the machine loses a newer one. @param {string} folder */
const syncFolder = async (folder) => {
  const file = await open(folder, "r")
  await file.sync().finally(() => file.close())
}

/** Makes a folder for its owner alone, and writes each new name to the disk. @param {string} folder */
const makeFolder = async (folder) => {
  const made = await mkdir(folder, { recursive: true, mode: 0o700 })
  if (made === undefined) return
  for (let at = resolve(folder); at.length >= resolve(made).length; at = dirname(at)) await syncFolder(dirname(at))
}

/** One file per payment, on the disk before the payment is sent. @param {string} folder @returns {Payments} */
export const filePayments = (folder) => {
  const fileOf = (/** @type {string} */ key) => join(folder, `${key}.json`)
  const get = (/** @type {string} */ key) =>
    readKept(fileOf(key)).catch((error) => {
      if (isAbsent(error)) return undefined
      throw error
    })
  return {
    get,
    putIfAbsent: async (key, kept) => {
      await makeFolder(folder)
      const draft = join(folder, `${randomUUID()}.draft`)
      const file = await open(draft, "wx", 0o600)
      try {
        await file.writeFile(JSON.stringify(kept))
        await file.sync()
      } finally {
        await file.close()
      }
      try {
        // Creating a link is atomic, and never replaces an existing one.
        await link(draft, fileOf(key))
      } catch (error) {
        if (/** @type {{ code?: string }} */ (error).code !== "EEXIST") throw error
      } finally {
        await unlink(draft)
      }
      await syncFolder(folder)
      return (await get(key)) ?? kept
    },
    remove: async (key, { payment }) => {
      if ((await get(key))?.payment !== payment) return
      await unlink(fileOf(key)).catch((error) => {
        if (!isAbsent(error)) throw error
      })
    }
  }
}

const hex = (/** @type {string | Uint8Array} */ bytes) => createHash("sha256").update(bytes).digest("hex")

/** @param {string} url @param {Call} call @returns {Request} */
export const requestOf = (url, { body, headers = {}, method }) => ({
  method: (method ?? (body === undefined ? "GET" : "POST")).toUpperCase(),
  url,
  headers,
  ...(body === undefined ? {} : { body: typeof body === "string" ? new TextEncoder().encode(body) : body })
})

/** The same key for identical calls. `name` separates purchases. @param {string} payer @param {Request} request */
export const keyOf = (payer, { body = new Uint8Array(), method, url }, name = "") =>
  hex([payer, method, url, hex(body), name].join("\n"))

/**
 * @param {Request} request @param {string} payment @param {{ expires?: number, before?: bigint }} [more]
 * @returns {Kept}
 */
export const keptOf = ({ body, headers, method, url }, payment, { before, expires } = {}) => ({
  method,
  url,
  headers,
  ...(body === undefined ? {} : { body: Buffer.from(body).toString("base64") }),
  payment,
  ...(expires === undefined ? {} : { expires }),
  ...(before === undefined ? {} : { before: String(before) })
})

/** Timeout of one answer, milliseconds. */
const patience = 60_000
const pauseMillis = 1_000
const pauseMillisMax = 30_000
/** A buyer stops after this many cut answers in a row. */
export const cutsMax = 3
const attemptsMax = 20
const reasonMax = 300

/** `fetch` sends no body with GET, which some sellers read. @param {Request} request @returns {Promise<Response>} */
const askWithBody = ({ body, headers, method, url }) =>
  new Promise((given, failed) => {
    const ask = new URL(url).protocol === "https:" ? askHttps : askHttp
    const length = { "content-length": String(body?.length ?? 0) }
    const options = { method, headers: { ...length, ...headers }, signal: AbortSignal.timeout(patience) }
    const sent = ask(url, options, (answer) => {
      const chunks = /** @type {Array<Uint8Array>} */ ([])
      answer.on("data", (chunk) => chunks.push(chunk)).on("error", failed)
      answer.on("end", () => {
        const head = new Headers()
        for (const [name, value] of Object.entries(answer.headers)) head.set(name, String(value))
        const bytes = Buffer.concat(chunks)
        given(new Response(bytes.length === 0 ? null : bytes, { status: answer.statusCode ?? 500, headers: head }))
      })
    })
    sent.on("error", failed).end(body)
  })

/** The whole answer: an answer cut within its body counts as lost. @param {string} url @param {RequestInit} sent */
const askOnce = async (url, sent) => {
  const answer = await fetch(url, { ...sent, redirect: "manual" })
  const bytes = await answer.arrayBuffer()
  return new Response(bytes.byteLength === 0 ? null : bytes, { status: answer.status, headers: answer.headers })
}

const redirectsMax = 10
const isRedirect = new Set([301, 302, 303, 307, 308])

/**
 * Reads the whole answer. A redirect to another origin is followed without headers and body: a key or a payment stays
 * at the origin that it is for. If the redirect would repeat a body there, or if that origin asks for a payment, the
 * redirect is the answer.
 * @param {string} url
 * @param {{ method: string, headers: Record<string, string>, body?: any, signal?: AbortSignal }} sent
 */
export const follow = async (url, { body, headers, method, ...more }) => {
  let left = /** @type {Response | undefined} */ (undefined)
  for (let at = url, hop = 1; ; hop++) {
    const answer = await askOnce(at, { method, headers, ...more, ...(body === undefined ? {} : { body }) })
    const location = answer.headers.get("location") ?? ""
    if (answer.status === 402 && left !== undefined) return left
    if (!isRedirect.has(answer.status) || location === "" || !URL.canParse(location, at)) return answer
    if (hop === redirectsMax) return left ?? answer
    const to = new URL(location, at)
    if (answer.status === 303 || (answer.status < 303 && method === "POST")) {
      if (method !== "HEAD") method = "GET"
      body = undefined
      headers = Object.fromEntries(Object.entries(headers).filter(([name]) => !/^content-/i.test(name)))
    }
    if (to.origin !== new URL(at).origin) {
      if (body !== undefined || !/^(GET|HEAD)$/.test(method) || !/^https?:$/.test(to.protocol)) return answer
      headers = {}
      left ??= answer
    }
    at = to.href
  }
}

/** @param {Request} request @param {string} [payment] */
export const ask = async (request, payment) => {
  const { body, method, url } = request
  const headers = { ...request.headers, ...(payment === undefined ? {} : { "payment-signature": payment }) }
  if (body !== undefined && /^(GET|HEAD)$/.test(method)) return askWithBody({ ...request, headers })
  return follow(url, { method, headers, body, signal: AbortSignal.timeout(patience) })
}

export const encode = (/** @type {unknown} */ content) => Buffer.from(JSON.stringify(content)).toString("base64")

/** A header's JSON; undefined for anything else. @param {string | null} header @returns {any} */
export const decode = (header) => {
  try {
    return header === null ? undefined : JSON.parse(Buffer.from(header, "base64").toString("utf8"))
  } catch {
    return undefined
  }
}

/** The requirements in a seller's 402. @param {Response} answer @returns {Promise<any>} */
export const requiredBy = async (answer) =>
  decode(answer.headers.get("payment-required")) ??
  (await answer
    .clone()
    .json()
    .catch(() => undefined))

/** Why a payment was refused, by receipt or body, in printable form. @param {any} receipt @param {any} refused */
const reasonOf = (receipt, refused) =>
  String(receipt?.errorReason || refused?.error || "")
    .slice(0, reasonMax)
    .replaceAll(/\p{Cc}/gu, " ")

/**
 * The payment moved the money, or has paid for another request by the seller's record, and its page was not delivered.
 * @param {string} reason
 */
export const isSpent = (reason) => /already_settled|authorization_spent|payment_already_used/.test(reason)

/** The body of a refusal that names its reason: a 402, or a 409 of a used payment. @param {Response} answer */
const refusedBy = async (answer) => {
  if (answer.status === 402) return requiredBy(answer)
  if (answer.status !== 409) return undefined
  return answer
    .clone()
    .json()
    .catch(() => undefined)
}

/**
 * Sends a kept payment until its answer is known: the page, or a refusal. Throws `PaymentUnknown` if it stays pending
 * or three answers in a row are cut.
 * @param {Kept} kept @param {{ attempts?: number }} [options]
 */
export const sendKept = async (kept, { attempts = attemptsMax } = {}) => {
  const { body, headers, method, payment, url } = kept
  const request = { method, url, headers, ...(body === undefined ? {} : { body: Buffer.from(body, "base64") }) }
  let why = ""
  let cuts = 0
  for (let attempt = 1; ; attempt++) {
    const response = await ask(request, payment).catch((error) => {
      why = `the answer was lost (${error.cause?.code ?? error.cause?.message ?? error.message})`
      return undefined
    })
    // 503 comes from a seller that waits for the ledger; other statuses from a gateway or seller that lost its answer.
    cuts = response === undefined || (response.status >= 500 && response.status !== 503) ? cuts + 1 : 0
    let wait = pauseMillis
    if (response !== undefined) {
      const receipt = decode(response.headers.get("payment-response"))
      const refused = await refusedBy(response)
      const required = response.status === 402 ? refused : undefined
      const reason = reasonOf(receipt, refused)
      const isPending =
        !response.ok &&
        (response.status >= 500 ||
          [408, 425, 429].includes(response.status) ||
          /settlement_pending|status_unknown|temporarily_unavailable/.test(reason))
      if (!isPending) return { response, receipt, required, reason }
      why = `the seller answers ${response.status} ${reason}`.trim()
      const after = Number(response.headers.get("retry-after") ?? "")
      if (after > 0) wait = Math.min(after * 1_000, pauseMillisMax)
    }
    if (cuts >= cutsMax || attempt >= attempts) throw new PaymentUnknown(kept, why, cuts)
    await new Promise((resolved) => setTimeout(resolved, wait))
  }
}

/**
 * The extensions of a 402, as a payment echoes them, with an identifier if one is required.
 * @param {any} extensions
 */
export const echoed = (extensions) => {
  const declared = extensions?.["payment-identifier"]
  const info = declared?.info ?? declared
  if (info?.required !== true || info.id !== undefined) return extensions
  const named = { ...info, id: randomUUID().replaceAll("-", "") }
  return { ...extensions, "payment-identifier": declared.info === undefined ? named : { ...declared, info: named } }
}
