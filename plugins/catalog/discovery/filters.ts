// The query of discovery, read: structured filters in neutral names, paging, and every issue of it in one sentence
// each. A network that is well-formed but not of this ledger is no issue, it just matches nothing (S107, S108,
// S118–S124). Pure.
import { Option } from "effect"
import { neutralExtension, type NeutralNetwork, readNetwork } from "../../../kernel/Dialect.ts"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import type { Filters } from "../contract.ts"

export interface FilterQuery {
  readonly filters: Filters
  readonly issues: ReadonlyArray<string>
}

const caip2 = /^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/
const word = /^[A-Za-z0-9._:-]{1,64}$/
const address = /^[A-Za-z0-9:._-]{1,128}$/
const price = /^(0|[1-9][0-9]{0,38})$/

/** A parameter; an empty one counts as absent. */
const given = (query: URLSearchParams, name: string): string | undefined => {
  const value = query.get(name)
  return value === null || value === "" ? undefined : value
}

export const readFilters = (query: URLSearchParams): FilterQuery => {
  const problems: Array<string> = []
  const filters: { -readonly [K in keyof Filters]: Filters[K] } = {}
  const take = (name: string, pattern: RegExp, expected: string, use: (value: string) => void) => {
    const value = given(query, name)
    if (value === undefined) return
    if (pattern.test(value)) use(value)
    else problems.push(`${name}: ${expected}`)
  }
  take("type", /^(http|mcp)$/, "http or mcp", (value) => (filters.type = value as "http" | "mcp"))
  take(
    "network",
    caip2,
    "a network such as ledger:testnet",
    (value) =>
      (filters.network = Option.match(readNetwork(value), {
        onNone: () => value as NeutralNetwork,
        onSome: ({ network }) => network
      }))
  )
  take("scheme", word, "a scheme such as exact", (value) => (filters.scheme = value))
  take("payTo", address, "an address", (value) => (filters.payTo = value))
  take("asset", address, "the address of a token contract", (value) => (filters.asset = value))
  take("extensions", word, "the name of one extension", (value) => (filters.extension = neutralExtension(value)))
  take(
    "maxPrice",
    price,
    "a whole number of atomic units, without leading zeros, of at most 39 digits",
    (value) => (filters.maxPrice = BigInt(value))
  )
  if (filters.maxPrice !== undefined && filters.asset === undefined)
    problems.push("maxPrice: asset is required with it, for it is in that asset's atomic units")
  return { filters, issues: problems }
}

/** Equal for queries that mean the same. */
export const fingerprintOf = (filters: Filters, more: unknown = null): string =>
  canonicalJson([
    { ...filters, ...(filters.maxPrice === undefined ? {} : { maxPrice: filters.maxPrice.toString() }) },
    more
  ])

export interface Paging {
  readonly limit: number
  readonly offset: number
  readonly issues: ReadonlyArray<string>
}

export interface PagingBounds {
  readonly limitDefault: number
  readonly limitMax: number
  /** A larger limit is reduced to the maximum, or refused. */
  readonly clamp: boolean
}

const natural = /^(0|[1-9][0-9]{0,9})$/

export const readPaging = (query: URLSearchParams, { clamp, limitDefault, limitMax }: PagingBounds): Paging => {
  const problems: Array<string> = []
  const number = (name: string, otherwise: number): number => {
    const value = given(query, name)
    if (value === undefined) return otherwise
    if (natural.test(value)) return Number(value)
    problems.push(`${name}: a whole number of at least 0 is required`)
    return otherwise
  }
  const limit = number("limit", limitDefault)
  const offset = number("offset", 0)
  if (!clamp && (limit < 1 || limit > limitMax)) problems.push(`limit: 1 to ${limitMax}`)
  return { limit: Math.min(limitMax, Math.max(1, limit)), offset, issues: problems }
}
