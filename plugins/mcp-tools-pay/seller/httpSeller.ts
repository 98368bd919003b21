// An HTTP resource as the seller of one invocation. A request is sent once and follows no redirect, since a payment is
// only for the address that was compared with the catalog. The answer is data for the agent: JSON as JSON, text as
// text, anything else in base64, within the caps of the tool server.
import { Effect, Result } from "effect"
import { Base64 } from "effect/encoding"
import { toolError, fetchError, inexactIn, type ToolError, type Upstream } from "../../mcp-tools/contract.ts"
import type { KeptRequest, Output, PaidAnswer, Seller } from "../call/Invocation.ts"
import { isWholeJson, toJsonEnd, withoutMark } from "./readToResult.ts"
import type { SettlementClaim } from "./SellerWire.ts"
import { type HttpAnswer, paymentHeader, readHttpChallenge, readHttpSettlement } from "./HttpWire.ts"

export interface HttpCall {
  readonly url: URL
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | undefined
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const textIn = (bytes: Uint8Array): string | undefined => Result.getOrUndefined(Result.try(() => utf8.decode(bytes)))

/** The answer as an agent gets it. */
export const contentOf = Effect.fnUntraced(function* (upstream: Upstream, { body, cut, headers, status }: HttpAnswer) {
  const contentType = headers["content-type"] ?? ""
  const { "content-encoding": coding } = headers
  const encoding = coding?.trim().toLowerCase() === "identity" ? undefined : coding
  const about = {
    status,
    contentType: contentType.slice(0, 256),
    ...(encoding === undefined ? {} : { contentEncoding: encoding.slice(0, 64) }),
    ...(status >= 300 && status <= 399 && headers["location"] !== undefined
      ? { location: headers["location"].slice(0, 2_048) }
      : {}),
    ...(cut === undefined ? {} : { truncated: true })
  }
  const isPlain = encoding === undefined
  const isJson = isPlain && /^application\/([\w.-]+\+)?json\b/i.test(contentType)
  // JSON whose value would be inexact is delivered as text.
  const isKeptByValue = isJson && inexactIn(textIn(body) ?? "") === undefined
  const json = isKeptByValue ? yield* Effect.option(upstream.parseContent(withoutMark(body))) : undefined
  if (json?._tag === "Some") return { ...about, json: json.value } as Output
  const text =
    isPlain && /^(text\/|application\/([\w.-]+\+)?(json|xml)\b|$)/i.test(contentType) ? textIn(body) : undefined
  return (text === undefined ? { ...about, base64: Base64.encode(body) } : { ...about, text }) as Output
})

/** Complete JSON needs nothing more, even if its connection stayed open or broke. */
const withoutIdleCut = ({ cut, ...answer }: HttpAnswer): HttpAnswer =>
  cut === undefined || (cut !== "too_large" && isWholeJson(answer, answer.body)) ? answer : { ...answer, cut }

/**
 * Sends the request once, with additional headers. A paying request has a total timeout for the body, with no limit on
 * pauses.
 */
export const sendOnce = (
  upstream: Upstream,
  call: HttpCall,
  more: Readonly<Record<string, string>>,
  { isPaid = false, timeoutMillis }: { readonly timeoutMillis?: number; readonly isPaid?: boolean } = {}
): Effect.Effect<HttpAnswer, ToolError> =>
  Effect.flatMap(
    Effect.mapError(
      upstream.fetch(
        call.url,
        {
          method: call.method,
          reader: isPaid ? undefined : toJsonEnd,
          keepsPart: isPaid,
          decodes: isPaid,
          headers: {
            "user-agent": "Tollkeeper/0.1 (agent tools)",
            "accept-encoding": "identity",
            accept: "application/json, text/*;q=0.9, */*;q=0.1",
            ...call.headers,
            ...more
          },
          ...(call.body === undefined ? {} : { body: call.body })
        },
        { redirectsMax: 0, ...(timeoutMillis === undefined ? {} : { timeoutMillis }) }
      ),
      fetchError("the seller")
    ),
    (answer) =>
      answer.status >= 300 && answer.status <= 399 && (!isPaid || answer.body.length === 0)
        ? toolError("UNTRUSTED_REDIRECT", "the seller answers with a redirect, which is not followed", {
            reason: "redirected"
          })
        : Effect.succeed(answer)
  )

export const requestOf = ({ body, headers, method, url }: HttpCall): KeptRequest => ({
  url: url.href,
  method,
  headers,
  ...(body === undefined ? {} : { body: Base64.encode(body) })
})

const callOf = ({ body, headers, method, url }: KeptRequest): HttpCall => ({
  url: new URL(url),
  method,
  headers,
  body: body === undefined ? undefined : Result.getOrThrow(Base64.decode(body))
})

/** Statuses with which a server or a proxy allows a repeated request. */
const passing = new Set([408, 425, 429])

/** With a failed settlement, a 4xx status replaces the purchased content. */
const isContent = ({ status }: HttpAnswer, settlement: SettlementClaim | undefined): boolean =>
  status < 500 && !passing.has(status) && !(status >= 400 && settlement?.success === false)

/** For a stored request. */
export const httpSellerOf = (upstream: Upstream, request: KeptRequest, timeoutMillis: number): Seller =>
  httpSeller(upstream, callOf(request), timeoutMillis)

/** `timeoutMillis`: limit for the paid request, which includes verification and settlement. */
export const httpSeller = (upstream: Upstream, call: HttpCall, timeoutMillis: number): Seller => ({
  ofRequest: (request) => httpSellerOf(upstream, request, timeoutMillis),
  send: Effect.fnUntraced(function* (payment) {
    const sent = yield* sendOnce(upstream, call, paymentHeader(payment), { timeoutMillis, isPaid: true })
    const answer = withoutIdleCut(sent)
    const challenged = readHttpChallenge(answer)
    const settlement = readHttpSettlement(answer)
    const paid: PaidAnswer = {
      settlement,
      asksAgain:
        challenged._tag === "None"
          ? undefined
          : challenged._tag === "Challenge"
            ? { reason: challenged.challenge.reason, challenge: challenged.challenge }
            : { reason: undefined },
      isContent: isContent(answer, settlement),
      isFailure: answer.status >= 300,
      ...(answer.cut === "malformed" ? { why: "the seller's answer is not valid HTTP" } : {}),
      // A body that is too long would be too long again. Otherwise a repetition may bring the rest.
      isPart: answer.cut !== undefined && answer.cut !== "too_large",
      content: yield* contentOf(upstream, answer)
    }
    return paid
  }),
  close: Effect.void
})
