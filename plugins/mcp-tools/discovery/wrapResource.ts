// The wrapper of a resource in an answer: its reference, its version, its source, and warnings for an agent. The
// resource itself is never changed. A seller's text stays unmodified, and the warnings mention that (S191–S197, S221).
import { Context, Effect, Layer } from "effect"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Config, type ConfigValues } from "../Config.ts"
import { encodeReference } from "../Reference.ts"
import { type CanonicalResource, identityOf, stateOf, versionHashOf } from "./DiscoveryWire.ts"

interface Wrapper {
  readonly ref: string
  readonly versionHash: string
  readonly provenance: "seller_declared"
  readonly status: "active" | "stale"
  readonly warnings: ReadonlyArray<string>
}

export interface WrappedResource {
  readonly resource: CanonicalResource
  readonly wrapper: Wrapper
}

interface WrapOptions {
  readonly expectedVersionHash?: string | undefined
  /** It is only one of the nearest results; no resource clearly answers the query. */
  readonly isNearestOnly?: boolean
  readonly isUnreachable?: boolean
}

const warnings = {
  nearest: "nearest_only: nothing listed is known to answer the query, and this is a guess; do not pay on it alone",
  unreachable: "seller_unreachable: this tool server could not reach the seller in the last minutes",
  stale: "stale: the seller has not been seen for a while",
  changed: "version_changed: this is not the version that was expected; read it again before paying",
  unproven: "owner_unproven: the origin has not confirmed the payee",
  unpaid: "payment_unobserved: no payment for this resource has been observed",
  symbolic: "symbolic_identifier: the mcp:// name is not an address to connect to"
}

const isConnectable = (url: string, { resolvedMcpEndpoints }: ConfigValues): boolean =>
  !url.startsWith("mcp:") || resolvedMcpEndpoints[url] !== undefined

export class Wrapping extends Context.Service<
  Wrapping,
  { readonly wrap: (resource: CanonicalResource, options?: WrapOptions) => WrappedResource }
>()("tollkeeper/mcp-tools/Wrapping") {
  static readonly layer = Layer.effect(
    Wrapping,
    Effect.gen(function* () {
      const config = yield* Config
      const crypto = yield* Crypto
      return Wrapping.of({
        wrap: (resource, { expectedVersionHash, isNearestOnly = false, isUnreachable = false } = {}) => {
          const identity = identityOf(resource)!
          const { isPaidFor, isProven, isStale } = stateOf(resource)
          const versionHash = versionHashOf(crypto, resource)
          const isChanged = expectedVersionHash !== undefined && expectedVersionHash.toLowerCase() !== versionHash
          return {
            resource,
            wrapper: {
              ref: encodeReference(identity),
              versionHash,
              provenance: "seller_declared",
              status: isStale || isChanged ? "stale" : "active",
              warnings: [
                ...(isNearestOnly ? [warnings.nearest] : []),
                ...(isUnreachable ? [warnings.unreachable] : []),
                ...(isChanged ? [warnings.changed] : []),
                ...(isStale ? [warnings.stale] : []),
                ...(isProven ? [] : [warnings.unproven]),
                ...(isPaidFor ? [] : [warnings.unpaid]),
                ...(identity.type === "mcp" && !isConnectable(identity.url, config) ? [warnings.symbolic] : [])
              ]
            }
          }
        }
      })
    })
  )
}
