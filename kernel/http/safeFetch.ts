// SSRF protection: the only client for addresses from others. The name is resolved once, every address is checked, and
// the request is pinned to one of them, so that neither a second lookup nor a mixed answer reaches an internal host.
// Each redirect is checked again and stays on its origin. Time, bytes and hops are bounded.
import { Effect, Schema } from "effect"
import { monotonicMillis } from "../time/monotonicMillis.ts"
import { type BodyReader, Outbound, type OutboundAnswer, type OutboundFailed } from "../platform/Outbound.ts"
import { isInstanceAddress, isPublicAddress } from "./addresses.ts"
import { parseAddress } from "../config/addressRange.ts"
import { isLocalName } from "./localNames.ts"

/** The reason why nothing was fetched. `blocked` is our own refusal; nothing was sent then. */
export class FetchRefused extends Schema.TaggedError<FetchRefused>()("FetchRefused", {
  reason: Schema.Literals(["blocked", "insecure", "redirected", "unresolved", "unreachable", "timeout", "too_large"]),
  /** Like `OutboundFailed.isAuthoritative`: the remote server's own answer, not an error on our side or on the way. */
  isAuthoritative: Schema.optionalKey(Schema.Boolean)
}) {}

export interface FetchPolicy {
  /**
   * Loopback, private and other special addresses may be dialed, except those of a cloud's instance services. For tests
   * on one machine.
   */
  readonly allowLocal: boolean
  readonly allowPlain: boolean
  /** Total time, including hops. */
  readonly timeoutMillis: number
  readonly bytesMax: number
  readonly redirectsMax: number
}

export interface FetchRequest {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array
  /** Ends the read of an answer's body before its connection ends. */
  readonly reader?: BodyReader | undefined
  /** As in `OutboundRequest`. */
  readonly decodes?: boolean | undefined
  /** As in `OutboundRequest`, from the beginning of the fetch: name lookups and redirects count. */
  readonly partMillis?: number | undefined
}

export interface FetchAnswer extends OutboundAnswer {
  /** The URL that answered, after redirects; it has the requested origin. */
  readonly url: URL
}

/** 80, 443 and the usual ports of ordinary programs. */
const mayDialPort = (url: URL): boolean => {
  const port = url.port === "" ? 443 : Number(url.port)
  return port === 80 || port === 443 || port >= 1_024
}

/** Whether the form of a URL allows dialing it: no credentials in it, and a port of ordinary web servers. */
export const isDialable = (url: URL): boolean => url.username === "" && url.password === "" && mayDialPort(url)

const refuse = (reason: FetchRefused["reason"]) => new FetchRefused({ reason })

const refuseAs =
  (reason?: FetchRefused["reason"]) =>
  (failed: OutboundFailed): FetchRefused =>
    new FetchRefused({
      reason: reason ?? failed.reason,
      ...(failed.isAuthoritative === true ? { isAuthoritative: true } : {})
    })

/** The address to dial for a URL; refused when the URL or any of its addresses is not allowed. */
const pinAddress = Effect.fnUntraced(function* (url: URL, policy: Pick<FetchPolicy, "allowLocal" | "allowPlain">) {
  const outbound = yield* Outbound
  if (url.protocol !== "https:" && !(url.protocol === "http:" && policy.allowPlain)) return yield* refuse("insecure")
  if (!isDialable(url)) return yield* refuse("blocked")
  const host = url.hostname.replace(/^\[|\]$/g, "")
  if (!policy.allowLocal && isLocalName(host)) return yield* refuse("blocked")
  const addresses =
    parseAddress(host) === undefined ? yield* Effect.mapError(outbound.resolve(host), refuseAs("unresolved")) : [host]
  const [first] = addresses
  if (first === undefined) return yield* refuse("unresolved")
  if (!policy.allowLocal && !addresses.every(isPublicAddress)) return yield* refuse("blocked")
  if (addresses.some(isInstanceAddress)) return yield* refuse("blocked")
  return first
})

/** Fetches a URL under the policy. Redirects are followed on the same origin only. */
export const safeFetch = Effect.fn("safeFetch")(
  function* (
    target: URL,
    request: FetchRequest,
    policy: FetchPolicy
  ): Effect.fn.Return<FetchAnswer, FetchRefused, Outbound> {
    const outbound = yield* Outbound
    const begun = yield* monotonicMillis
    let url = target
    for (let hop = 0; hop <= policy.redirectsMax; hop++) {
      const address = yield* pinAddress(url, policy)
      const left = (request.partMillis ?? 0) - ((yield* monotonicMillis) - begun)
      const answer = yield* Effect.mapError(
        outbound.send({
          ...request,
          partMillis: request.partMillis === undefined ? undefined : left,
          url: url.href,
          address,
          timeoutMillis: policy.timeoutMillis,
          bytesMax: policy.bytesMax
        }),
        refuseAs()
      )
      const location = answer.headers["location"]
      const isRedirect = answer.status >= 300 && answer.status <= 399 && location !== undefined
      // A request that pays follows no redirect, so the redirect's body is the answer.
      const isPaidFor = request.partMillis !== undefined && policy.redirectsMax === 0
      if (!isRedirect || isPaidFor) return { ...answer, url }
      const next = URL.canParse(location, url) ? new URL(location, url) : undefined
      if (next === undefined || next.origin !== target.origin) return yield* refuse("redirected")
      url = next
    }
    return yield* refuse("redirected")
  },
  (effect, _target, _request, policy) =>
    Effect.catchTag(Effect.timeout(effect, policy.timeoutMillis), "TimeoutError", () => Effect.fail(refuse("timeout")))
)
