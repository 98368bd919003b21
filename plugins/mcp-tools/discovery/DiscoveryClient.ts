// The facilitator as the tools know it: three public routes, asked over HTTP, and nothing else (S5). Whatever goes
// wrong there becomes a fault that an agent can act on. A look at whether discovery answers at all is kept for a
// moment, so that questions about our own health are none to the facilitator.
import { Clock, Effect } from "effect"
import type { Identity } from "../Reference.ts"
import { fault, fetchFault, type ToolFault } from "../ToolFault.ts"
import type { Upstream } from "../Upstream.ts"
import {
  type CanonicalResource,
  type DiscoveryPage,
  identityOf,
  readFault,
  readPage,
  readResource
} from "./DiscoveryWire.ts"

export interface DiscoveryClient {
  /** Browse, or search when there is a `query`. */
  readonly list: (
    parameters: Readonly<Record<string, string>>,
    limit: number
  ) => Effect.Effect<DiscoveryPage, ToolFault>
  /** One current resource. */
  readonly resolve: (identity: Identity) => Effect.Effect<CanonicalResource, ToolFault>
  /** Whether discovery answers; at most a second old. */
  readonly ready: Effect.Effect<{ readonly ready: boolean; readonly detail?: string }>
}

const who = "the facilitator"
const malformed = fault("UPSTREAM_PROTOCOL_ERROR", "the facilitator answered with something that is not discovery")
const readyMillis = 1_000

export const makeDiscoveryClient = (upstream: Upstream, baseUrl: URL): DiscoveryClient => {
  const ask = Effect.fnUntraced(function* (path: string, parameters: Readonly<Record<string, string>>) {
    const url = new URL(`${baseUrl.href.replace(/\/$/, "")}${path}`)
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
    const { body, status } = yield* Effect.mapError(
      upstream.fetch(url, {
        method: "GET",
        headers: { accept: "application/json", "user-agent": "Tollkeeper/0.1 (agent tools)" }
      }),
      fetchFault(who)
    )
    if (status === 429 || status >= 500) {
      const { error } = yield* Effect.match(upstream.parse(body), {
        onFailure: () => readFault(undefined),
        onSuccess: readFault
      })
      return yield* fault("UPSTREAM_TIMEOUT", "the facilitator cannot answer now", { status, error })
    }
    return { status, answer: yield* Effect.mapError(upstream.parse(body), () => malformed) }
  })

  const list = Effect.fn("Discovery.list")(function* (parameters: Readonly<Record<string, string>>, limit: number) {
    const { answer, status } = yield* ask("query" in parameters ? "/discovery/search" : "/discovery/resources", {
      ...parameters,
      limit: String(limit)
    })
    if (status === 400) {
      const { details, error } = readFault(answer)
      return yield* fault("INVALID_ARGUMENT", `the facilitator refuses the question: ${error}`, { error, details })
    }
    const page = status === 200 ? readPage(answer, limit) : undefined
    return page ?? (yield* malformed)
  })

  const resolve = Effect.fn("Discovery.resolve")(function* ({ toolName, type, url }: Identity) {
    const { answer, status } = yield* ask("/discovery/resource", { type, url, ...(type === "mcp" ? { toolName } : {}) })
    if (status === 404 || status === 400)
      return yield* fault("NO_RESULTS", "no active catalog entry has this reference")
    const resource = status === 200 ? readResource(answer) : undefined
    const identity = resource === undefined ? undefined : identityOf(resource)
    // A concrete URL of a dynamic route leads to the route's entry, so the URL may differ; the kind and the tool may
    // not.
    return resource === undefined || identity?.type !== type || identity.toolName !== toolName
      ? yield* malformed
      : resource
  })

  let known: { readonly at: number; readonly ready: boolean; readonly detail?: string } | undefined
  const look = list({}, 1).pipe(
    Effect.match({
      onFailure: ({ message }): { readonly ready: boolean; readonly detail?: string } => ({
        ready: false,
        detail: message
      }),
      onSuccess: () => ({ ready: true })
    })
  )
  const ready = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    if (known === undefined || now - known.at >= readyMillis) {
      // Who asks while the look is under way gets the one before: no more than one look a second.
      known = { ready: known?.ready ?? false, detail: known?.detail ?? "not asked yet", at: now }
      known = { ...(yield* look), at: now }
    }
    const { at: _, ...said } = known
    return said
  })

  return { list, resolve, ready }
}
