// An unpaid call of an MCP tool on the wire: JSON-RPC over streamable HTTP, answered by JSON or an event stream. The
// demand for payment is a PaymentRequired, in the result's structured content or its text, or in the data of an error
// 402. Only an origin's own document makes a tool callable: its entry for the tool has `unpaidCall`, which is true or
// the arguments of the call. Both eras are supported: a server of revision 2026-07-28 demands payment by a separate
// type of result. Malformed values are ignored.
import type { Identity } from "../declaration/Declaration.ts"
import { type Fields, isFields } from "../fields.ts"
import { declarationOf, entriesFor, extensionsOf, type OriginOffer, readJson, readOffers } from "./OriginWire.ts"

const argumentsLengthMax = 4_096
const contentsMax = 16

/** The arguments with which the origin's document lets the tool be called unpaid; undefined when it does not. */
export const readUnpaidCall = (document: unknown, identity: Identity, base: string): Fields | undefined => {
  const [allowed] = entriesFor(document, identity, base).flatMap((entry) => {
    const { toolName, unpaidCall } = entry
    if (toolName !== identity.toolName) return []
    if (unpaidCall === true) return [{}]
    return isFields(unpaidCall) && JSON.stringify(unpaidCall).length <= argumentsLengthMax ? [unpaidCall] : []
  })
  return allowed
}

const encoder = new TextEncoder()

export const encodeRpc = (method: string, params: Fields, id?: number): Uint8Array =>
  encoder.encode(JSON.stringify({ jsonrpc: "2.0", ...(id === undefined ? {} : { id }), method, params }))

export const clientInfo = { name: "tollkeeper-catalog", version: "0.1" }

export const initializeParams = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo }

export const readProtocolVersion = (reply: Fields | undefined): string | undefined => {
  const result = reply?.["result"]
  const version = isFields(result) ? result["protocolVersion"] : undefined
  return typeof version === "string" && /^[0-9A-Za-z.-]{1,32}$/.test(version) ? version : undefined
}

const messagesOf = (body: Uint8Array, contentType: string): ReadonlyArray<unknown> => {
  if (!contentType.startsWith("text/event-stream")) return [readJson(body)].flat()
  const lines = new TextDecoder().decode(body).split(/\r\n|\n|\r/)
  return lines.filter((line) => line.startsWith("data:")).map((line) => readJson(encoder.encode(line.slice(5))))
}

/** The reply to a request, of either form. */
export const readReply = (
  { body, headers }: { readonly body: Uint8Array; readonly headers: Readonly<Record<string, string>> },
  id: number
): Fields | undefined =>
  messagesOf(body, headers["content-type"] ?? "").find(
    (message): message is Fields => isFields(message) && message["id"] === id
  )

export interface ListedTool {
  readonly description: unknown
  readonly inputSchema: Fields
}

export const readListedTool = (reply: Fields | undefined, toolName: string): ListedTool | undefined => {
  const result = reply?.["result"]
  const tools = isFields(result) && Array.isArray(result["tools"]) ? result["tools"] : []
  const tool = tools.find((one) => isFields(one) && one["name"] === toolName) as Fields | undefined
  return isFields(tool?.["inputSchema"])
    ? { description: tool["description"], inputSchema: tool["inputSchema"] }
    : undefined
}

/** The PaymentRequired in a call's answer. */
const requiredOf = (reply: Fields | undefined): Fields | undefined => {
  const { error, result } = reply ?? {}
  const reported: Array<unknown> = []
  if (isFields(error) && error["code"] === 402) reported.push(error["data"])
  if (isFields(result)) {
    if (result["resultType"] === "payment_required") reported.push(result["paymentRequired"])
    reported.push(result["structuredContent"])
    for (const content of Array.isArray(result["content"]) ? result["content"].slice(0, contentsMax) : [])
      if (isFields(content) && typeof content["text"] === "string")
        reported.push(readJson(encoder.encode(content["text"])))
  }
  return reported.find((one): one is Fields => isFields(one) && Array.isArray(one["accepts"]))
}

/** Types of a whole result: revisions before 2026-07-28 name none. */
const wholeResults: ReadonlySet<unknown> = new Set([undefined, "complete"])

/** Whether a call returned its result without a demand for payment. */
export const isServedUnpaid = (reply: Fields | undefined): boolean => {
  const result = reply?.["result"]
  if (!isFields(result) || !wholeResults.has(result["resultType"])) return false
  return requiredOf(reply) === undefined && result["isError"] !== true
}

/**
 * The terms and texts of a tool from its unpaid call; the tool's entry in the list of tools fills in missing members.
 */
export const readToolOffer = (
  reply: Fields | undefined,
  { resource, toolName }: Identity,
  listed: ListedTool | undefined
): OriginOffer | undefined => {
  const required = requiredOf(reply)
  if (required === undefined) return undefined
  const { description, iconUrl, mimeType, serviceName, tags } = isFields(required["resource"])
    ? required["resource"]
    : ({} as Fields)
  const reported = {
    url: resource,
    description: description ?? listed?.description,
    iconUrl,
    mimeType,
    serviceName,
    tags
  }
  const offers = readOffers(required["accepts"], reported)
  if (offers.length === 0) return undefined
  const { sentKey, value } = declarationOf(required["extensions"], [])
  const info = isFields(value["info"]) ? value["info"] : {}
  const input = isFields(info["input"]) && info["input"]["toolName"] === toolName ? info["input"] : undefined
  const own = { type: "mcp", toolName, ...(listed === undefined ? {} : listed) }
  const declaration = input === undefined ? { info: { input: own } } : value
  const isUsable = input === undefined ? listed !== undefined : isFields(input["inputSchema"])
  return isUsable ? { sentKey, declaration, extensions: extensionsOf(required["extensions"]), offers } : undefined
}
