// Authentication of a caller. With keys configured, only a listed key authenticates. Without keys, every caller is one
// anonymous principal, counted by source address. An IPv6 caller is counted by its /64, since it controls all of it;
// `X-Forwarded-For` is trusted only hop by hop, from the proxies in the settings.
import { Context, Effect, Layer, Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { Server } from "../config/Server.ts"
import { clientAddress, principalOf } from "./addresses.ts"
import { inRange } from "../config/addressRange.ts"
import { bearerOf, Keys, type Role } from "./Keys.ts"
import { makeRateLimit } from "./RateLimit.ts"
import { Sessions } from "./Sessions.ts"
import { isListedHost, isLoopback, parseHostName } from "./hostValidation.ts"

// The caller's identity, in two forms. For a keyed caller both are equal. All keyless callers own their payments
// together, since a serverless seller changes its address between a pending answer and its retry; their usage is
// counted by address.

export interface Principal {
  /** The owner of identifiers, answers and claims: `key:<label or hash>`, or `anonymous`. Never contains a secret. */
  readonly owner: string
  /** The unit of budgets, rates and fairness: `key:<label or hash>`, or `ip:<address or /64>`. */
  readonly source: string
  readonly keyed: boolean
}

/** The owner of all payments that were settled without a key. */
export const anonymous = "anonymous"

/** A principal in the form that budgets count. */
export const counted = ({ keyed, source }: Principal) => ({ id: source, keyed })

/** Wrong bearer keys that one source may try in a second. */
const guessesPerSecond = 20

/** Headers that identify a proxy, trusted or not. */
const proxyHeader = new RegExp(
  "^(x-forwarded(-.+)?|x-forward-.+|forwarded(-for)?|via|x-via|x-real-.+|x-client-.+|client-ip|x-cluster-client-ip|" +
    "x-original-.+|x-remote-.+|x-host|x-scheme|x-proxy.*|proxy-.+|x-nginx-.+|true-client-ip|cf-.+|cdn-loop|fastly-.+|" +
    "fly-.+|x-envoy-.+|x-amzn-.+|x-amz-cf-id|x-azure-.+|x-appengine-.+|x-arr-.+|x-vercel-.+|x-proto.*)$"
)

/** The seconds that an unlisted bearer key waits, by its source. */
const makeKeyWait = (
  keys: Keys["Service"],
  sourceOf: (request: HttpServerRequest.HttpServerRequest) => string
): ((request: HttpServerRequest.HttpServerRequest) => Effect.Effect<number>) => {
  const takeGuess = makeRateLimit(guessesPerSecond)
  return (request) => {
    const bearer = Option.getOrUndefined(bearerOf(request.headers["authorization"]))
    if (bearer === undefined || !(keys.keyed() || keys.operatorKeyed())) return Effect.succeed(0)
    // Keys are compared in constant time before anything is counted: only a wrong key is a guess.
    return keys.markOf(bearer) === undefined ? takeGuess(principalOf(sourceOf(request))) : Effect.succeed(0)
  }
}

// A proxy on this machine is not a user of this machine. It is recognized by its headers, by the Host that it passes
// on, or by the settings that trust it.
const makeIsLocal =
  (isTrusted: (address: string) => boolean) =>
  (request: HttpServerRequest.HttpServerRequest): boolean =>
    Object.keys(request.headers).every((header) => !proxyHeader.test(header)) &&
    isLoopback(parseHostName(request.headers["host"]) ?? "") &&
    Option.exists(request.remoteAddress, (peer) => isLoopback(peer.replace(/^::ffff:/, "")) && !isTrusted(peer))

/** A reader of reports and streams. */
interface Reader {
  /** The unit of the reader's rates. */
  readonly source: string
  /** The owner of the payments that it may read; undefined: the payments of all owners. */
  readonly only: string | undefined
}

export class Authentication extends Context.Service<
  Authentication,
  {
    /** The principal of a request; None if keys are configured and the request has none of them. */
    readonly authenticate: (request: HttpServerRequest.HttpServerRequest) => Option.Option<Principal>
    /**
     * A reader of key-protected data, and the payments that it may read: a caller or an operator, by key or by session.
     * Without a required key, any caller.
     */
    readonly reader: (request: HttpServerRequest.HttpServerRequest) => Option.Option<Reader>
    /** The label of the requesting operator, by key or by session. */
    readonly operator: (request: HttpServerRequest.HttpServerRequest) => Option.Option<string>
    /**
     * Seconds until this source may try another wrong bearer key, 0 when it may now. Asked once for each request,
     * before its answer. A listed key waits for nothing, so that wrong keys of a neighbor stop no payment.
     */
    readonly keyWait: (request: HttpServerRequest.HttpServerRequest) => Effect.Effect<number>
    /** Source of a request, keyed or not: an address, or the network of one. */
    readonly sourceOf: (request: HttpServerRequest.HttpServerRequest) => string
    readonly isOperator: (request: HttpServerRequest.HttpServerRequest) => boolean
    /** Whether the caller is an operator. Without a configured operator key: whether it is on this machine. */
    readonly mayOperate: (request: HttpServerRequest.HttpServerRequest) => boolean
    /**
     * The host that a challenge of this request names, in lower case: one of `server.allowed_hosts`, or this machine's
     * for a caller on it. Undefined for any other `Host`, which the sender may have chosen: a signature over it would
     * bind nothing.
     */
    readonly challengeHost: (request: HttpServerRequest.HttpServerRequest) => string | undefined
    /** Whether the request comes from this machine itself, without a proxy. */
    readonly isLocal: (request: HttpServerRequest.HttpServerRequest) => boolean
  }
>()("tollkeeper/http/Authentication") {
  static readonly layerNoDeps = Layer.effect(
    Authentication,
    Effect.gen(function* () {
      const server = yield* Server
      const keys = yield* Keys
      const sessions = yield* Sessions
      const isTrusted = (address: string): boolean => server.trustedProxies.some((range) => inRange(address, range))

      const sourceOf = (request: HttpServerRequest.HttpServerRequest): string =>
        clientAddress(
          Option.getOrElse(request.remoteAddress, () => "unknown"),
          request.headers["x-forwarded-for"] ?? "",
          isTrusted
        )

      const keyOf = (request: HttpServerRequest.HttpServerRequest, listed: Keys["Service"]["caller"]) =>
        Option.flatMap(bearerOf(request.headers["authorization"]), listed)
      const sessionOf = (request: HttpServerRequest.HttpServerRequest, role: Role) =>
        sessions.of(request).pipe(
          Option.filter((session) => session.role === role),
          Option.map(({ principal }) => principal)
        )

      const authenticate: Authentication["Service"]["authenticate"] = (request) => {
        const source = principalOf(sourceOf(request))
        if (!keys.keyed()) return Option.some({ owner: anonymous, source, keyed: false })
        // A session may only read; payments require a key.
        const caller = keyOf(request, keys.caller).pipe(
          Option.orElse(() => (request.method === "GET" ? sessionOf(request, "caller") : Option.none()))
        )
        return Option.map(caller, (label) => ({ owner: `key:${label}`, source: `key:${label}`, keyed: true }))
      }

      const operator: Authentication["Service"]["operator"] = (request) =>
        Option.orElse(keyOf(request, keys.operator), () => sessionOf(request, "operator"))

      const isLocal = makeIsLocal(isTrusted)
      const challengeHost: Authentication["Service"]["challengeHost"] = (request) => {
        const { host = "" } = request.headers
        return isListedHost(host, server.allowedHosts) || isLocal(request) ? host.toLowerCase() : undefined
      }

      return Authentication.of({
        authenticate: authenticate,
        operator,
        keyWait: makeKeyWait(keys, sourceOf),
        isLocal,
        challengeHost,
        reader: (request) =>
          Option.orElse(
            Option.map(operator(request), (label): Reader => ({ source: `operator:${label}`, only: undefined })),
            () =>
              Option.map(authenticate(request), ({ keyed, owner, source }): Reader => {
                return { source, only: !keyed || keys.seesAll(owner.slice("key:".length)) ? undefined : owner }
              })
          ),
        sourceOf: (request) => principalOf(sourceOf(request)),
        isOperator: (request) => Option.isSome(operator(request)),
        mayOperate: (request) => (keys.operatorKeyed() ? Option.isSome(operator(request)) : isLocal(request))
      })
    })
  )

  static readonly layer = this.layerNoDeps.pipe(Layer.provideMerge(Sessions.layer))
}
