// What a seller's MCP server answers, as far as paying needs it: JSON-RPC in its two forms, the two copies of
// PaymentRequired, and the settlement in the metadata of a paid result. All input is untrusted and decoded strictly.
// The tool's own result is never parsed.
import { Option, Result, Schema } from "effect"
import { neutralExtension, readNetwork } from "../../../kernel/Dialect.ts"
import { readJson } from "../../../kernel/http/BoundedJson.ts"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import { inexactIn, membersOf, textAt } from "../../mcp-tools/contract.ts"

export type Fields = Readonly<Record<string, unknown>>

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const utf8 = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true })

/** Maximum events of one answer that are parsed: the last of them, since the answer to a request ends its stream. */
const eventsMax = 10_000

/** The data of a stream's events that have any, in order. Comments, named pings and any line ends are allowed. */
export const eventData = (body: Uint8Array): ReadonlyArray<string> =>
  utf8
    .decode(body)
    .replace(/^\ufeff/, "")
    .replace(/\r\n?/g, "\n")
    .split("\n\n")
    .flatMap((event) => {
      const data = event
        .split("\n")
        .flatMap((line) => (line.startsWith("data:") ? [line.slice(5).replace(/^ /, "")] : []))
      return data.length === 0 ? [] : [data.join("\n")]
    })
    .slice(-eventsMax)

export type RpcAnswer = { readonly result: Fields } | { readonly errorCode: number; readonly error: Fields }

const isIdOf = (id: number, given: unknown): boolean => given === id || given === String(id)

/** The answer to the request `id`, perhaps written as text, among messages; undefined when there is none. */
export const findAnswer = (messages: ReadonlyArray<unknown>, id: number): RpcAnswer | undefined => {
  const own = messages
    .flat()
    .find(
      (message): message is Fields =>
        isFields(message) && isIdOf(id, message["id"]) && ("result" in message || "error" in message)
    )
  if (own === undefined) return undefined
  const { error, result } = own
  if (isFields(result)) return { result }
  return isFields(error) && typeof error["code"] === "number" ? { errorCode: error["code"], error } : undefined
}

/** The text of the result of the answer to request `id` in one message or batch. */
export const resultText = (text: string, value: unknown, id: number): string | undefined => {
  if (!Array.isArray(value)) return findAnswer([value], id) === undefined ? undefined : textAt(text, ["result"])
  const at = value.findLastIndex((one) => findAnswer([one], id) !== undefined)
  return at < 0 ? undefined : textAt(text, [String(at), "result"])
}

/**
 * What a tool returned, member for member: as values where JSON's numbers and names survive that, else as the text that
 * came.
 */
export const exactContent = (result: Fields, raw: string | undefined): Fields => {
  const { content, structuredContent } = result
  const structure = structuredContent === undefined ? {} : { structuredContent }
  if (raw === undefined || inexactIn(raw) === undefined) return { content: content ?? [], ...structure }
  const members = membersOf(raw)
  const [contents, structures] = ["content", "structuredContent"].map((name) =>
    members.flatMap(([one, text]) => (one === name ? [text] : []))
  ) as [Array<string>, Array<string>]
  const isExact = (texts: ReadonlyArray<string>) =>
    texts.length <= 1 && texts.every((text) => inexactIn(text) === undefined)
  const asText = (texts: ReadonlyArray<string>) => texts.join("\n")
  return {
    content: isExact(contents) ? (content ?? []) : [{ type: "text", text: asText(contents) }],
    ...(isExact(structures) ? structure : { structuredContentText: asText(structures) })
  }
}

/** A tool as `tools/list` names it. */
export interface ListedTool {
  readonly name: string
  readonly inputSchema: unknown
}

export const readTools = (
  result: Fields
): { readonly tools: ReadonlyArray<ListedTool>; readonly cursor: string | undefined } => {
  const { nextCursor, tools } = result
  return {
    tools: Array.isArray(tools)
      ? tools.flatMap((tool) =>
          isFields(tool) && typeof tool["name"] === "string"
            ? [{ name: tool["name"], inputSchema: tool["inputSchema"] }]
            : []
        )
      : [],
    cursor: typeof nextCursor === "string" && nextCursor !== "" ? nextCursor : undefined
  }
}

const AtomicAmount = Schema.String.check(Schema.isPattern(/^[1-9][0-9]{0,38}$/))

const OptionShape = Schema.Struct({
  scheme: Schema.String,
  network: Schema.String,
  asset: Schema.String,
  amount: AtomicAmount,
  payTo: Schema.String,
  maxTimeoutSeconds: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 86_400 })),
  extra: Schema.optionalKey(Schema.NullOr(Schema.Record(Schema.String, Schema.Unknown)))
})

/** A payment option, read; `sent` is what the seller wrote, word for word. */
export interface PaymentOption {
  readonly scheme: string
  /** Neutral where it is one of ours, else as sent. */
  readonly network: string
  readonly asset: string
  readonly amount: bigint
  readonly payTo: string
  readonly maxTimeoutSeconds: number
  readonly feesSponsored: unknown
  /** The other data of the scheme, as canonical JSON. */
  readonly extra: string
  readonly sent: Fields
}

const decodeOption = Schema.decodeUnknownOption(OptionShape)

const without = (fields: Fields, key: string): Fields => {
  const { [key]: _, ...others } = fields
  return others
}

export const readOption = (sent: unknown): PaymentOption | undefined => {
  const decoded = Option.getOrUndefined(decodeOption(sent))
  if (decoded === undefined) return undefined
  const { amount, asset, extra, maxTimeoutSeconds, network, payTo, scheme } = decoded
  return {
    scheme,
    network: Option.match(readNetwork(network), { onNone: () => network, onSome: ({ network }) => network }),
    asset,
    amount: BigInt(amount),
    payTo,
    maxTimeoutSeconds,
    feesSponsored: extra?.["areFeesSponsored"],
    extra: canonicalJson(without(extra ?? {}, "areFeesSponsored")),
    sent: sent as Fields
  }
}

/** Options that can be read; a catalog entry or a challenge may hold others, of schemes unknown here. */
export const readOptions = (accepts: unknown): ReadonlyArray<PaymentOption> =>
  Array.isArray(accepts) ? accepts.flatMap((sent) => readOption(sent) ?? []) : []

/** What a declaration says of how a tool is called. */
export interface DeclaredInput {
  readonly toolName: unknown
  readonly transport: string
  readonly inputSchema: unknown
}

/** The catalog's extension among extensions, in either spelling. */
const catalogExtension = (extensions: unknown): Fields => {
  if (!isFields(extensions)) return {}
  const own = Object.entries(extensions).find(([key]) => neutralExtension(key) === "catalog")?.[1]
  return isFields(own) ? own : {}
}

const within = (schema: unknown, path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((one, name) => (isFields(one) && Object.hasOwn(one, name) ? one[name] : undefined), schema)

/** The JSON Schema that a declaration has for an HTTP request. */
export const readInputSchema = (extensions: unknown): unknown =>
  within(catalogExtension(extensions)["schema"], ["properties", "input"])

/** Of its body. */
export const readBodySchema = (extensions: unknown): unknown =>
  within(readInputSchema(extensions), ["properties", "body"])

/** The declaration among extensions. */
export const readDeclaration = (extensions: unknown): DeclaredInput | undefined => {
  const { info } = catalogExtension(extensions)
  const input = isFields(info) ? info["input"] : undefined
  if (!isFields(input)) return undefined
  const { inputSchema, toolName, transport } = input
  return { toolName, transport: typeof transport === "string" ? transport : "streamable-http", inputSchema }
}

export interface Challenge {
  /** The protocol's version that the seller speaks. */
  readonly version: 1 | 2
  readonly resourceUrl: string
  readonly resource: Fields
  readonly options: ReadonlyArray<PaymentOption>
  readonly extensions: Fields
  /** A word of the seller's or its facilitator's, when it is one. */
  readonly reason: string | undefined
}

/** A reason is a word, or the beginning of a sentence that starts with one; anything else is not passed on. */
export const readReason = (value: unknown): string | undefined =>
  typeof value === "string" ? /^[a-z][a-z0-9_]{2,99}/.exec(value)?.[0] : undefined

/** PaymentRequired of version 2. */
export const asChallenge = (value: unknown): Challenge | undefined => {
  if (
    !isFields(value) ||
    value["x402Version"] !== 2 ||
    !Array.isArray(value["accepts"]) ||
    !isFields(value["resource"])
  )
    return undefined
  const { accepts, error, extensions, resource } = value
  const { url } = resource as Fields
  if (typeof url !== "string") return undefined
  return {
    version: 2,
    resourceUrl: url,
    resource: resource as Fields,
    options: readOptions(accepts),
    extensions: isFields(extensions) ? extensions : {},
    reason: readReason(error)
  }
}

/** What the text of a result may hold of PaymentRequired. */
interface TextCopy {
  readonly value: unknown
  /** An object that passes a bound, ends early or names a key twice: it cannot be compared. */
  readonly isUnreadable: boolean
}

const textCopy = ({ content }: Fields): TextCopy => {
  const first: unknown = Array.isArray(content) ? content[0] : undefined
  if (!isFields(first) || first["type"] !== "text" || typeof first["text"] !== "string")
    return { value: undefined, isUnreadable: false }
  // JSON within JSON: the bounds of the answer do not reach into it.
  const read = readJson(new TextEncoder().encode(first["text"]))
  return Result.isSuccess(read)
    ? { value: read.success, isUnreadable: false }
    : { value: undefined, isUnreadable: /^\s*\{/.test(first["text"]) }
}

/** Whether a result asks for payment: in either copy. */
export const asksForPayment = (value: unknown): boolean =>
  isFields(value) && "x402Version" in value && Array.isArray(value["accepts"])

export type Challenged =
  | { readonly _tag: "None" }
  /** The copies differ, or cannot be read. */
  | { readonly _tag: "Malformed" }
  | { readonly _tag: "Challenge"; readonly challenge: Challenge }

/**
 * Reads PaymentRequired from where the two bindings of the MCP transport have it: `paymentRequired` of a result of the
 * type `payment_required`, or in an error `structuredContent` and the same JSON in `content[0].text`. One copy is
 * enough, as the transport has clients fall back from the one to the other; where there are more they must agree.
 */
export const readChallenge = (result: Fields): Challenged => {
  const isTyped = result["resultType"] === "payment_required"
  if (!isTyped && result["isError"] !== true) return { _tag: "None" }
  const text = textCopy(result)
  const copies = [result["structuredContent"], text.value].filter(asksForPayment)
  if (isTyped) copies.unshift(result["paymentRequired"])
  if (copies.length === 0) return { _tag: "None" }
  const [first, ...others] = copies
  if (text.isUnreadable || others.some((other) => canonicalJson(other) !== canonicalJson(first)))
    return { _tag: "Malformed" }
  const challenge = asChallenge(first)
  return challenge === undefined ? { _tag: "Malformed" } : { _tag: "Challenge", challenge }
}

/**
 * What a seller says of the settlement. It decides nothing: it names where to search, and is held against the ledger.
 */
export interface SettlementClaim {
  /** Undefined when it is neither true nor false. */
  readonly success: boolean | undefined
  /** Hex of a hash, lower case; undefined when it is not valid. */
  readonly transaction: string | undefined
  /** Neutral; undefined for an unsupported network. */
  readonly network: string | undefined
  /** Undefined when the seller named none, as for the amount. */
  readonly payer: string | undefined
  readonly amount: string | undefined
  /** What a channel was charged in all, atomic units, where the seller says it. */
  readonly chargedTotal?: bigint | undefined
  readonly reason: string | undefined
  /** The facilitator's receipt in its extensions: a compact JWS. It is kept, and not believed. */
  readonly receipt?: string | undefined
  /** Members that are not as the transports write them, by name. */
  readonly unreadable: ReadonlyArray<string>
}

/** The settlement in a paid result's metadata; undefined when there is none. */
export const readSettlement = (result: Fields): SettlementClaim | undefined => {
  const meta = result["_meta"]
  return isFields(meta) ? asSettlement(meta["x402/payment-response"]) : undefined
}

/** The hash of a transaction, whether or not it is spelled as other ledgers spell theirs. */
const hashIn = (value: unknown): string | undefined =>
  typeof value === "string" ? /^(?:0x)?([0-9a-fA-F]{64})$/.exec(value.trim())?.[1]?.toLowerCase() : undefined

const textIn = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined)

/** Characters of a receipt that is kept. */
const receiptLengthMax = 3_000

/** `extensions["tollkeeper-receipt"].info.receipt`, where it has the form of one. */
const receiptIn = (extensions: unknown): string | undefined => {
  const extension = isFields(extensions) ? extensions["tollkeeper-receipt"] : undefined
  const info = isFields(extension) ? extension["info"] : undefined
  const receipt = isFields(info) ? info["receipt"] : undefined
  return typeof receipt === "string" && receipt.length <= receiptLengthMax && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(receipt)
    ? receipt
    : undefined
}

const chargedIn = (extra: unknown): bigint | undefined => {
  const state = isFields(extra) ? extra["channelState"] : undefined
  const total = isFields(state) ? state["chargedCumulativeAmount"] : undefined
  return typeof total === "string" && /^(0|[1-9][0-9]{0,38})$/.test(total) ? BigInt(total) : undefined
}

/** What a seller says of a settlement, as far as it can be read; undefined when it says nothing. */
export const asSettlement = (value: unknown): SettlementClaim | undefined => {
  if (!isFields(value)) return undefined
  const { amount, errorReason, network, payer, success, transaction } = value
  const isAbsent = (member: unknown) => member === undefined || member === null || member === ""
  const spelled = typeof network === "string" ? readNetwork(network) : Option.none()
  const readable: Readonly<Record<string, boolean>> = {
    success: typeof success === "boolean",
    transaction: success === false || (typeof transaction === "string" && /^[0-9a-fA-F]{64}$/.test(transaction)),
    network: Option.isSome(spelled),
    payer: isAbsent(payer) || typeof payer === "string",
    amount: isAbsent(amount) || typeof amount === "string"
  }
  return {
    success: typeof success === "boolean" ? success : undefined,
    transaction: hashIn(transaction),
    network: Option.match(spelled, { onNone: () => undefined, onSome: ({ network }) => network }),
    payer: textIn(payer),
    amount: typeof amount === "number" ? String(amount) : textIn(amount),
    chargedTotal: chargedIn(value["extra"]),
    reason: readReason(errorReason),
    receipt: receiptIn(value["extensions"]),
    unreadable: Object.keys(readable).filter((member) => !readable[member])
  }
}

/** Key of the payment in the parameters of a call. */
export const paymentMeta = (payment: unknown): Fields => ({ "x402/payment": payment })

/** The payment as the seller passes it on: the seller's own words echoed, and the identifier of this invocation. */
export const encodePayment = (options: {
  readonly challenge: Challenge
  readonly option: PaymentOption
  readonly payload: Fields
  readonly identifier: string
}): Fields => {
  const { challenge, identifier, option, payload } = options
  // The first version knows neither terms nor extensions in a payment.
  if (challenge.version === 1)
    return { x402Version: 1, scheme: option.scheme, network: option.sent["network"], payload }
  const declared = challenge.extensions["payment-identifier"]
  const info = isFields(declared) && isFields(declared["info"]) ? declared["info"] : {}
  return {
    x402Version: 2,
    payload,
    resource: challenge.resource,
    accepted: option.sent,
    extensions: {
      ...challenge.extensions,
      "payment-identifier": { ...(isFields(declared) ? declared : {}), info: { ...info, id: identifier } }
    }
  }
}
