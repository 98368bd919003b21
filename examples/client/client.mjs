// @ts-check
// A typed client for every route of a facilitator: `makeClient({ url, key })` has one function for each operation of
// `/openapi.json`, generated into `operations.mjs` and `types.ts` (`npm run client`). An unsuccessful answer is thrown
// as `AnswerRefused`, with its status and body. `followSettlements` reads the stream of events and resumes from its
// last event, across restarts of either side. No dependency; Node, Deno and browsers.
import { operations } from "./operations.mjs"

/** The facilitator answered with an error. */
export class AnswerRefused extends Error {
  /**
   * @param {string} operation @param {number} status @param {unknown} body
   * @param {number | undefined} retryAfterSeconds
   */
  constructor(operation, status, body, retryAfterSeconds) {
    const { error, message } = /** @type {any} */ (body ?? {})
    super(`${operation}: ${status} ${error ?? ""} ${message ?? ""}`.trim())
    this.operation = operation
    this.status = status
    this.body = body
    /** Seconds after which the same request may succeed, if the facilitator sent that. */
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** @param {string} path @param {Record<string, unknown>} inPath @param {Record<string, unknown>} query */
const address = (path, inPath, query) => {
  // A tile's name is itself a path.
  const filled = path.replace(/\{(\w+)\}/g, (_, name) =>
    name === "tile" ? encodeURI(String(inPath[name])) : encodeURIComponent(String(inPath[name]))
  )
  const words = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) words.set(name, String(value))
  return words.size === 0 ? filled : `${filled}?${words}`
}

/** @param {Response} response */
const bodyOf = async (response) => {
  const text = await response.text()
  if (!/\bjson\b/.test(response.headers.get("content-type") ?? "")) return text
  return text === "" ? undefined : JSON.parse(text)
}

/** Events of one stream. @param {AsyncIterable<Uint8Array>} stream */
async function* parse(stream) {
  const decoder = new TextDecoder()
  let rest = ""
  for await (const chunk of stream) {
    rest += decoder.decode(chunk, { stream: true })
    for (let end = rest.search(/\r?\n\r?\n/); end >= 0; end = rest.search(/\r?\n\r?\n/)) {
      const lines = rest.slice(0, end).split(/\r?\n/)
      rest = rest.slice(end).replace(/^\r?\n\r?\n/, "")
      const fields = /** @type {Record<string, string>} */ ({})
      for (const line of lines) {
        const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? []
        if (name !== undefined) fields[name] = fields[name] === undefined ? (value ?? "") : `${fields[name]}\n${value}`
      }
      if (fields["data"] !== undefined)
        yield { id: fields["id"], event: fields["event"] ?? "message", data: fields["data"] }
    }
  }
}

/**
 * @param {{ url: string, key?: string, fetch?: typeof fetch }} options
 * @returns {import("./types.ts").Client}
 */
export const makeClient = ({ fetch: ask = fetch, key, url }) => {
  const base = url.replace(/\/+$/, "")
  const own = key === undefined ? {} : { authorization: `Bearer ${key}` }
  /** @param {string} name @param {any} [given] @param {AbortSignal} [signal] */
  const request = async (name, { body, headers = {}, path: inPath = {}, query = {} } = {}, signal) => {
    const [method = "GET", path = "/"] = /** @type {any} */ (operations)[name]
    const response = await ask(base + address(path, inPath, query), {
      method,
      headers: { ...own, ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      // A body may be a signed payment, and goes to no other origin.
      ...(body === undefined ? {} : { body: JSON.stringify(body), redirect: /** @type {const} */ ("error") }),
      ...(signal === undefined ? {} : { signal })
    })
    if (response.ok) return response
    const after = Number(response.headers.get("retry-after") ?? Number.NaN)
    throw new AnswerRefused(name, response.status, await bodyOf(response), Number.isNaN(after) ? undefined : after)
  }
  const single = Object.entries(operations).filter(([, [, , stream]]) => stream === undefined)
  const calls = single.map(([name]) => [
    name,
    async (/** @type {any} */ given, /** @type {AbortSignal | undefined} */ signal) =>
      bodyOf(await request(name, given, signal))
  ])

  /** @param {{ after?: string, signal?: AbortSignal, pauseMillis?: number }} [options] */
  async function* followSettlements({ after, pauseMillis = 1_000, signal } = {}) {
    let last = after
    const isStopped = () => signal?.aborted === true
    while (!isStopped()) {
      try {
        const headers = { accept: "text/event-stream", ...(last === undefined ? {} : { "last-event-id": last }) }
        const { body } = await request("settlementEvents", { headers }, signal)
        if (body !== null)
          for await (const { data, event, id } of parse(/** @type {any} */ (body))) {
            last = id ?? last
            yield { id: last, event, data: JSON.parse(data) }
          }
      } catch (error) {
        if (error instanceof AnswerRefused && error.status < 500 && error.status !== 429) throw error
      }
      if (!isStopped()) await new Promise((resolve) => setTimeout(resolve, pauseMillis))
    }
  }
  return /** @type {any} */ ({ ...Object.fromEntries(calls), followSettlements })
}
