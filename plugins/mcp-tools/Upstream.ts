// All outgoing requests of the tools: through `safeFetch`, under the caps of the settings, with a maximum number of
// connections; waiting for one counts towards the request's time (S235–S238). Sellers never use all connections, and
// one origin uses at most half of theirs, so that a seller that hangs delays neither discovery nor other sellers.
// Answers are JSON of bounded depth. Nothing is kept between two requests: no cookie, no connection, no answer.
import { Context, Effect, Layer, Semaphore } from "effect"
import { type JsonParseError, parseJson } from "../../kernel/http/BoundedJson.ts"
import {
  type FetchAnswer,
  type FetchPolicy,
  FetchRefused,
  type FetchRequest,
  safeFetch
} from "../../kernel/http/safeFetch.ts"
import { monotonicMillis } from "../../kernel/time/monotonicMillis.ts"
import { Outbound } from "../../kernel/platform/Outbound.ts"
import { Config } from "./Config.ts"

/** Share of a request's timeout after which a request with `keepsPart` returns the part of the body that has come. */
const partShare = 0.9

export interface UpstreamRequest extends Omit<FetchRequest, "partMillis"> {
  /**
   * Set for a paying request: if the body is too long, cut off, or late by nine tenths of the timeout, the part that
   * came is returned.
   */
  readonly keepsPart?: boolean | undefined
}

export interface Upstream {
  /** `caps` overrides the settings' caps for one request. */
  readonly fetch: (
    url: URL,
    request: UpstreamRequest,
    caps?: { readonly timeoutMillis?: number; readonly redirectsMax?: number }
  ) => Effect.Effect<FetchAnswer, FetchRefused>
  readonly parse: (bytes: Uint8Array) => Effect.Effect<unknown, JsonParseError>
  /** For paid content that is passed on unread: any keys, within the same bounds. */
  readonly parseContent: (bytes: Uint8Array) => Effect.Effect<unknown, JsonParseError>
}

/** Maximum number of values in one JSON answer; a page of 200 resources has some 20,000. */
const jsonValuesMax = 400_000

export interface Reach {
  readonly allowLocal: boolean
  readonly allowPlain: boolean
  /** True for an address from a listing (a seller), false for an address that the operator configured. */
  readonly isStranger: boolean
}

/** Connections reserved for hosts that the operator configured. */
const keptConnections = 2

/** Limits concurrency per key; a key without holders is removed. */
const makeTurnstile = (permits: number) => {
  const gates = new Map<string, { readonly gate: Semaphore.Semaphore; users: number }>()
  const enter = (key: string) =>
    Effect.sync(() => {
      const one = gates.get(key) ?? { gate: Semaphore.makeUnsafe(permits), users: 0 }
      one.users += 1
      gates.set(key, one)
      return one
    })
  return <A, E, R>(key: string, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.acquireUseRelease(
      enter(key),
      ({ gate }) => Semaphore.withPermit(gate, effect),
      (one) => Effect.sync(() => void (--one.users === 0 && gates.delete(key)))
    )
}

/** All outgoing requests of the process share the connections. */
export class Upstreams extends Context.Service<Upstreams, { readonly within: (reach: Reach) => Upstream }>()(
  "tollkeeper/mcp-tools/Upstreams"
) {
  static readonly layer = Layer.effect(
    Upstreams,
    Effect.gen(function* () {
      const outbound = yield* Outbound
      const { caps } = yield* Config
      const connections = yield* Semaphore.make(caps.connectionsMax)
      const strangersMax = Math.max(1, caps.connectionsMax - keptConnections)
      const strangers = yield* Semaphore.make(strangersMax)
      const ofOrigin = makeTurnstile(Math.max(1, Math.floor(strangersMax / 2)))
      const inTurn = <A, E>(effect: Effect.Effect<A, E>, url: URL, { isStranger }: Reach): Effect.Effect<A, E> => {
        const connected = Semaphore.withPermit(connections, effect)
        return isStranger ? ofOrigin(url.host, Semaphore.withPermit(strangers, connected)) : connected
      }
      const bounds = { depthMax: caps.jsonDepthMax, valuesMax: jsonValuesMax }
      const fetchWithin =
        (reach: Reach): Upstream["fetch"] =>
        (url, { keepsPart = false, ...request }, own = {}) => {
          const { redirectsMax, responseBytesMax: bytesMax, timeoutMillis } = { ...caps, ...own }
          const policy: FetchPolicy = { ...reach, bytesMax, redirectsMax, timeoutMillis }
          return Effect.flatMap(monotonicMillis, (begun) => {
            const fetched = Effect.flatMap(monotonicMillis, (now) => {
              const partMillis = keepsPart ? partShare * timeoutMillis - (now - begun) : undefined
              return safeFetch(url, { ...request, partMillis }, policy)
            })
            return inTurn(Effect.provideService(fetched, Outbound, outbound), url, reach)
          }).pipe(
            Effect.timeout(timeoutMillis),
            Effect.catchTag("TimeoutError", () => Effect.fail(new FetchRefused({ reason: "timeout" })))
          )
        }
      return Upstreams.of({
        within: (reach) => ({
          fetch: fetchWithin(reach),
          parse: (bytes) => parseJson(bytes, bounds),
          parseContent: (bytes) => parseJson(bytes, { ...bounds, keys: "any" })
        })
      })
    })
  )
}
