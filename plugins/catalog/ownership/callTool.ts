// Calls an MCP tool unpaid, if the origin's document allows it, in either era of the protocol. It begins a session. If
// the server refuses that, it requests `server/discover`, and each request carries its own envelope (2026-07-28). Then
// it reads the tool's entry of the list and calls the tool without a payment. The demand for payment is the origin's
// statement. It makes five requests at most, each through `safeFetch` and within the settings' bounds. No request can
// pay. A server that supports neither era is called without a session.
import { Effect } from "effect"
import type { FetchRefused } from "../../../kernel/http/safeFetch.ts"
import type { OutboundAnswer } from "../../../kernel/platform/Outbound.ts"
import type { Identity } from "../declaration/Declaration.ts"
import { type Fields, isFields } from "../fields.ts"
import type { OriginDocuments } from "./OriginDocuments.ts"
import type { OriginOffer } from "./OriginWire.ts"
import { mirroredHeaders, offersStateless, statelessRevision, withEnvelope } from "./StatelessRevision.ts"
import {
  clientInfo,
  encodeRpc,
  initializeParams,
  isServedUnpaid,
  type ListedTool,
  readListedTool,
  readProtocolVersion,
  readReply,
  readToolOffer
} from "./ToolWire.ts"

export const requestsOfCall = 5

export interface ToolAnswer {
  readonly status: number
  readonly offer: OriginOffer | undefined
  /** It returned its result without being paid. */
  readonly isServedUnpaid: boolean
}

type Headers = Readonly<Record<string, string>>

const rpcHeaders = { "content-type": "application/json", accept: "application/json, text/event-stream" }
const sessionPattern = /^[\x21-\x7e]{1,256}$/

const sessionHeaders = (answer: OutboundAnswer, version: string | undefined): Headers => {
  const session = answer.headers["mcp-session-id"]
  return {
    ...(session !== undefined && sessionPattern.test(session) ? { "mcp-session-id": session } : {}),
    ...(version === undefined ? {} : { "mcp-protocol-version": version })
  }
}

type Send = (body: Uint8Array, headers: Headers) => Effect.Effect<OutboundAnswer, FetchRefused>

/** Sends one request in the era's form; undefined if the tool's schema asks for invalid headers. */
type Ask = (
  id: number,
  method: string,
  params: Fields,
  listed?: ListedTool
) => Effect.Effect<OutboundAnswer | undefined, FetchRefused>

/** Requests of revision 2026-07-28, each whole by itself. */
const askStateless =
  (post: Send): Ask =>
  (id, method, params, listed) => {
    const mirrored = mirroredHeaders(method, params, listed?.inputSchema)
    if (mirrored === undefined) return Effect.succeed(undefined)
    return post(encodeRpc(method, withEnvelope(params, clientInfo), id), {
      ...mirrored,
      "mcp-protocol-version": statelessRevision
    })
  }

/** Whether a server that began no session supports requests without one; a missing answer counts as false. */
const isStateless = (post: Send) =>
  askStateless(post)(2, "server/discover", {}).pipe(
    Effect.map((answer) => {
      const result = answer?.status === 200 ? readReply(answer, 2)?.["result"] : undefined
      return isFields(result) && offersStateless(result)
    }),
    Effect.catch(() => Effect.succeed(false))
  )

export const callTool = Effect.fn("Catalog.callTool")(function* (
  send: OriginDocuments["Service"]["send"],
  endpoint: URL,
  identity: Identity,
  args: Fields
): Effect.fn.Return<ToolAnswer, FetchRefused> {
  const { toolName } = identity
  const post: Send = (body, headers) => send(endpoint, "POST", { headers: { ...rpcHeaders, ...headers }, body })
  const begun = yield* post(encodeRpc("initialize", initializeParams, 1), {})
  const version = begun.status === 200 ? readProtocolVersion(readReply(begun, 1)) : undefined
  const isOlder = version !== undefined && version !== statelessRevision
  const session = isOlder || !(yield* isStateless(post)) ? sessionHeaders(begun, version) : undefined
  const ask: Ask =
    session === undefined ? askStateless(post) : (id, method, params) => post(encodeRpc(method, params, id), session)
  if (session !== undefined && version !== undefined)
    yield* Effect.ignore(post(encodeRpc("notifications/initialized", {}), session))
  const reported = yield* ask(3, "tools/list", {})
  const listed = reported === undefined ? undefined : readListedTool(readReply(reported, 3), toolName)
  const called = yield* ask(4, "tools/call", { name: toolName, arguments: args }, listed)
  if (isOlder && session?.["mcp-session-id"] !== undefined)
    yield* Effect.ignore(send(endpoint, "DELETE", { headers: session }))
  if (called === undefined) return { status: reported?.status ?? begun.status, offer: undefined, isServedUnpaid: false }
  const reply = readReply(called, 4)
  return {
    status: called.status,
    offer: readToolOffer(reply, identity, listed),
    isServedUnpaid: isServedUnpaid(reply)
  }
})
