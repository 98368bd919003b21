// One conversation with a seller's MCP server over Streamable HTTP, for one call: `initialize`, what is needed of
// `tools/list`, the call without payment and at most once with it, and the end. Every request is bounded and pinned by
// itself, nothing is repeated here, and a call follows no redirect: who answered `initialize` is who is paid. An answer
// is read to the end of its JSON-RPC result; a server may keep its stream open after it.
import { Effect } from "effect"
import { fault, fetchFault, type ToolFault, type Upstream } from "../../mcp-tools/contract.ts"
import { toRpcAnswer } from "./readToResult.ts"
import { eventData, type Fields, findAnswer, type ListedTool, paymentMeta, readTools } from "./SellerWire.ts"

const protocolVersion = "2025-06-18"
/** Pages of `tools/list` that are read. */
const listPagesMax = 5
const encoder = new TextEncoder()

const who = "the seller"
const malformed = (message: string) => fault("UPSTREAM_PROTOCOL_ERROR", message)

export interface CallOptions {
  /** The payment payload; absent for the call without. */
  readonly payment?: Fields
  readonly timeoutMillis?: number
}

/** What a request has in place of the settings' caps. */
interface Caps {
  readonly timeoutMillis?: number
  readonly redirectsMax?: number
}

export interface SellerSession {
  readonly findTool: (name: string) => Effect.Effect<ListedTool | undefined, ToolFault>
  /** The tool's result, whatever it says. */
  readonly callTool: (name: string, args: Fields, options?: CallOptions) => Effect.Effect<Fields, ToolFault>
  readonly close: Effect.Effect<void>
}

/** What of a conversation changes on the way. */
interface SessionState {
  session: string | undefined
  /** Negotiated by `initialize`; on every request after it. */
  version: string | undefined
  lastId: number
  /** Where `initialize` was answered; whoever is paid is there. */
  endpoint: URL
}

/** The two ways to send on one conversation: what is answered, and what is not. */
const speak = (upstream: Upstream, endpoint: URL) => {
  const standing: SessionState = { session: undefined, version: undefined, lastId: 0, endpoint }
  const headers = () => ({
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "user-agent": "Tollkeeper/0.1 (agent tools)",
    ...(standing.version === undefined ? {} : { "mcp-protocol-version": standing.version }),
    ...(standing.session === undefined ? {} : { "mcp-session-id": standing.session })
  })
  const post = (message: Fields, caps: Caps = {}) =>
    Effect.mapError(
      upstream.fetch(
        standing.endpoint,
        {
          method: "POST",
          headers: headers(),
          body: encoder.encode(JSON.stringify({ jsonrpc: "2.0", ...message })),
          ...(typeof message["id"] === "number" ? { reader: toRpcAnswer(message["id"]) } : {})
        },
        caps
      ),
      fetchFault(who)
    )

  const ask = Effect.fnUntraced(function* (method: string, params: Fields, caps?: Caps) {
    const id = ++standing.lastId
    const { body, headers, status, url } = yield* post({ id, method, params }, caps)
    if (status === 429 || status === 503)
      return yield* fault("UPSTREAM_TIMEOUT", "the seller cannot answer now", { status })
    if (status !== 200)
      return yield* fault("UPSTREAM_PROTOCOL_ERROR", "the seller's endpoint answers with an error", { status })
    if (method === "initialize") {
      standing.session = headers["mcp-session-id"]
      standing.endpoint = url
    }
    const isStream = headers["content-type"]?.startsWith("text/event-stream") === true
    const parts = isStream ? eventData(body)?.map((text) => encoder.encode(text)) : [body]
    if (parts === undefined) return yield* malformed("the seller's answer is too many events")
    const parse = method === "tools/call" ? upstream.parseContent : upstream.parse
    const messages = yield* Effect.mapError(Effect.forEach(parts, parse), () =>
      malformed("the seller's answer is no JSON within bounds")
    )
    const answer = findAnswer(messages, id)
    if (answer === undefined) return yield* malformed("the seller's answer is no answer to what was asked")
    return "result" in answer
      ? answer.result
      : yield* fault("UPSTREAM_PROTOCOL_ERROR", "the seller's server refuses the request", { code: answer.errorCode })
  })

  const close = Effect.suspend(() =>
    standing.session === undefined
      ? Effect.void
      : Effect.ignore(upstream.fetch(standing.endpoint, { method: "DELETE", headers: headers() }))
  )
  return { ask, close, post, standing }
}

export const openSeller = Effect.fn("Seller.open")(function* (
  upstream: Upstream,
  endpoint: URL
): Effect.fn.Return<SellerSession, ToolFault> {
  const { ask, close, post, standing } = speak(upstream, endpoint)
  const begun = yield* ask("initialize", {
    protocolVersion,
    capabilities: {},
    clientInfo: { name: "tollkeeper-tools", version: "0.1.0" }
  })
  const { protocolVersion: chosen } = begun
  standing.version = typeof chosen === "string" && /^\d{4}-\d{2}-\d{2}$/.test(chosen) ? chosen : protocolVersion
  if (standing.session !== undefined && !/^[\x21-\x7e]{1,256}$/.test(standing.session))
    return yield* malformed("the seller's session has no usable name")
  yield* post({ method: "notifications/initialized" })

  return {
    findTool: Effect.fnUntraced(function* (name) {
      let cursor: string | undefined
      for (let page = 0; page < listPagesMax; page++) {
        const listed = readTools(yield* ask("tools/list", cursor === undefined ? {} : { cursor }))
        const found = listed.tools.find((tool) => tool.name === name)
        if (found !== undefined || listed.cursor === undefined) return found
        cursor = listed.cursor
      }
      return undefined
    }),
    callTool: (name, args, { payment, timeoutMillis } = {}) =>
      ask(
        "tools/call",
        { name, arguments: args, ...(payment === undefined ? {} : { _meta: paymentMeta(payment) }) },
        { redirectsMax: 0, ...(timeoutMillis === undefined ? {} : { timeoutMillis }) }
      ),
    close
  }
})
