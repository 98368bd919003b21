// What stands beside a resource in an answer: its reference, its version, where it comes from and what an agent should
// know before it trusts it. The resource itself is never touched; what a seller wrote stays the seller's words, and the
// warnings say so (S191–S197, S221). Pure.
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import { encodeReference } from "../Reference.ts"
import { type CanonicalResource, identityOf, standingOf, versionHashOf } from "./DiscoveryWire.ts"

export interface Wrapper {
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

const warnings = {
  stale: "stale: the seller has not been seen for a while",
  changed: "version_changed: this is not the version that was expected; read it again before paying",
  unproven: "owner_unproven: the origin has not confirmed who is paid",
  unpaid: "payment_unobserved: no payment for this resource has been observed",
  symbolic: "symbolic_identifier: the mcp:// name is no address that can be connected to"
}

export const makeWrap =
  (crypto: Crypto["Service"], isConnectable: (url: string) => boolean) =>
  (resource: CanonicalResource, expectedVersionHash?: string): WrappedResource => {
    const identity = identityOf(resource)!
    const { isPaidFor, isProven, isStale } = standingOf(resource)
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
          ...(isChanged ? [warnings.changed] : []),
          ...(isStale ? [warnings.stale] : []),
          ...(isProven ? [] : [warnings.unproven]),
          ...(isPaidFor ? [] : [warnings.unpaid]),
          ...(identity.type === "mcp" && !isConnectable(identity.url) ? [warnings.symbolic] : [])
        ]
      }
    }
  }
