// Who asks. With keys configured, a listed key or nobody; without, one anonymous principal, counted by source address.
// An IPv6 caller is named by its /64, since it owns all of it; `X-Forwarded-For` is believed only hop by hop from
// proxies that the settings trust.
import { Context, Effect, Layer, Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { Server } from "../config/Server.ts"
import { inRange, parseAddress, principalOf } from "./addresses.ts"
import { bearerOf, Keys } from "./Keys.ts"
import { anonymous, type Principal } from "./Principal.ts"
import { hostNameOf, isLoopback } from "./strangers.ts"

/** Headers by which a proxy, trusted or not, makes itself known. */
const proxyHeader = new RegExp(
  "^(x-forwarded(-.+)?|forwarded|via|x-real-ip|x-client-ip|x-original-.+|true-client-ip|cf-.+|x-envoy-.+)$"
)

export class Callers extends Context.Service<
  Callers,
  {
    /** The principal of a request; None when keys are configured and none of them was sent. */
    readonly identify: (request: HttpServerRequest.HttpServerRequest) => Option.Option<Principal>
    readonly isOperator: (request: HttpServerRequest.HttpServerRequest) => boolean
    /** Whether the request comes from this machine itself, without a proxy. */
    readonly isLocal: (request: HttpServerRequest.HttpServerRequest) => boolean
  }
>()("tollkeeper/http/Callers") {
  static readonly layer = Layer.effect(
    Callers,
    Effect.gen(function* () {
      const server = yield* Server
      const keys = yield* Keys
      const isTrusted = (address: string): boolean => server.trustedProxies.some((range) => inRange(address, range))

      const sourceOf = (request: HttpServerRequest.HttpServerRequest): string => {
        const peer = Option.getOrElse(request.remoteAddress, () => "unknown")
        const hops = (request.headers["x-forwarded-for"] ?? "")
          .split(",")
          .map((hop) => hop.trim())
          .filter((hop) => hop !== "")
        let address = peer
        // From the nearest hop outwards, for as long as the one who reports it is trusted.
        while (isTrusted(address)) {
          const next = hops.pop()
          if (next === undefined || parseAddress(next) === undefined) break
          address = next
        }
        return address
      }

      return Callers.of({
        identify: (request) => {
          if (!keys.keyed())
            return Option.some({ owner: anonymous, source: principalOf(sourceOf(request)), keyed: false })
          return Option.map(Option.flatMap(bearerOf(request.headers["authorization"]), keys.caller), (label) => ({
            owner: `key:${label}`,
            source: `key:${label}`,
            keyed: true
          }))
        },
        isOperator: (request) =>
          Option.isSome(Option.flatMap(bearerOf(request.headers["authorization"]), keys.operator)),
        // A proxy on this machine is not this machine's user: it is known by its headers, by the Host that it passes
        // on, or by the settings that trust it.
        isLocal: (request) =>
          Object.keys(request.headers).every((header) => !proxyHeader.test(header)) &&
          isLoopback(hostNameOf(request.headers["host"]) ?? "") &&
          Option.exists(request.remoteAddress, (peer) => isLoopback(peer.replace(/^::ffff:/, "")) && !isTrusted(peer))
      })
    })
  )
}
