// A seller's MCP tool as the seller of one invocation: the call's metadata carries the payment, the result's metadata
// carries the settlement, and the content is the tool's result, member for member. A stored call has the form of a
// request with the tool's name and arguments as its body.
import { Effect, Result, Schema } from "effect"
import { Base64 } from "effect/encoding"
import type { Upstream } from "../../mcp-tools/contract.ts"
import type { KeptRequest, PaidAnswer, Seller } from "../call/Invocation.ts"
import { httpSellerOf } from "./httpSeller.ts"
import { openSeller, type PaidResult, type SellerSession } from "./SellerSession.ts"
import { exactContent, type Fields, readChallenge, readSettlement } from "./SellerWire.ts"

/** Method of a stored call of a tool; no HTTP request has it. */
const toolCall = "tools/call"
const ToolCall = Schema.fromJsonString(
  Schema.Struct({ name: Schema.String, arguments: Schema.Record(Schema.String, Schema.Unknown) })
)

export const mcpRequestOf = (endpoint: URL, name: string, args: Fields): KeptRequest => ({
  url: endpoint.href,
  method: toolCall,
  headers: {},
  body: Base64.encode(new TextEncoder().encode(JSON.stringify({ name, arguments: args })))
})

const readAnswer = ({ isPart, raw, result, why }: PaidResult): PaidAnswer => {
  const challenged = readChallenge(result)
  const settlement = readSettlement(result)
  const challenge = challenged._tag === "Challenge" ? challenged.challenge : undefined
  return {
    settlement,
    isPart,
    why,
    asksAgain: challenged._tag === "None" ? undefined : { reason: challenge?.reason, challenge },
    isFailure: result["isError"] === true,
    // With a failed settlement, an error replaces the purchased content.
    isContent: !(result["isError"] === true && settlement?.success === false),
    content: {
      ...exactContent(result, raw),
      ...(result["isError"] === true ? { isError: true } : {}),
      ...(result["truncated"] === true ? { truncated: true } : {})
    }
  }
}

/** For a stored request, over HTTP or to a tool. A tool's session lasts for one payment. */
export const sellerOf = (upstream: Upstream, request: KeptRequest, timeoutMillis: number): Seller => {
  const { body = "", method, url } = request
  if (method !== toolCall) return httpSellerOf(upstream, request, timeoutMillis)
  const text = new TextDecoder().decode(Result.getOrThrow(Base64.decode(body)))
  const { arguments: args, name } = Schema.decodeUnknownSync(ToolCall)(text)
  return {
    ofRequest: (other) => sellerOf(upstream, other, timeoutMillis),
    send: (payment) =>
      Effect.flatMap(openSeller(upstream, new URL(url)), (session) =>
        Effect.ensuring(mcpSeller(upstream, session, name, args, timeoutMillis).send(payment), session.close)
      ),
    close: Effect.void
  }
}

/** `timeoutMillis`: limit for the paid call, which includes verification and settlement. */
export const mcpSeller = (
  upstream: Upstream,
  session: SellerSession,
  toolName: string,
  args: Fields,
  timeoutMillis: number
): Seller => ({
  ofRequest: (request) => sellerOf(upstream, request, timeoutMillis),
  send: (payment) => Effect.map(session.payTool(toolName, args, { payment, timeoutMillis }), readAnswer),
  close: session.close
})
