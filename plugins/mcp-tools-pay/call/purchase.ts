// Shared first steps of every purchase: the agent's limits on the terms, the catalog's current version, and the refusal
// of a seller with different terms.
import { Effect, Schema } from "effect"
import {
  canonicalOrigin,
  type CanonicalResource,
  DiscoveryClient,
  encodeReference,
  toolError,
  type Identity,
  listedIdentity,
  readReference,
  ToolsConfig,
  Wrapping
} from "../../mcp-tools/contract.ts"
import type { TermsComparison } from "../seller/compareTerms.ts"
import type { Invocation } from "./Invocation.ts"
import type { AskedTerms } from "./chooseTerms.ts"

/** Selects among a resource's terms, and limits the price. */
export const TermsInput = {
  network: Schema.optionalKey(Schema.String.annotate({ description: "Default: the enabled one." })),
  scheme: Schema.optionalKey(Schema.String.annotate({ description: "Default: exact." })),
  asset: Schema.optionalKey(Schema.String.annotate({ description: "Token's contract." })),
  maxAtomicAmount: Schema.optionalKey(
    Schema.String.check(Schema.isPattern(/^(0|[1-9][0-9]{0,38})$/)).annotate({
      description: "Maximum cost."
    })
  )
}

interface TermsGiven {
  readonly network?: string
  readonly scheme?: string
  readonly asset?: string
  readonly maxAtomicAmount?: string
}

export const askedTerms = ({ asset, maxAtomicAmount, network, scheme }: TermsGiven): AskedTerms => ({
  network,
  scheme,
  asset,
  maxAtomicAmount: maxAtomicAmount === undefined ? undefined : BigInt(maxAtomicAmount)
})

/** The address to connect to. Undefined for a symbolic name without an address from the operator. */
export const endpointOf = ({ type, url }: Identity, resolved: Readonly<Record<string, string>>): URL | undefined => {
  const endpoint = type === "mcp" && url.startsWith("mcp:") ? resolved[url] : url
  return endpoint !== undefined && URL.canParse(endpoint) ? new URL(endpoint) : undefined
}

/** The seller's name and description of the resource, shortened. */
const titleOf = ({ description, serviceName }: CanonicalResource): string =>
  [serviceName, description].filter((text) => typeof text === "string" && text !== "").join(": ")

/**
 * The listing of a reference, if it is the version that the agent has read. From here on the reference itself is not
 * used: payee, address, origin, rules and budget come from the listing. A reference that differs from the listing's own
 * in any byte is refused, and the error contains the right one.
 */
export const currentResource = Effect.fnUntraced(function* (ref: string, expectedVersionHash?: string) {
  const resource = yield* (yield* DiscoveryClient).resolve(yield* readReference(ref))
  const identity = yield* listedIdentity(resource)
  const { wrapper } = (yield* Wrapping).wrap(resource, { expectedVersionHash })
  const own = encodeReference(identity)
  if (own !== ref)
    return yield* toolError("INVALID_ARGUMENT", "`ref` is another spelling of a listing; pass `details.ref`", {
      ref: own,
      versionHash: wrapper.versionHash
    })
  if (wrapper.status !== "active") {
    return yield* toolError(
      "RESOURCE_STALE",
      "the catalog's version differs from the expected one, or the seller was not seen recently",
      { versionHash: wrapper.versionHash }
    )
  }
  const endpoint = endpointOf(identity, (yield* ToolsConfig).resolvedMcpEndpoints)
  const about: Invocation["about"] = {
    kind: identity.type,
    origin: endpoint === undefined ? undefined : canonicalOrigin(endpoint.href),
    grade: resource["ownership"] === "proven" ? "proven" : "provisional"
  }
  return {
    identity,
    endpoint,
    resource,
    ref: own,
    versionHash: wrapper.versionHash,
    about,
    title: titleOf(resource)
  }
})

/** The terms to pay, if the seller's demand equals the catalog's listing. */
export const agreedOption = (compared: TermsComparison) =>
  compared._tag === "Differs"
    ? toolError("RESOURCE_CHANGED", "the seller's terms differ from the catalog's", {
        members: compared.members
      })
    : Effect.succeed(compared.option)
