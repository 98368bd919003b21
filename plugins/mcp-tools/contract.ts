// Interface for plugins that add tools: the registry, the facilitator's discovery, the only way to send requests to
// sellers, the server's settings, and the types of tools and their errors.
import { contract } from "../../kernel/contract/Contract.ts"
import { AdmissionControl } from "./server/AdmissionControl.ts"
import { canonicalOrigin, hostOf } from "./canonicalOrigin.ts"
import { Config } from "./Config.ts"
import { DiscoveryClient } from "./discovery/DiscoveryClient.ts"
import type { CanonicalResource } from "./discovery/DiscoveryWire.ts"
import { ReferenceInput, readReference, VersionHashInput } from "./discovery/getResource.ts"
import { Wrapping } from "./discovery/wrapResource.ts"
import { inexactIn, membersOf, textAt } from "./exactJson.ts"
import { inert, isWord, quoted } from "./inert.ts"
import { listedIdentity } from "./discovery/listedIdentity.ts"
import { encodeReference, type Identity } from "./Reference.ts"
import { spelled } from "./spelled.ts"
import { findStringified, stringifiedError } from "./stringified.ts"
import { type Caller, defineTool, type InputNeeded, type Tool } from "./Tool.ts"
import { toolError, fetchError, type ToolErrorCode, retryableError, ToolError } from "./ToolError.ts"
import { Tools } from "./Tools.ts"
import { unitsOf } from "./unitsOf.ts"
import { type Upstream, Upstreams } from "./Upstream.ts"

export {
  AdmissionControl as Admission,
  type CanonicalResource,
  type Caller,
  canonicalOrigin,
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
  membersOf,
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
