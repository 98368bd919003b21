// Decodes the answers of the facilitator's public discovery, as far as the tools need them; the rest of a resource is
// passed on unchanged. The version hash is computed here from the published rule and not taken from the answer: the
// sha256, in lower-case hex, of the resource's canonical JSON without its volatile members (S194).
import { Schema } from "effect"
import { Hex } from "effect/encoding"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import type { Crypto } from "../../../kernel/platform/Crypto.ts"
import { lastingOf } from "../../catalog/contract.ts"
import type { Identity } from "../Reference.ts"

/** A resource as the facilitator served it. */
export type CanonicalResource = Readonly<Record<string, unknown>>

const Resource = Schema.Record(Schema.String, Schema.Unknown)
const Pagination = Schema.Struct({
  limit: Schema.optionalKey(Schema.Int),
  cursor: Schema.optionalKey(Schema.NullOr(Schema.String))
})

/** Such a word may appear in our own text. */
const plainWord = Schema.String.check(Schema.isPattern(/^[\p{L}\p{N}\p{M}]{1,40}$/u))

const Page = Schema.Struct({
  x402Version: Schema.Int,
  resources: Schema.optionalKey(Schema.Array(Resource)),
  items: Schema.optionalKey(Schema.Array(Resource)),
  partialResults: Schema.optionalKey(Schema.Boolean),
  nearestOnly: Schema.optionalKey(Schema.Boolean),
  corrected: Schema.optionalKey(Schema.Array(Schema.Struct({ word: plainWord, instead: plainWord }))),
  pagination: Pagination
})

export interface DiscoveryPage {
  readonly resources: ReadonlyArray<CanonicalResource>
  readonly partialResults: boolean
  /** No resource clearly answers the query; these are the nearest. */
  readonly nearestOnly: boolean
  /** Mistyped words of the query, and the words that were searched for instead. */
  readonly corrected: ReadonlyArray<{ readonly word: string; readonly instead: string }>
  readonly limit: number
  readonly cursor: string | null
}

const decodePage = Schema.decodeUnknownOption(Page)

/** Decodes an answer of browse or search; undefined if it is neither. */
export const readPage = (answer: unknown, limitAsked: number): DiscoveryPage | undefined => {
  const decoded = decodePage(answer)
  if (decoded._tag === "None" || decoded.value.x402Version !== 2) return undefined
  const { corrected = [], items, nearestOnly, pagination, partialResults, resources } = decoded.value
  const listed = resources ?? items
  if (listed === undefined || !listed.every((resource) => identityOf(resource) !== undefined)) return undefined
  return {
    resources: listed,
    partialResults: partialResults ?? false,
    nearestOnly: nearestOnly ?? false,
    corrected,
    limit: pagination.limit ?? limitAsked,
    cursor: pagination.cursor ?? null
  }
}

const decodeOne = Schema.decodeUnknownOption(Schema.Struct({ x402Version: Schema.Int, resource: Resource }))

export const readResource = (answer: unknown): CanonicalResource | undefined => {
  const decoded = decodeOne(answer)
  if (decoded._tag === "None" || decoded.value.x402Version !== 2) return undefined
  return identityOf(decoded.value.resource) === undefined ? undefined : decoded.value.resource
}

/** The text of a discovery error body: short, and of a fixed shape. */
export const readErrorBody = (answer: unknown): { readonly error: string; readonly details: ReadonlyArray<string> } => {
  const body = typeof answer === "object" && answer !== null ? (answer as Readonly<Record<string, unknown>>) : {}
  const { details, error } = body
  return {
    error: typeof error === "string" && /^[a-z_]{1,64}$/.test(error) ? error : "unknown",
    details: Array.isArray(details)
      ? details
          .filter((detail) => typeof detail === "string")
          .slice(0, 10)
          .map((detail) => detail.slice(0, 200))
      : []
  }
}

/** The identity of a served resource; undefined if it is missing. */
export const identityOf = (resource: CanonicalResource): Identity | undefined => {
  const { resource: url, toolName, type } = resource
  if (typeof url !== "string" || url === "") return undefined
  if (type === "http") return { type, url, toolName: "" }
  return type === "mcp" && typeof toolName === "string" && toolName !== "" ? { type, url, toolName } : undefined
}

/** The catalog's own statements about a resource, separate from its declaration. */
export const stateOf = ({ ownership, status, verification }: CanonicalResource) => ({
  isStale: status === "stale",
  isProven: ownership === "proven",
  isPaidFor: verification === "payment_observed"
})

export const versionHashOf = (crypto: Crypto["Service"], resource: CanonicalResource): string =>
  Hex.encode(crypto.sha256(new TextEncoder().encode(canonicalJson(lastingOf(resource)))))
