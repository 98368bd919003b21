// A seller's declaration of a resource, read from a payment: clean, bounded and typed. A declaration describes one
// operation (an HTTP method, or the single tool of an MCP resource) and the one option that was paid. A resource is the
// sum of its declarations.
import type { Terms } from "../../../kernel/payment/Payment.ts"
import type { Dialect } from "../../../kernel/Dialect.ts"
import type { Operation, ResourceType } from "../contract.ts"

/** Why something is not listed, as the reason that a seller receives; the list is closed (rules 4, S256). */
export type PublicReason =
  | "schema_invalid"
  | "metadata_too_large"
  | "missing_resource_url"
  | "insecure_origin"
  | "local_origin"
  | "missing_tool_name"
  | "payto_conflict"
  | "catalog_unavailable"

/**
 * Extensions that a seller declares of a resource, by neutral key. They are published when the origin itself sends
 * them. Any other extension of a payment, such as `payment-identifier`, belongs to its buyer and not to the listing.
 */
const sellersExtensions: ReadonlyArray<string> = ["catalog", "offer-receipt", "sign-in-with-x"]

export const isSellersExtension = (key: string): boolean => sellersExtensions.includes(key)

export interface Identity {
  readonly type: ResourceType
  readonly resource: string
  /** Empty for HTTP. */
  readonly toolName: string
  readonly origin: string | undefined
}

/** The text about the resource as a whole; an absent member was not declared or was unusable. */
export interface Description {
  readonly description?: string
  readonly mimeType?: string
  readonly serviceName?: string
  readonly tags?: ReadonlyArray<string>
  readonly iconUrl?: string
  readonly routeTemplate?: string
}

export interface Declaration {
  readonly identity: Identity
  readonly about: Description
  readonly operation: Operation
  /**
   * The key under which the extension was sent, `catalog` or `bazaar`; responses return entries as they were declared.
   */
  readonly sentKey: string
  readonly dialect: Dialect
  /** Neutral keys of the extensions that the seller declares, sorted. */
  readonly extensions: ReadonlyArray<string>
  readonly terms: Terms
}

/** A rejected declaration. `detail` is for operators; it names places, never content. */
export interface Rejection {
  readonly _tag: "Rejected"
  readonly reason: PublicReason
  readonly detail: string
  readonly identity: Identity | undefined
}

export const isRejection = (value: Declaration | Rejection): value is Rejection => "_tag" in value
