// What every purchase begins with, whatever kind of resource it is: how an agent narrows the terms, the catalog's
// current version, the refusal of a seller that asks for something else, and the answer when the same call is held by
// an earlier payment.
import { Effect, Schema } from "effect"
import { DiscoveryClient, fault, type Identity, type ToolFault, Wrapping } from "../../mcp-tools/contract.ts"
import type { Reservation } from "../budget/Reservation.ts"
import type { Compared } from "../seller/compareTerms.ts"
import type { Invocation } from "./Invocation.ts"
import type { AskedTerms } from "./chooseTerms.ts"

/** Which of a resource's terms an agent pays, and how much at most. */
export const TermsInput = {
  network: Schema.optionalKey(
    Schema.String.annotate({ description: "Network to pay on; absent: the one that is enabled." })
  ),
  scheme: Schema.optionalKey(Schema.String.annotate({ description: "Payment scheme; only exact is paid." })),
  asset: Schema.optionalKey(Schema.String.annotate({ description: "Contract address of the token to pay with." })),
  maxAtomicAmount: Schema.optionalKey(
    Schema.String.check(Schema.isPattern(/^(0|[1-9][0-9]{0,38})$/)).annotate({
      description: "The most this call may cost, in atomic units of the asset, as a decimal string."
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

const originOf = (url: string): string | undefined =>
  /^https?:/i.test(url) && URL.canParse(url) ? new URL(url).origin : undefined

/** The resource as it is listed now, when that is the version that the agent has read. */
export const currentResource = Effect.fnUntraced(function* (identity: Identity, expectedVersionHash?: string) {
  const resource = yield* (yield* DiscoveryClient).resolve(identity)
  const { wrapper } = (yield* Wrapping).wrap(resource, { expectedVersionHash })
  if (wrapper.status !== "active") {
    return yield* fault(
      "RESOURCE_STALE",
      "the catalog's version is not the one expected, or the seller has not been seen for a while",
      { versionHash: wrapper.versionHash }
    )
  }
  const about: Invocation["about"] = {
    kind: identity.type,
    origin: originOf(identity.url),
    grade: resource["ownership"] === "proven" ? "proven" : "provisional"
  }
  return { resource, versionHash: wrapper.versionHash, about }
})

/** The terms to pay by, when the seller asks for what the catalog says. */
export const agreedOption = (compared: Compared) =>
  compared._tag === "Differs"
    ? fault("RESOURCE_CHANGED", "the seller asks for something else than the catalog says", {
        members: compared.members
      })
    : Effect.succeed(compared.option)

/** The same call is held by an earlier payment. */
export const heldFault = ({ id, state, transaction }: Reservation): ToolFault =>
  fault(
    "SETTLEMENT_UNKNOWN",
    "a payment for this very call is signed and its outcome open; nothing more is paid until it is known",
    { paymentIdentifier: id, state, ...(transaction === undefined ? {} : { transaction }) }
  )
