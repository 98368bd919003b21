// Decodes a client's input to JSON-RPC messages of MCP, or to the error that refuses it, under the protocol's own codes
// and the message's id if we can find it. A batch is accepted only in the revision that has batches, 2025-03-26; an
// empty one is an error everywhere. Pure.
import {
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  isJSONRPCErrorResponse,
  type JSONRPCMessage,
  parseJSONRPCMessage
} from "@modelcontextprotocol/server"
import { inexactIn, membersOf, textAt } from "../exactJson.ts"
import { type Refused, type RequestId, rpcCode } from "./rpcErrors.ts"

/** The only revision that has batches. */
const batchRevision = "2025-03-26"
/** Maximum messages of one batch, which is the SDK's own limit. */
const batchMax = 100

type Received =
  | { readonly _tag: "One"; readonly message: JSONRPCMessage }
  | { readonly _tag: "Batch"; readonly messages: ReadonlyArray<JSONRPCMessage> }
  | ({ readonly _tag: "Refused" } & Refused)

const messageIn = (value: unknown): JSONRPCMessage | undefined => {
  try {
    const message = parseJSONRPCMessage(value)
    return isBounded(message) ? message : undefined
  } catch {
    return undefined
  }
}

/** Maximum characters of an id, which every answer and error repeats. */
const idLengthMax = 256

const isId = (value: unknown): value is RequestId =>
  typeof value === "string" ? value.length <= idLengthMax : Number.isSafeInteger(value)

/** True if the message's id and progress token, which an answer may repeat, are within bounds. */
const isBounded = (message: JSONRPCMessage): boolean => {
  if ("id" in message && message.id !== undefined && !isId(message.id)) return false
  const params = "params" in message ? (message.params as { readonly _meta?: { progressToken?: unknown } }) : undefined
  const token = params?._meta?.progressToken
  return token === undefined || isId(token)
}

/** The id of a refused message or of any other value; null if it is missing. */
const idIn = (value: unknown): RequestId | null => {
  const id = typeof value === "object" && value !== null ? (value as { readonly id?: unknown }).id : undefined
  return isId(id) ? id : null
}

const refused = (code: number, message: string, id: RequestId | null = null): Received => ({
  _tag: "Refused",
  code,
  message,
  id
})

/** Decodes the input within `revision`; undefined for a conversation that has not negotiated one. */
export const readMessages = (value: unknown, revision: string | undefined): Received => {
  if (!Array.isArray(value)) {
    const message = messageIn(value)
    return message === undefined
      ? refused(rpcCode.invalid, "Invalid Request: not a JSON-RPC message of MCP", idIn(value))
      : { _tag: "One", message }
  }
  if (value.length === 0) return refused(rpcCode.invalid, "Invalid Request: an empty batch")
  if (revision !== batchRevision)
    return refused(rpcCode.invalid, `Invalid Request: revision ${revision ?? "not negotiated yet"} has no batches`)
  if (value.length > batchMax)
    return refused(rpcCode.invalid, `Invalid Request: a batch has at most ${batchMax} messages`)
  const messages = value.flatMap((one) => messageIn(one) ?? [])
  return messages.length < value.length
    ? refused(rpcCode.invalid, "Invalid Request: a batch contains an item that is not a JSON-RPC message of MCP")
    : { _tag: "Batch", messages }
}

/** Metadata member of a received message: describes a value in its arguments that parsing has changed. */
export const inexactMeta = "tollkeeper/inexact"

/**
 * Adds that description to a tool call if parsing has changed its arguments, for example a number that a double cannot
 * represent. The intended value is lost, so the call is refused.
 */
export const withInexact = (text: string, value: unknown): unknown => {
  if (inexactIn(text) === undefined) return value
  const noted = (message: unknown, own: string | undefined): unknown => {
    const inexact = own === undefined ? undefined : inexactIn(textAt(own, ["params", "arguments"]) ?? "")
    const params = (message as { readonly params?: Readonly<Record<string, unknown>> } | null)?.params
    if (inexact === undefined || typeof params !== "object") return message
    const meta = params["_meta"]
    const known = typeof meta === "object" && meta !== null ? meta : {}
    return { ...(message as object), params: { ...params, _meta: { ...known, [inexactMeta]: inexact } } }
  }
  if (!Array.isArray(value)) return noted(value, text)
  const texts = membersOf(text)
  return value.map((message, at) => noted(message, texts[at]?.[1]))
}

/** True for a request without an id. It is never answered, even if it is refused. */
export const isNotification = (value: unknown): boolean => {
  if (typeof value !== "object" || value === null || "id" in value) return false
  const { jsonrpc, method } = value as { readonly jsonrpc?: unknown; readonly method?: unknown }
  return jsonrpc === "2.0" && typeof method === "string"
}

/** Refuses text that is invalid JSON or exceeds a bound. Undefined for a notification, which is never answered. */
export const refusedText = (text: string, reason: string): Refused | undefined => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { code: rpcCode.parse, message: `Parse error: ${reason}`, id: null }
  }
  return isNotification(value)
    ? undefined
    : { code: rpcCode.invalid, message: `Invalid Request: ${reason}`, id: idIn(value) }
}

const scalars = String.raw`"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"`
const idMember = String.raw`"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d{1,16})`
const idFirst = new RegExp(String.raw`^\s*\{\s*(?:${scalars}\s*,\s*)*${idMember}\s*[,}]`)
const idLast = new RegExp(String.raw`${idMember}\s*(?:,\s*${scalars}\s*)*\}\s*$`)

/** Refuses a line that is too long to keep, from its first and last bytes: the id is before or after `params`. */
export const refusedLine = ({ beginning, end }: { readonly beginning: string; readonly end: string }): Refused => {
  const found = idFirst.exec(beginning)?.[1] ?? idLast.exec(end)?.[1]
  return {
    code: rpcCode.invalid,
    message: "Invalid Request: the message is too long",
    id: found === undefined ? null : idIn({ id: JSON.parse(found) })
  }
}

export const cancelledBy = (message: JSONRPCMessage): RequestId | undefined => {
  if (!("method" in message) || message.method !== "notifications/cancelled") return undefined
  const id = message.params?.["requestId"]
  return isId(id) ? id : undefined
}

export const answeredBy = (message: JSONRPCMessage): RequestId | undefined =>
  isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message) ? message.id : undefined

export const requestsIn = (messages: ReadonlyArray<JSONRPCMessage>): ReadonlyArray<RequestId> =>
  messages.flatMap((message) => (isJSONRPCRequest(message) ? [message.id] : []))
