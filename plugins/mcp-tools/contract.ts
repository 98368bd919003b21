// Interface for plugins that add tools: the registry, the facilitator's discovery, the only way to send requests to
// sellers, the server's settings, and the types of tools and their errors.
import { contract } from "../../kernel/contract/Contract.ts"
import { AdmissionControl } from "./server/AdmissionControl.ts"
import { canonicalOrigin, hostOf, isCanonicalUrl } from "./canonicalOrigin.ts"
import { Config } from "./Config.ts"
import { DiscoveryClient } from "./discovery/DiscoveryClient.ts"
import { type CanonicalResource, identityOf } from "./discovery/DiscoveryWire.ts"
import {
  type DeclaredInput,
  inputLine,
  readBodySchema,
  readDeclaration,
  readInputSchema
} from "./discovery/declaredInput.ts"
import { ReferenceInput, readReference, VersionHashInput } from "./discovery/getResource.ts"
import { Wrapping } from "./discovery/wrapResource.ts"
import { inexactIn, membersOf, textAt } from "./exactJson.ts"
import { inert, isWord, quoted } from "./inert.ts"
import { encodeReference, type Identity } from "./Reference.ts"
import { spelled } from "./spelled.ts"
import { findStringified, stringifiedError } from "./stringified.ts"
import { type Caller, defineTool, type InputNeeded, type Tool } from "./Tool.ts"
import { toolError, fetchError, type ToolErrorCode, retryableError, ToolError } from "./ToolError.ts"
import { Tools } from "./Tools.ts"
import { unitsOf } from "./unitsOf.ts"
import { type Upstream, Upstreams } from "./Upstream.ts"
import { Effect } from "effect"

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
  spelled,
  stringifiedError,
  type Tool,
  ToolError,
  Tools,
  unitsOf,
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
