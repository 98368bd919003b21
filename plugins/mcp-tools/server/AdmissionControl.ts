// Admission at the HTTP transports, before a byte of the body is read: the Host and the origin of a web page must be
// allowed, the key must be valid if keys are configured, and a rate limit applies (S246, S247). The Host check defends
// against DNS rebinding.
import { Context, Effect, Layer, Option } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import { Authentication } from "../../../kernel/http/Authentication.ts"
import { json } from "../../../kernel/http/httpMiddleware.ts"
import { Keys } from "../../../kernel/http/Keys.ts"
import { makeRateLimit } from "../../../kernel/http/RateLimit.ts"
import { parseAddress } from "../../../kernel/config/addressRange.ts"
import { parseHostName, isLoopback } from "../../../kernel/http/hostValidation.ts"
import { Config } from "../Config.ts"
import { errorOf, type Refused, rpcCode } from "./rpcErrors.ts"

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

const refusal = (status: number, error: string, message: string, headers: Readonly<Record<string, string>> = {}) =>
  json({ error, message }, { status, headers })

/** The answer if the caller cannot open another session. */
export const overloaded = (retryAfterSeconds: number) =>
  refusal(503, "too_many_sessions", "no session is free", { "retry-after": String(retryAfterSeconds) })
export const noSession = json(errorOf({ code: rpcCode.noSession, id: null, message: "Session not found" }), {
  status: 404
})
/** A protocol error as an HTTP answer. */
export const badRequest = (status: number, refused: Refused) => json(errorOf(refused), { status })

/**
 * True if the server answers this Host header, on any bound address: a listed name or, without a list, a name of this
 * machine. A browser may have been tricked into resolving another name to this machine (DNS rebinding); this is
 * impossible for an IP address.
 */
const isAnsweredHost = (
  header: string | undefined,
  boundHost: string,
  allowedHosts: ReadonlyArray<string>
): boolean => {
  const name = parseHostName(header)
  if (name === undefined) return false
  if (allowedHosts.length > 0) return allowedHosts.includes(name) || allowedHosts.includes(header!.toLowerCase())
  if (isLoopback(name)) return true
  return !isLoopback(boundHost) && (name === boundHost.toLowerCase() || parseAddress(name) !== undefined)
}

/** True for a page that this server on this machine could have served. */
const isOwn = (origin: string, { headers }: Request): boolean => {
  const host = parseHostName(headers["host"])
  return host !== undefined && isLoopback(host) && origin.toLowerCase() === `http://${headers["host"]!.toLowerCase()}`
}

/** Path of the metadata of `/mcp` (RFC 9728). */
export const metadataPath = "/.well-known/oauth-protected-resource/mcp"

/** A path of this server under the name by which the caller reached it; TLS ends in front of it. */
const addressOf = ({ headers }: Request, path: string): string => {
  const name = parseHostName(headers["host"])
  const isLocal = name === undefined || isLoopback(name) || parseAddress(name) !== undefined
  return `${isLocal ? "http" : "https"}://${headers["host"] ?? "localhost"}${path}`
}

/** Metadata of `/mcp` as OAuth's protected resource. It names no authorization server: the operator hands out keys. */
const protectedResource = (request: Request, isKeyed: boolean): Response =>
  isKeyed
    ? json({
        resource: addressOf(request, "/mcp"),
        resource_name: "Tollkeeper agent tools",
        bearer_methods_supported: ["header"]
      })
    : refusal(404, "not_found", "this server needs no keys")

const unauthorized = (request: Request): Response =>
  refusal(401, "unauthorized", "a bearer key is required", {
    "www-authenticate": `Bearer resource_metadata="${addressOf(request, metadataPath)}"`
  })

export class AdmissionControl extends Context.Service<
  AdmissionControl,
  {
    /** The address that the listener is bound to. */
    readonly host: string
    /** Authenticates the caller; fails with the response. */
    readonly admit: (request: Request) => Effect.Effect<string, Response>
    /** Counts a batch's additional messages; the request itself is already counted as one. Fails with the answer. */
    readonly count: (caller: string, messages: number) => Effect.Effect<void, Response>
    /** The answer to a request for the metadata of `/mcp`: 404 if no keys are needed. */
    readonly metadata: (request: Request) => Effect.Effect<Response>
    /** Admits an operator by a key of `operator_keys_env`; fails with the answer. */
    readonly admitOperator: (request: Request) => Effect.Effect<string, Response>
  }
>()("tollkeeper/mcp-tools/Admission") {
  static readonly layer = Layer.effect(
    AdmissionControl,
    Effect.gen(function* () {
      const { http } = yield* Config
      const callers = yield* Authentication
      const keys = yield* Keys
      const host = http.host ?? (keys.keyed() ? "0.0.0.0" : "127.0.0.1")
      const rate = makeRateLimit(http.callsPerSecond)
      const admitPage = (request: Request): Effect.Effect<void, Response> => {
        if (!isAnsweredHost(request.headers["host"], host, http.allowedHosts))
          return Effect.fail(
            refusal(403, "forbidden_host", "this name is not answered here; http.allowed_hosts lists those that are")
          )
        const origin = request.headers["origin"]
        const isInvited =
          origin === undefined || http.allowedOrigins.includes(origin.toLowerCase()) || isOwn(origin, request)
        return isInvited
          ? Effect.void
          : Effect.fail(
              refusal(
                403,
                "forbidden_origin",
                "pages of this origin may not call; http.allowed_origins lists the allowed origins"
              )
            )
      }
      const count = Effect.fnUntraced(function* (source: string, messages: number) {
        const waitSeconds = yield* rate(source, messages)
        if (waitSeconds > 0)
          return yield* Effect.fail(
            refusal(429, "too_many_requests", "too many requests; each message of a batch counts as one", {
              "retry-after": String(waitSeconds)
            })
          )
      })
      const admitKey = Effect.fnUntraced(function* (request: Request) {
        const waitSeconds = yield* callers.keyWait(request)
        if (waitSeconds > 0)
          return yield* Effect.fail(
            refusal(429, "too_many_requests", "too many unlisted bearer keys from this address", {
              "retry-after": String(waitSeconds)
            })
          )
      })
      return AdmissionControl.of({
        host,
        count: (source, messages) => (messages > 0 ? count(source, messages) : Effect.void),
        admit: Effect.fnUntraced(function* (request: Request): Effect.fn.Return<string, Response> {
          yield* admitPage(request)
          yield* admitKey(request)
          const caller = callers.authenticate(request)
          if (Option.isNone(caller)) return yield* Effect.fail(unauthorized(request))
          yield* count(caller.value.source, 1)
          return caller.value.source
        }),
        metadata: (request) =>
          Effect.match(admitPage(request), {
            onFailure: (refused) => refused,
            onSuccess: () => protectedResource(request, keys.keyed())
          }),
        admitOperator: Effect.fnUntraced(function* (request: Request): Effect.fn.Return<string, Response> {
          yield* admitPage(request)
          if (!keys.operatorKeyed())
            return yield* Effect.fail(refusal(403, "forbidden", "no operator key is configured; use the command line"))
          yield* admitKey(request)
          const operator = callers.operator(request)
          return Option.isSome(operator) ? operator.value : yield* Effect.fail(unauthorized(request))
        })
      })
    })
  )
}
