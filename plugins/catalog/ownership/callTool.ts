// An unpaid call of an MCP tool whose origin's document allows it: a session is begun, the tool's own entry of the list
// is read, it is called without a payment, and the demand for payment is the origin's statement. Five requests at most,
// each through `safeFetch` and within the settings' bounds; nothing is sent that could pay. A server without sessions
// is called without one.
import { Effect } from "effect"
import type { FetchRefused } from "../../../kernel/http/safeFetch.ts"
import type { OutboundAnswer } from "../../../kernel/platform/Outbound.ts"
import type { Identity } from "../declaration/Declaration.ts"
import type { OriginDocuments } from "./OriginDocuments.ts"
import type { OriginOffer } from "./OriginWire.ts"
import {
  encodeRpc,
  initializeParams,
  isServedUnpaid,
  readListedTool,
  readProtocolVersion,
  readReply,
  readToolOffer
} from "./ToolWire.ts"

/** Maximum requests of one call. */
export const requestsOfCall = 5

export interface ToolAnswer {
  /** HTTP status of the call itself. */
  readonly status: number
  readonly offer: OriginOffer | undefined
  /** It returned its result without being paid. */
  readonly isServedUnpaid: boolean
}

const rpcHeaders = { "content-type": "application/json", accept: "application/json, text/event-stream" }
const sessionPattern = /^[\x21-\x7e]{1,256}$/

const sessionHeaders = (answer: OutboundAnswer, version: string | undefined): Readonly<Record<string, string>> => {
  const session = answer.headers["mcp-session-id"]
  return {
    ...(session !== undefined && sessionPattern.test(session) ? { "mcp-session-id": session } : {}),
    ...(version === undefined ? {} : { "mcp-protocol-version": version })
  }
}

export const callTool = Effect.fn("Catalog.callTool")(function* (
  send: OriginDocuments["Service"]["send"],
  endpoint: URL,
  identity: Identity,
  args: Readonly<Record<string, unknown>>
): Effect.fn.Return<ToolAnswer, FetchRefused> {
  const { toolName } = identity
  const post = (body: Uint8Array, headers: Readonly<Record<string, string>>) =>
    send(endpoint, "POST", { headers: { ...rpcHeaders, ...headers }, body })
  const begun = yield* post(encodeRpc("initialize", initializeParams, 1), {})
  const version = begun.status === 200 ? readProtocolVersion(readReply(begun, 1)) : undefined
  const headers = sessionHeaders(begun, version)
  if (version !== undefined) yield* Effect.ignore(post(encodeRpc("notifications/initialized", {}), headers))
  const reported = yield* post(encodeRpc("tools/list", {}, 2), headers)
  const listed = readListedTool(readReply(reported, 2), toolName)
  const called = yield* post(encodeRpc("tools/call", { name: toolName, arguments: args }, 3), headers)
  if (headers["mcp-session-id"] !== undefined) yield* Effect.ignore(send(endpoint, "DELETE", { headers }))
  const reply = readReply(called, 3)
  return {
    status: called.status,
    offer: readToolOffer(reply, identity, listed),
    isServedUnpaid: isServedUnpaid(reply)
  }
})
