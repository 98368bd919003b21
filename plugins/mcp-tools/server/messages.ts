// What a client sent, as messages of JSON-RPC in MCP's terms, or the error that refuses it, under the protocol's own
// codes and, where it can be found, under the message's id. A batch is read where the negotiated revision has batches,
// 2025-03-26 alone; an empty one is an error everywhere. Pure.
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
/** Messages of one batch at most, which is the SDK's own bound. */
export const batchMax = 100

export type Received =
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

/** Characters of an id, which every answer and error repeats. */
const idLengthMax = 256

const isId = (value: unknown): value is RequestId =>
  typeof value === "string" ? value.length <= idLengthMax : Number.isSafeInteger(value)

/** Whether a message has an id, or a progress token, that an answer may repeat. */
const isBounded = (message: JSONRPCMessage): boolean => {
  if ("id" in message && message.id !== undefined && !isId(message.id)) return false
  const params = "params" in message ? (message.params as { readonly _meta?: { progressToken?: unknown } }) : undefined
  const token = params?._meta?.progressToken
  return token === undefined || isId(token)
}

/** The id of a value that is no message, or of one that is refused; null for none. */
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

/** Reads what was sent within `revision`; undefined is a conversation that has not negotiated one. */
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
    ? refused(rpcCode.invalid, "Invalid Request: a batch holds what is no JSON-RPC message of MCP")
    : { _tag: "Batch", messages }
}

/** Where a message that was received says what of its arguments a program cannot keep. */
export const inexactMeta = "tollkeeper/inexact"

/**
 * Notes in the metadata of a tool's call what of its arguments reading has changed: numbers that a double does not
 * hold. What was meant is not known any more, so the call is refused.
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

/** A request without an id, which nothing answers, also when it is refused. */
export const isNotification = (value: unknown): boolean => {
  if (typeof value !== "object" || value === null || "id" in value) return false
  const { jsonrpc, method } = value as { readonly jsonrpc?: unknown; readonly method?: unknown }
  return jsonrpc === "2.0" && typeof method === "string"
}

/**
 * The refusal of a text that is no JSON, or that passes a bound; undefined for a notification, which nothing answers.
 */
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

/**
 * The refusal of a line that is too long to be kept, from its first and last bytes: the id is before or after `params`.
 */
export const refusedLine = ({ beginning, end }: { readonly beginning: string; readonly end: string }): Refused => {
  const found = idFirst.exec(beginning)?.[1] ?? idLast.exec(end)?.[1]
  return {
    code: rpcCode.invalid,
    message: "Invalid Request: the message is too long",
    id: found === undefined ? null : idIn({ id: JSON.parse(found) })
  }
}

/** The id that a notification cancels. */
export const cancelledBy = (message: JSONRPCMessage): RequestId | undefined => {
  if (!("method" in message) || message.method !== "notifications/cancelled") return undefined
  const id = message.params?.["requestId"]
  return isId(id) ? id : undefined
}

/** The id that a message answers. */
export const answeredBy = (message: JSONRPCMessage): RequestId | undefined =>
  isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message) ? message.id : undefined

export const requestsIn = (messages: ReadonlyArray<JSONRPCMessage>): ReadonlyArray<RequestId> =>
  messages.flatMap((message) => (isJSONRPCRequest(message) ? [message.id] : []))
