// Decodes a seller's MCP answers, as far as paying needs it: JSON-RPC in its two forms, the two copies of
// PaymentRequired, and the settlement in the metadata of a paid result. All input is untrusted and decoded strictly.
// The tool's own result is never parsed.
import { Option, Result, Schema } from "effect"
import { readNetwork } from "../../../kernel/Dialect.ts"
import { readJson } from "../../../kernel/http/BoundedJson.ts"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import { inexactIn, membersOf, textAt } from "../../mcp-tools/contract.ts"

export type Fields = Readonly<Record<string, unknown>>

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const utf8 = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true })

/** Maximum events of one answer that we parse. We take the last ones, since the answer to a request ends its stream. */
const eventsMax = 10_000

/** The data of a stream's non-empty events, in order. Comments, named pings and any line ends are allowed. */
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

type RpcAnswer = { readonly result: Fields } | { readonly errorCode: number; readonly error: Fields }

const isIdOf = (id: number, given: unknown): boolean => given === id || given === String(id)

/** Finds the answer to the request `id` among messages; the id may be text. Undefined if it is missing. */
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
 * A tool's result with exact members: as values if JSON preserves the numbers and names, otherwise as the original
 * text.
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

/** A decoded payment option; `sent` is the seller's unchanged original. */
export interface PaymentOption {
  readonly scheme: string
  /** Neutral name for a network of ours, otherwise as sent. */
  readonly network: string
  readonly asset: string
  readonly amount: bigint
  readonly payTo: string
  readonly maxTimeoutSeconds: number
  readonly feesSponsored: unknown
  /** Other members of the scheme, as canonical JSON. */
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

/** The readable options. A catalog entry or a challenge may also contain options of unknown schemes. */
export const readOptions = (accepts: unknown): ReadonlyArray<PaymentOption> =>
  Array.isArray(accepts) ? accepts.flatMap((sent) => readOption(sent) ?? []) : []

export interface Challenge {
  /** Protocol version of the seller. */
  readonly version: 1 | 2
  readonly resourceUrl: string
  readonly resource: Fields
  readonly options: ReadonlyArray<PaymentOption>
  readonly extensions: Fields
  /** A reason from the seller or its facilitator, if it is a word. */
  readonly reason: string | undefined
}

/** The lower-case word at the start of the text; anything else is not passed on. */
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

/** PaymentRequired in the text of a result, if any. */
interface TextCopy {
  readonly value: unknown
  /** An object that exceeds a bound, ends early or has a duplicate name: it cannot be compared. */
  readonly isUnreadable: boolean
}

const textCopy = ({ content }: Fields): TextCopy => {
  const first: unknown = Array.isArray(content) ? content[0] : undefined
  if (!isFields(first) || first["type"] !== "text" || typeof first["text"] !== "string")
    return { value: undefined, isUnreadable: false }
  // JSON inside JSON: the answer's own bounds do not apply to it.
  const read = readJson(new TextEncoder().encode(first["text"]))
  return Result.isSuccess(read)
    ? { value: read.success, isUnreadable: false }
    : { value: undefined, isUnreadable: /^\s*\{/.test(first["text"]) }
}

/** True if a result asks for payment in either copy. */
export const asksForPayment = (value: unknown): boolean =>
  isFields(value) && "x402Version" in value && Array.isArray(value["accepts"])

export type ChallengeReading =
  | { readonly _tag: "None" }
  /** The copies differ, or are unreadable. */
  | { readonly _tag: "Malformed" }
  | { readonly _tag: "Challenge"; readonly challenge: Challenge }

/**
 * Reads PaymentRequired from the places of the two bindings of the MCP transport: `paymentRequired` of a result of the
 * type `payment_required`, or in an error `structuredContent` and the same JSON in `content[0].text`. One copy is
 * enough, since the transport has clients fall back from one to the other. If there are more, they must agree.
 */
export const readChallenge = (result: Fields): ChallengeReading => {
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
 * A seller's claim about the settlement. It decides nothing: it only helps the search, and is compared with the ledger.
 */
export interface SettlementClaim {
  /** Undefined if it is neither true nor false. */
  readonly success: boolean | undefined
  /** Hex of a hash, lower case; undefined if it is not valid. */
  readonly transaction: string | undefined
  /** Neutral; undefined for an unsupported network. */
  readonly network: string | undefined
  /** Undefined if missing, as for the amount. */
  readonly payer: string | undefined
  readonly amount: string | undefined
  /** The scheme's own members, unverified. */
  readonly extra?: Fields | undefined
  readonly reason: string | undefined
  /** The facilitator's receipt in its extensions: a compact JWS, stored without verification. */
  readonly receipt?: string | undefined
  /** Names of members that do not have the transports' format. */
  readonly unreadable: ReadonlyArray<string>
}

/** The settlement in a paid result's metadata; undefined if it is missing. */
export const readSettlement = (result: Fields): SettlementClaim | undefined => {
  const meta = result["_meta"]
  return isFields(meta) ? asSettlement(meta["x402/payment-response"]) : undefined
}

/** The hash of a transaction, with or without the prefix that other ledgers use. */
const hashIn = (value: unknown): string | undefined =>
  typeof value === "string" ? /^(?:0x)?([0-9a-fA-F]{64})$/.exec(value.trim())?.[1]?.toLowerCase() : undefined

const textIn = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined)

const receiptLengthMax = 3_000

/** `extensions["tollkeeper-receipt"].info.receipt`, if it has the form of a receipt. */
const receiptIn = (extensions: unknown): string | undefined => {
  const extension = isFields(extensions) ? extensions["tollkeeper-receipt"] : undefined
  const info = isFields(extension) ? extension["info"] : undefined
  const receipt = isFields(info) ? info["receipt"] : undefined
  return typeof receipt === "string" && receipt.length <= receiptLengthMax && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(receipt)
    ? receipt
    : undefined
}

/** Decodes a seller's settlement claim as far as it is readable; undefined if it contains nothing. */
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
    extra: isFields(value["extra"]) ? value["extra"] : undefined,
    reason: readReason(errorReason),
    receipt: receiptIn(value["extensions"]),
    unreadable: Object.keys(readable).filter((member) => !readable[member])
  }
}

/** Metadata of a call that carries the payment. */
export const paymentMeta = (payment: unknown): Fields => ({ "x402/payment": payment })

/** The payment for the seller: it echoes the seller's own terms and adds this invocation's identifier. */
export const encodePayment = (options: {
  readonly challenge: Challenge
  readonly option: PaymentOption
  readonly payload: Fields
  readonly identifier: string
}): Fields => {
  const { challenge, identifier, option, payload } = options
  // Version 1 has neither terms nor extensions in a payment.
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
