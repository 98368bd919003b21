// One conversation with a seller's MCP server over Streamable HTTP, for one call, in either era of the protocol. It
// starts with `initialize` and a session or, if the server refuses that, with `server/discover` and requests that carry
// their envelope (2026-07-28). Then come the needed pages of `tools/list`, the call without payment, at most one call
// with it, and the end. Each request is bounded and pinned separately. A call follows no redirect: we pay the endpoint
// that answered the first request. An answer is read to the end of its JSON-RPC result, since a server may keep its
// stream open after it.
import { Effect } from "effect"
import { Base64 } from "effect/encoding"
import { parseJson } from "../../../kernel/http/BoundedJson.ts"
import type { FetchAnswer } from "../../../kernel/http/safeFetch.ts"
import { mirroredHeaders, offersStateless, statelessRevision, withEnvelope } from "../../catalog/contract.ts"
import { toolError, fetchError, type ToolError, type Upstream } from "../../mcp-tools/contract.ts"
import { closesJson, answerBounds, toRpcAnswer, withoutMark } from "./readToResult.ts"
import {
  asksForPayment,
  eventData,
  type Fields,
  findAnswer,
  type ListedTool,
  paymentMeta,
  readTools,
  resultText
} from "./SellerWire.ts"

const protocolVersion = "2025-06-18"
const clientInfo = { name: "tollkeeper-tools", version: "0.1.0" }
/** How often a stream is resumed, and the longest wait before that. */
const resumesMax = 3
const resumeWaitMax = 2_000
const listPagesMax = 5
const encoder = new TextEncoder()
const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

const caller = "the seller"
const malformed = (message: string) => toolError("UPSTREAM_PROTOCOL_ERROR", message)

interface CallPayment {
  readonly payment: Fields
  readonly timeoutMillis: number
}

/** A tool's result, as value and as original text. */
interface CallResult {
  readonly result: Fields
  readonly raw?: string | undefined
}

/** A paid tool's result. An unreadable one is delivered as the text that came. */
export interface PaidResult extends CallResult {
  /** Sending the same payment again may bring the rest. */
  readonly isPart: boolean
  /** Why it is unreadable. */
  readonly why?: string | undefined
}

/** Caps of a request that replace those of the settings. */
interface Caps {
  readonly timeoutMillis?: number
  readonly redirectsMax?: number
}

export interface SellerSession {
  readonly findTool: (name: string) => Effect.Effect<ListedTool | undefined, ToolError>
  /** The tool's result, successful or not. */
  readonly callTool: (name: string, args: Fields) => Effect.Effect<CallResult, ToolError>
  /** The same with a payment, which has its own timeout. */
  readonly payTool: (name: string, args: Fields, paid: CallPayment) => Effect.Effect<PaidResult, ToolError>
  readonly close: Effect.Effect<void>
}

interface SessionState {
  session: string | undefined
  /** Negotiated by `initialize` or `server/discover`; on every request after it. */
  version: string | undefined
  lastId: number
  /** Endpoint that answered the first request; the payment goes there. */
  endpoint: URL
  /** The searched tool, once found. */
  listed: ListedTool | undefined
}

/** A notification has no id. */
interface Message {
  readonly id?: number
  readonly method: string
  readonly params?: Fields
}

/** A request's result, or the server's refusal. */
type SellerResponse = (CallResult & Partial<Pick<PaidResult, "isPart" | "why">>) | { readonly refusal: ToolError }

/** The requests that open a conversation. */
const opening = new Set(["initialize", "server/discover"])

const isStream = (headers: FetchAnswer["headers"]) => /^text\/event-stream\b/i.test(headers["content-type"] ?? "")

/** Finds the answer to one request. Skips events that are not JSON. */
const readAnswer = Effect.fnUntraced(function* (
  upstream: Upstream,
  { body, headers }: FetchAnswer,
  id: number,
  contentOf: "nothing" | "call" | "payment"
) {
  const events = eventData(body).map((text) => encoder.encode(text))
  const declared = isStream(headers) ? events : [withoutMark(body)]
  // Paid JSON that is declared as a stream, or the other way round, is read too.
  const parts =
    contentOf !== "payment" ? declared : [...declared, ...(isStream(headers) ? [withoutMark(body)] : events)]
  const parse = {
    nothing: upstream.parse,
    call: upstream.parseContent,
    payment: (part: Uint8Array) => parseJson(part, answerBounds)
  }[contentOf]
  const messages = yield* Effect.forEach(parts, (part) => Effect.option(parse(part)))
  const read = messages.flatMap((message, at) =>
    message._tag === "Some" ? [{ value: message.value, part: parts[at]! }] : []
  )
  const answer = findAnswer(
    read.map(({ value }) => value),
    id
  )
  const own = contentOf === "nothing" ? undefined : read.find(({ value }) => findAnswer([value], id) !== undefined)
  const raw = own === undefined ? undefined : resultText(decoder.decode(own.part), own.value, id)
  return { answer, raw, isUnreadable: messages.slice(0, declared.length).some(({ _tag }) => _tag === "None") }
})

/**
 * Fallback for a paid answer without a readable response to the request: its text, since it was paid for. A result that
 * exceeds a bound counts as the content. Otherwise the content may still come, and the same payment asks again.
 */
const partOf = ({ body, cut, headers }: FetchAnswer, why: string): SellerResponse | undefined => {
  const text = decoder.decode(body)
  if (text.trim() === "") return undefined
  if (text.includes("\ufffd")) {
    const mimeType = headers["content-type"] ?? "application/octet-stream"
    const resource = { uri: "x402://answers/undecoded", mimeType, blob: Base64.encode(body) }
    return { result: { content: [{ type: "resource", resource }], truncated: true }, isPart: true, why }
  }
  // A body may end in the middle of its JSON even if its framing is complete.
  const isWhole = (part: string) => cut === "too_large" || (cut === undefined && closesJson(encoder.encode(part)))
  const isBounded = (isStream(headers) ? eventData(body) : [text]).some(
    (part) => /"result"\s*:/.test(part) && isWhole(part)
  )
  return { result: { content: [{ type: "text", text }], truncated: true }, isPart: !isBounded, why }
}

/** The outcome if the body has no response to the request. */
const withoutAnswer = (
  answered: FetchAnswer,
  isUnreadable: boolean,
  isPaid: boolean
): Effect.Effect<SellerResponse, ToolError> => {
  const why =
    answered.cut === undefined || answered.cut === "too_large"
      ? isUnreadable
        ? "the seller's answer is not JSON within the limits"
        : "the seller's answer does not match the request"
      : answered.cut === "malformed"
        ? "the seller's answer is not valid HTTP"
        : "the seller's answer broke off, or did not end in time"
  const part = isPaid ? partOf(answered, why) : undefined
  return part === undefined ? malformed(why) : Effect.succeed(part)
}

/** The error of a paid call as a result: we paid for it, if for anything. */
const errorResult = (error: Fields): SellerResponse => {
  const { data } = error
  return {
    result: {
      isError: true,
      content: [{ type: "text", text: JSON.stringify(error) }],
      ...(asksForPayment(data) ? { structuredContent: data } : {})
    }
  }
}

/** The last event id of a stream, which resumes it, and the delay that the server asks for. */
const resumptionOf = ({ body, headers }: FetchAnswer) => {
  if (!isStream(headers)) return undefined
  const lines = decoder.decode(body).split(/\r\n?|\n/)
  const lastEventId = lines.findLast((line) => /^id:/.test(line))?.replace(/^id: ?/, "")
  const retry = /^retry: ?(\d{1,6})$/.exec(lines.findLast((line) => /^retry:/.test(line)) ?? "")?.[1]
  const isValid = lastEventId !== undefined && /^[\x21-\x7e]{1,1024}$/.test(lastEventId)
  return isValid ? { lastEventId, waitMillis: Math.min(Number(retry ?? 0), resumeWaitMax) } : undefined
}

interface Wire {
  readonly upstream: Upstream
  readonly state: SessionState
  readonly headers: () => Readonly<Record<string, string>>
  readonly post: (sent: Message, caps?: Caps, keepsPart?: boolean) => Effect.Effect<FetchAnswer, ToolError>
}

/** Fetches the rest of a stream that its server closed after an event, before the answer came. */
const resume = ({ headers, state, upstream }: Wire, id: number, lastEventId: string, caps: Caps) =>
  Effect.option(
    upstream.fetch(
      state.endpoint,
      {
        method: "GET",
        headers: { ...headers(), accept: "text/event-stream", "last-event-id": lastEventId },
        keepsPart: true,
        decodes: true,
        reader: toRpcAnswer(id)
      },
      caps
    )
  )

/** Sends a request and reads its answer. Resumes a paid request's stream until it ends. */
const exchange = Effect.fnUntraced(function* (wire: Wire, method: string, params: Fields, caps: Caps, isPaid: boolean) {
  const id = ++wire.state.lastId
  const contentOf = isPaid ? "payment" : method === "tools/call" ? "call" : "nothing"
  let answered = yield* wire.post({ id, method, params }, caps, isPaid)
  const { headers, status, url } = answered
  let read = yield* readAnswer(wire.upstream, answered, id, contentOf)
  for (let times = 0; isPaid && times < resumesMax && read.answer === undefined && status === 200; times++) {
    const from = resumptionOf(answered)
    if (from === undefined) break
    yield* Effect.sleep(from.waitMillis)
    const resumed = yield* resume(wire, id, from.lastEventId, caps)
    if (resumed._tag === "None" || resumed.value.status !== 200) break
    const { body } = resumed.value
    if (body.length === 0) continue
    answered = resumed.value
    read = yield* readAnswer(wire.upstream, answered, id, contentOf)
  }
  return { answered, read, headers, status, url }
})

const makeRequest = (wire: Wire) =>
  Effect.fnUntraced(function* (method: string, params: Fields, caps: Caps = {}, isPaid = false) {
    const { state } = wire
    const { answered, headers, read, status, url } = yield* exchange(wire, method, params, caps, isPaid)
    // A paid result is read even if the HTTP status is not 200.
    const isResult = read.answer !== undefined && "result" in read.answer
    if (status !== 200 && !(method === "tools/call" && isResult)) {
      if (status === 429 || status === 503)
        return yield* toolError("UPSTREAM_TIMEOUT", "the seller is unavailable; retry later", { status })
      if (status >= 300 && status <= 399 && !isPaid)
        return yield* toolError("UNTRUSTED_REDIRECT", "the seller answers with a redirect, which is not followed", {
          reason: "redirected"
        })
      const isRpcError = read.answer !== undefined && "errorCode" in read.answer
      const part =
        isPaid && !isRpcError ? partOf(answered, `the seller's endpoint answers with status ${status}`) : undefined
      if (part !== undefined) return part
      if (isPaid && isRpcError) return errorResult((read.answer as { readonly error: Fields }).error)
      const refusal = toolError("UPSTREAM_PROTOCOL_ERROR", "the seller's endpoint answers with an error", { status })
      return { refusal } satisfies SellerResponse
    }
    if (method === "initialize") state.session = headers["mcp-session-id"]
    const { answer } = read
    if (answer === undefined) return yield* withoutAnswer(answered, read.isUnreadable, isPaid)
    if ("errorCode" in answer) {
      if (isPaid) return errorResult(answer.error)
      const details = { code: answer.errorCode }
      const refusal = toolError("UPSTREAM_PROTOCOL_ERROR", "the seller's server rejected the request", details)
      return { refusal } satisfies SellerResponse
    }
    if (opening.has(method)) state.endpoint = url
    return { ...answer, raw: read.raw } satisfies SellerResponse
  })

/** Sends on one conversation, with or without waiting for an answer. */
const speak = (upstream: Upstream, endpoint: URL) => {
  const state: SessionState = { session: undefined, version: undefined, lastId: 0, endpoint, listed: undefined }
  const headers = () => ({
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "accept-encoding": "gzip, br, identity",
    "user-agent": "Tollkeeper/0.1 (agent tools)",
    ...(state.version === undefined ? {} : { "mcp-protocol-version": state.version }),
    ...(state.session === undefined ? {} : { "mcp-session-id": state.session })
  })
  /** The message in the negotiated era's format. */
  const framed = ({ params = {}, ...others }: Message) => {
    if (state.version !== statelessRevision) return Effect.succeed({ message: { ...others, params }, mirrored: {} })
    const mirrored = mirroredHeaders(others.method, params, state.listed?.inputSchema)
    return mirrored === undefined
      ? malformed("the seller's tool schema maps arguments to headers in an invalid way")
      : Effect.succeed({ message: { ...others, params: withEnvelope(params, clientInfo) }, mirrored })
  }
  const post = Effect.fnUntraced(function* (sent: Message, caps: Caps = {}, keepsPart = false) {
    const { message, mirrored } = yield* framed(sent)
    const request = {
      method: "POST",
      headers: { ...headers(), ...mirrored },
      keepsPart,
      decodes: true,
      body: encoder.encode(JSON.stringify({ jsonrpc: "2.0", ...message })),
      ...(sent.id === undefined ? {} : { reader: toRpcAnswer(sent.id) })
    } as const
    return yield* Effect.mapError(upstream.fetch(state.endpoint, request, caps), fetchError(caller))
  })

  const request = makeRequest({ upstream, state, headers, post })

  const ask = (method: string, params: Fields, caps?: Caps): Effect.Effect<Fields, ToolError> =>
    Effect.flatMap(request(method, params, caps), (answered) =>
      "result" in answered ? Effect.succeed(answered.result) : answered.refusal
    )

  const close = Effect.suspend(() =>
    state.session === undefined
      ? Effect.void
      : Effect.ignore(upstream.fetch(state.endpoint, { method: "DELETE", headers: headers() }))
  )
  return { ask, close, post, request, state }
}

/** Negotiates the era: `initialize`, or `server/discover` for a server that refuses it. */
const negotiate = Effect.fnUntraced(function* ({ post, request, state }: ReturnType<typeof speak>) {
  const begun: SellerResponse = yield* request("initialize", { protocolVersion, capabilities: {}, clientInfo })
  const chosen = "result" in begun ? begun.result["protocolVersion"] : undefined
  if ("refusal" in begun || chosen === statelessRevision) {
    state.session = undefined
    state.version = statelessRevision
    const discovered: SellerResponse = yield* request("server/discover", {})
    if ("refusal" in discovered) return yield* "refusal" in begun ? begun.refusal : discovered.refusal
    return offersStateless(discovered.result)
      ? undefined
      : yield* malformed("the seller's server supports no MCP revision that this program supports")
  }
  state.version = typeof chosen === "string" && /^\d{4}-\d{2}-\d{2}$/.test(chosen) ? chosen : protocolVersion
  if (state.session !== undefined && !/^[\x21-\x7e]{1,256}$/.test(state.session))
    return yield* malformed("the seller's session id is invalid")
  yield* post({ method: "notifications/initialized" })
  return undefined
})

/** Result types that we read: complete, and the x402 extension's request for payment. */
const resultTypes: ReadonlySet<unknown> = new Set([undefined, "complete", "payment_required"])

export const openSeller = Effect.fn("Seller.open")(function* (
  upstream: Upstream,
  endpoint: URL
): Effect.fn.Return<SellerSession, ToolError> {
  const conversation = speak(upstream, endpoint)
  const { ask, close, state } = conversation
  yield* negotiate(conversation)

  const findTool = Effect.fnUntraced(function* (name: string) {
    let cursor: string | undefined
    for (let page = 0; page < listPagesMax; page++) {
      const listed = readTools(yield* ask("tools/list", cursor === undefined ? {} : { cursor }))
      state.listed = listed.tools.find((tool) => tool.name === name)
      if (state.listed !== undefined || listed.cursor === undefined) return state.listed
      cursor = listed.cursor
    }
    return undefined
  })

  const callOnce = Effect.fnUntraced(function* (name: string, args: Fields, paid?: CallPayment) {
    // Headers mirror arguments by the tool's schema. A repeated payment has not read the schema yet.
    if (state.version === statelessRevision && state.listed === undefined) yield* findTool(name)
    const answered: SellerResponse = yield* conversation.request(
      "tools/call",
      { name, arguments: args, ...(paid === undefined ? {} : { _meta: paymentMeta(paid.payment) }) },
      { redirectsMax: 0, ...(paid === undefined ? {} : { timeoutMillis: paid.timeoutMillis }) },
      paid !== undefined
    )
    if ("refusal" in answered) return yield* answered.refusal
    return resultTypes.has(answered.result["resultType"])
      ? answered
      : yield* malformed("the seller's tool asks for further input, which is not supported")
  })
  return {
    findTool,
    callTool: callOnce,
    payTool: (name, args, paid) =>
      Effect.map(callOnce(name, args, paid), ({ isPart = false, ...others }) => ({ ...others, isPart })),
    close
  }
})
