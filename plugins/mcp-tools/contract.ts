// Interface for plugins that add tools: the registry, the facilitator's discovery, the only way to send requests to
// sellers, the server's settings, and the types of tools and their errors.
import { Effect, Option } from "effect"
import { contract } from "../../kernel/contract/Contract.ts"
import { AdmissionControl } from "./server/AdmissionControl.ts"
import { canonicalOrigin, hostOf, isCanonicalUrl } from "./canonicalOrigin.ts"
import { Config, signerVariables } from "./Config.ts"
import { DiscoveryClient } from "./discovery/DiscoveryClient.ts"
import { type CanonicalResource, identityOf } from "./discovery/DiscoveryWire.ts"
import {
  type DeclaredInput,
  inputLine,
  readBodySchema,
  readDeclaration,
  readInputSchema
} from "./discovery/declaredInput.ts"
import { readReference, ReferenceInput, VersionHashInput } from "./discovery/getResource.ts"
import { Wrapping } from "./discovery/wrapResource.ts"
import { inexactIn, membersOf, textAt } from "./exactJson.ts"
import { inert, isWord, quoted } from "./inert.ts"
import { encodeReference, type Identity } from "./Reference.ts"
import { findStringified, stringifiedError } from "./stringified.ts"
import { type Caller, defineTool, type InputNeeded, type Tool } from "./Tool.ts"
import { fetchError, retryableError, toolError, ToolError, type ToolErrorCode } from "./ToolError.ts"
import { Tools } from "./Tools.ts"
import { type Upstream, Upstreams } from "./Upstream.ts"
import { WireVocabulary } from "../../kernel/config/WireVocabulary.ts"
import { encodeNetwork, readNetwork } from "../../kernel/Dialect.ts"

/** An amount of atomic units in decimal notation: exact, without trailing zeros. Pure. */
export const unitsOf = (amount: bigint, decimals: number): string => {
  const digits = amount.toString().padStart(decimals + 1, "0")
  const whole = digits.slice(0, digits.length - decimals)
  const part = digits.slice(digits.length - decimals).replace(/0+$/, "")
  return part === "" ? whole : `${whole}.${part}`
}

/** Spells a network for answers in the first of the enabled dialects; any other text stays unchanged. */
export const spelled = Effect.map(
  WireVocabulary,
  ({ dialects: [dialect] }) =>
    (network: string): string =>
      Option.match(readNetwork(network), {
        onNone: () => network,
        onSome: ({ network }) => encodeNetwork(network, dialect)
      })
)

/**
 * The identity of a resolved listing in its canonical spelling, for tools that act on it. If the listing's address is
 * spelled differently from the dialed and verified address, it is refused. Otherwise the agent and the operator's
 * rules would decide about an address that differs from the dialed one.
 */
const listedIdentity = (resource: CanonicalResource): Effect.Effect<Identity, ToolError> => {
  const identity = identityOf(resource)
  return identity !== undefined && isCanonicalUrl(identity.url)
    ? Effect.succeed(identity)
    : Effect.fail(
        toolError(
          "UPSTREAM_PROTOCOL_ERROR",
          "the facilitator lists this resource under an address that is not in canonical form"
        )
      )
}

export {
  AdmissionControl as Admission,
  type CanonicalResource,
  type Caller,
  canonicalOrigin,
  type DeclaredInput,
  defineTool,
  DiscoveryClient,
  encodeReference,
  toolError,
  type ToolErrorCode,
  fetchError,
  hostOf,
  findStringified,
  type Identity,
  inert,
  inexactIn,
  inputLine,
  membersOf,
  readBodySchema,
  readDeclaration,
  readInputSchema,
  textAt,
  type InputNeeded,
  isWord,
  listedIdentity,
  quoted,
  readReference,
  ReferenceInput,
  retryableError,
  signerVariables,
  stringifiedError,
  type Tool,
  ToolError,
  Tools,
  Config as ToolsConfig,
  type Upstream,
  Upstreams,
  VersionHashInput,
  Wrapping
}

/** Required by every plugin that adds tools. */
export const toolsContract = contract(
  "mcp-tools",
  AdmissionControl,
  Tools,
  DiscoveryClient,
  Wrapping,
  Upstreams,
  Config
)
