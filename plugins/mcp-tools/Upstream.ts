// All outgoing requests of the tools: through `safeFetch`, under the caps of the settings, with a maximum number of
// connections; waiting for one counts towards the request's time (S235–S238). Sellers never have all connections, nor
// one origin most of theirs, so that a seller that hangs holds up neither discovery nor other sellers. Agents that
// share a server take turns, and one never has more than half, so that its searches delay no other agent. Answers are
// JSON of bounded depth. No state is kept between two requests: no cookie, no connection, no answer.
import { Context, Effect, Layer, Option } from "effect"
import { BoundedMap } from "../../kernel/cache/BoundedMap.ts"
import { FairScheduler } from "../../kernel/effect/FairScheduler.ts"
import { type JsonParseError, parseJson } from "../../kernel/http/BoundedJson.ts"
import {
  type FetchAnswer,
  type FetchPolicy,
  FetchRefused,
  type FetchRequest,
  safeFetch
} from "../../kernel/http/safeFetch.ts"
import { monotonicMillis } from "../../kernel/time/monotonicMillis.ts"
import { OnBehalfOf, Outbound } from "../../kernel/platform/Outbound.ts"
import { Config } from "./Config.ts"

/** Share of a request's timeout after which a request with `keepsPart` returns the part of the body that has come. */
const partShare = 0.9

interface UpstreamRequest extends Omit<FetchRequest, "partMillis"> {
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

interface Reach {
  readonly allowLocal: boolean
  readonly allowPlain: boolean
  /** True for an address from a listing (a seller), false for an address that the operator configured. */
  readonly isStranger: boolean
}

/** Connections reserved for hosts that the operator configured. */
const keptConnections = 2

/** Requests that wait for a connection; beyond them the agent with most loses its last one. */
const waitingMax = 4_096

type Turnstile = <A>(effect: Effect.Effect<A, FetchRefused>) => Effect.Effect<A, FetchRefused>

/** Limits concurrency, by agent in turn. `isShared`: several agents use it, and one has half of it at most. */
const makeTurnstile = (concurrentMax: number, isShared: boolean): Turnstile => {
  const perCallerMax = isShared ? Math.ceil(concurrentMax / 2) : concurrentMax
  const turns = new FairScheduler({ concurrentMax, perCallerMax, waitingMax })
  return (effect) =>
    Effect.flatMap(OnBehalfOf, (name) => turns.run({ name, isFree: false }, effect)).pipe(
      Effect.flatMap(
        Option.match({ onNone: () => Effect.fail(new FetchRefused({ reason: "timeout" })), onSome: Effect.succeed })
      )
    )
}

/** A turnstile for each key; one without users is removed. */
const makeTurnstiles = (make: () => Turnstile) => {
  const gates = new Map<string, { readonly pass: Turnstile; users: number }>()
  const enter = (key: string) =>
    Effect.sync(() => {
      const one = gates.get(key) ?? { pass: make(), users: 0 }
      one.users += 1
      gates.set(key, one)
      return one
    })
  return <A>(key: string, effect: Effect.Effect<A, FetchRefused>): Effect.Effect<A, FetchRefused> =>
    Effect.acquireUseRelease(
      enter(key),
      ({ pass }) => pass(effect),
      (one) => Effect.sync(() => void (--one.users === 0 && gates.delete(key)))
    )
}

/** A seller that could not be reached ranks last in searches for this time, or until it is reached. */
const failingMillis = 300_000
const failingMax = 1_000

/** Remembers the origins of sellers that could not be reached. */
const makeFailing = () => {
  const failed = new BoundedMap<string, number>(failingMax)
  const watch = <R>(url: URL, effect: Effect.Effect<FetchAnswer, FetchRefused, R>) =>
    Effect.tapError(
      Effect.tap(effect, () => Effect.sync(() => void failed.delete(url.origin))),
      ({ reason }) =>
        reason === "timeout" || reason === "unreachable" || reason === "unresolved"
          ? Effect.map(monotonicMillis, (now) => void failed.set(url.origin, now))
          : Effect.void
    )
  const failing = Effect.map(monotonicMillis, (now) => (url: string) => {
    const at = failed.get(URL.parse(url)?.origin ?? "")
    return at !== undefined && now - at < failingMillis
  })
  return { failing, watch }
}

/** All outgoing requests of the process share the connections. */
export class Upstreams extends Context.Service<
  Upstreams,
  {
    readonly within: (reach: Reach) => Upstream
    /** Whether the seller at an address could not be reached within the last minutes. */
    readonly failing: Effect.Effect<(url: string) => boolean>
  }
>()("tollkeeper/mcp-tools/Upstreams") {
  static readonly layer = Layer.effect(
    Upstreams,
    Effect.gen(function* () {
      const outbound = yield* Outbound
      const { caps, transport } = yield* Config
      const turnstile = (concurrentMax: number) => makeTurnstile(concurrentMax, transport === "http")
      const ofAll = turnstile(caps.connectionsMax)
      const strangersMax = Math.max(1, caps.connectionsMax - keptConnections)
      const ofStrangers = turnstile(strangersMax)
      const ofOrigin = makeTurnstiles(() => turnstile(Math.max(1, Math.floor(strangersMax / 2))))
      const inTurn = <A>(effect: Effect.Effect<A, FetchRefused>, url: URL, { isStranger }: Reach) =>
        isStranger ? ofOrigin(url.host, ofStrangers(ofAll(effect))) : ofAll(effect)
      const { failing, watch } = makeFailing()
      const bounds = { depthMax: caps.jsonDepthMax, valuesMax: jsonValuesMax }
      const fetchWithin =
        (reach: Reach): Upstream["fetch"] =>
        (url, { keepsPart = false, ...request }, own = {}) => {
          const { redirectsMax, responseBytesMax: bytesMax, timeoutMillis } = { ...caps, ...own }
          const policy: FetchPolicy = { ...reach, bytesMax, redirectsMax, timeoutMillis }
          return Effect.flatMap(monotonicMillis, (begun) => {
            const fetched = Effect.flatMap(monotonicMillis, (now) => {
              const partMillis = keepsPart ? partShare * timeoutMillis - (now - begun) : undefined
              const sent = safeFetch(url, { ...request, partMillis }, policy)
              return reach.isStranger ? watch(url, sent) : sent
            })
            return inTurn(Effect.provideService(fetched, Outbound, outbound), url, reach)
          }).pipe(
            Effect.timeout(timeoutMillis),
            Effect.catchTag("TimeoutError", () => Effect.fail(new FetchRefused({ reason: "timeout" })))
          )
        }
      return Upstreams.of({
        failing,
        within: (reach) => ({
          fetch: fetchWithin(reach),
          parse: (bytes) => parseJson(bytes, bounds),
          parseContent: (bytes) => parseJson(bytes, { ...bounds, keys: "any" })
        })
      })
    })
  )
}
