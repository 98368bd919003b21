// HTTP client of the facilitator's three public discovery routes, and of no other route (S5). Every failure becomes an
// error that an agent can act on. The readiness probe of discovery is cached for a moment, so that health checks of
// this server do not reach the facilitator.
import { Context, Effect, Layer } from "effect"
import { currentTraceParent } from "../../../kernel/TraceParent.ts"
import { monotonicMillis } from "../../../kernel/time/monotonicMillis.ts"
import { Config } from "../Config.ts"
import type { Identity } from "../Reference.ts"
import { toolError, fetchError, type ToolError } from "../ToolError.ts"
import { Upstreams } from "../Upstream.ts"
import {
  type CanonicalResource,
  type DiscoveryPage,
  identityOf,
  readErrorBody,
  readPage,
  readResource
} from "./DiscoveryWire.ts"

const caller = "the facilitator"
const malformed = toolError("UPSTREAM_PROTOCOL_ERROR", "the facilitator's answer is not a valid discovery response")
const readyMillis = 1_000

/** Sends a request to one of the facilitator's routes. */
const makeAsk = Effect.gen(function* () {
  const { facilitatorMayBeInsecure: isOpen, facilitatorUrl } = yield* Config
  const upstream = (yield* Upstreams).within({ allowLocal: isOpen, allowPlain: isOpen, isStranger: false })
  const base = facilitatorUrl.href.replace(/\/$/, "")
  return Effect.fnUntraced(function* (path: string, parameters: Readonly<Record<string, string>>) {
    const url = new URL(`${base}${path}`)
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
    // We send the trace id only to the facilitator, never to a seller.
    const traceparent = yield* currentTraceParent
    const { body, status } = yield* Effect.mapError(
      upstream.fetch(url, {
        method: "GET",
        headers: {
          accept: "application/json",
          "user-agent": "Tollkeeper/0.1 (agent tools)",
          ...(traceparent === undefined ? {} : { traceparent })
        }
      }),
      fetchError(caller)
    )
    if (status === 429 || status >= 500) {
      const { error } = yield* Effect.match(upstream.parse(body), {
        onFailure: () => readErrorBody(undefined),
        onSuccess: readErrorBody
      })
      return yield* toolError("UPSTREAM_TIMEOUT", "the facilitator is unavailable; retry later", { status, error })
    }
    return { status, answer: yield* Effect.mapError(upstream.parse(body), () => malformed) }
  })
})

interface Readiness {
  readonly ready: boolean
  readonly detail?: string
}

/** The result of `read`, cached for a moment. */
const makeReady = (read: Effect.Effect<unknown, ToolError>): Effect.Effect<Readiness> => {
  let known: (Readiness & { readonly at: number }) | undefined
  const said = Effect.match(read, {
    onFailure: ({ message }): Readiness => ({ ready: false, detail: message }),
    onSuccess: (): Readiness => ({ ready: true })
  })
  return Effect.gen(function* () {
    const now = yield* monotonicMillis
    if (known === undefined || now - known.at >= readyMillis) {
      // A caller during a probe gets the previous result: at most one probe a second.
      known = { ready: known?.ready ?? false, detail: known?.detail ?? "not queried yet", at: now }
      known = { ...(yield* said), at: now }
    }
    const { at: _, ...readiness } = known
    return readiness
  })
}

export class DiscoveryClient extends Context.Service<
  DiscoveryClient,
  {
    /** Browses, or searches if there is a `query`. */
    readonly list: (
      parameters: Readonly<Record<string, string>>,
      limit: number
    ) => Effect.Effect<DiscoveryPage, ToolError>
    readonly resolve: (identity: Identity) => Effect.Effect<CanonicalResource, ToolError>
    /** Whether discovery answers; at most a second old. */
    readonly ready: Effect.Effect<Readiness>
  }
>()("tollkeeper/mcp-tools/DiscoveryClient") {
  static readonly layer = Layer.effect(
    DiscoveryClient,
    Effect.gen(function* () {
      const ask = yield* makeAsk

      const list = Effect.fn("Discovery.list")(function* (parameters: Readonly<Record<string, string>>, limit: number) {
        const isSearch = "query" in parameters
        const { answer, status } = yield* ask(isSearch ? "/discovery/search" : "/discovery/resources", {
          ...parameters,
          ...(isSearch ? { matches: "1" } : {}),
          limit: String(limit)
        })
        if (status === 400) {
          const { details, error } = readErrorBody(answer)
          return yield* toolError("INVALID_ARGUMENT", `the facilitator rejected the request: ${error}`, {
            error,
            details
          })
        }
        const page = status === 200 ? readPage(answer, limit) : undefined
        return page ?? (yield* malformed)
      })

      const resolve = Effect.fn("Discovery.resolve")(function* ({ toolName, type, url }: Identity) {
        const named = type === "mcp" ? { toolName } : {}
        const { answer, status } = yield* ask("/discovery/resource", { type, url, ...named })
        if (status === 404 || status === 400)
          return yield* toolError("NO_RESULTS", "no active catalog entry has this reference")
        const resource = status === 200 ? readResource(answer) : undefined
        const identity = resource === undefined ? undefined : identityOf(resource)
        // A concrete URL of a dynamic route leads to the route's entry, so the URL may differ; the kind and the tool
        // may not.
        return resource === undefined || identity?.type !== type || identity.toolName !== toolName
          ? yield* malformed
          : resource
      })

      return DiscoveryClient.of({ list, resolve, ready: makeReady(list({}, 1)) })
    })
  )
}
