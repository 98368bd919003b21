// The identity of a resolved listing in its canonical spelling, for tools that act on it. If the listing's address is
// spelled differently from the dialed and verified address, it is refused. Otherwise the agent and the operator's rules
// would decide about an address that differs from the dialed one.
import { Effect } from "effect"
import { isCanonicalUrl } from "../canonicalOrigin.ts"
import type { Identity } from "../Reference.ts"
import { toolError, type ToolError } from "../ToolError.ts"
import { type CanonicalResource, identityOf } from "./DiscoveryWire.ts"

export const listedIdentity = (resource: CanonicalResource): Effect.Effect<Identity, ToolError> => {
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
