// How an HTTP seller asks for payment and is paid: PaymentRequired in the header `PAYMENT-REQUIRED` (version 2) or in
// the body (either version), the payment in `PAYMENT-SIGNATURE` or `X-PAYMENT`, the settlement in `PAYMENT-RESPONSE` or
// `X-PAYMENT-RESPONSE`. All input is untrusted, and bounded before it is parsed. Pure.
import { Result } from "effect"
import { Base64 } from "effect/encoding"
import { readJson } from "../../../kernel/http/BoundedJson.ts"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import { withoutMark } from "./readToResult.ts"
import {
  asChallenge,
  asksForPayment,
  asSettlement,
  type Challenge,
  type ChallengeReading,
  type Fields,
  isFields,
  readOption,
  readReason,
  type SettlementClaim
} from "./SellerWire.ts"

export interface HttpAnswer {
  readonly status: number
  /** In lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** Why the rest of the body is missing. */
  readonly cut?: "timeout" | "too_large" | "unreachable" | "malformed"
}

const headerLengthMax = 65_536

const jsonIn = (bytes: Uint8Array): unknown => Result.getOrUndefined(readJson(withoutMark(bytes)))

const headerJson = (text: string | undefined): unknown => {
  if (text === undefined || text.length > headerLengthMax) return undefined
  const bytes = Result.getOrUndefined(Base64.decode(text))
  return bytes === undefined ? undefined : jsonIn(bytes)
}

/** Converts a version 1 option to version 2; `sent` remains the seller's original. */
const optionOfFirst = (sent: unknown) => {
  if (!isFields(sent)) return []
  const option = readOption({ ...sent, amount: sent["maxAmountRequired"] })
  return option === undefined ? [] : [{ ...option, sent }]
}

const firstChallenge = (value: Fields): Challenge | undefined => {
  const { accepts, error } = value
  const [first] = Array.isArray(accepts) ? accepts : []
  const url = isFields(first) ? first["resource"] : undefined
  if (typeof url !== "string") return undefined
  return {
    version: 1,
    resourceUrl: url,
    resource: { url },
    options: (accepts as ReadonlyArray<unknown>).flatMap(optionOfFirst),
    extensions: {},
    reason: readReason(error)
  }
}

const readAsked = (value: unknown): Challenge | undefined => {
  if (!isFields(value)) return undefined
  return value["x402Version"] === 1 ? firstChallenge(value) : asChallenge(value)
}

/** The payment that a 402 asks for. Two differing copies of the same version are rejected. */
export const readHttpChallenge = ({ body, headers, status }: HttpAnswer): ChallengeReading => {
  if (status !== 402) return { _tag: "None" }
  const named = headers["payment-required"]
  const inHeader = headerJson(named)
  const inBody = jsonIn(body)
  const isCopied = asksForPayment(inBody) && isFields(inHeader) && isFields(inBody)
  if (
    isCopied &&
    inBody["x402Version"] === inHeader["x402Version"] &&
    canonicalJson(inBody) !== canonicalJson(inHeader)
  )
    return { _tag: "Malformed" }
  const challenge = readAsked(named === undefined ? inBody : inHeader)
  return challenge === undefined ? { _tag: "Malformed" } : { _tag: "Challenge", challenge }
}

/** The settlement in an answer; undefined if it is missing or unreadable. */
export const readHttpSettlement = ({ headers }: HttpAnswer): SettlementClaim | undefined =>
  asSettlement(headerJson(headers["payment-response"] ?? headers["x-payment-response"]))

export const paymentHeader = (payment: Fields): Readonly<Record<string, string>> => ({
  [payment["x402Version"] === 1 ? "x-payment" : "payment-signature"]: Base64.encode(
    new TextEncoder().encode(JSON.stringify(payment))
  )
})

/** Headers that an agent cannot set: they frame the message, carry credentials, or pay. */
export const reservedHeaders: ReadonlySet<string> = new Set([
  "host",
  "connection",
  "keep-alive",
  "content-length",
  "transfer-encoding",
  "te",
  "trailer",
  "upgrade",
  "expect",
  "accept-encoding",
  "authorization",
  "cookie",
  "proxy-authorization",
  "proxy-connection",
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-real-ip",
  "via",
  "user-agent",
  "payment-signature",
  "payment-required",
  "payment-response",
  "x-payment",
  "x-payment-response"
])
