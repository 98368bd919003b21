// The query of discovery, declared and read: structured filters in neutral names, paging, and every issue of it in one
// sentence each. A well-formed network of another ledger is valid; it just matches nothing (S107, S108, S118–S124).
// Pure.
import { Option, Schema } from "effect"
import { neutralExtension, type NeutralNetwork, readNetwork } from "../../../kernel/Dialect.ts"
import { inForm, readQuery } from "../../../kernel/http/readQuery.ts"
import { text, units, whole } from "../../../kernel/http/wireSchema.ts"
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import type { Filters } from "../contract.ts"

interface FilterQuery {
  readonly filters: Filters
  readonly issues: ReadonlyArray<string>
}

const word = /^[A-Za-z0-9._:-]{1,64}$/
const address = /^[A-Za-z0-9:._-]{1,128}$/
const natural = { pattern: /^(0|[1-9][0-9]{0,9})$/, expected: "a whole number of at least 0 is required" }

export const kind = Schema.Literals(["http", "mcp"]).annotate({ description: "Kind of resource." })

/** The parameters that filter listings, for parsing and for the OpenAPI document. */
export const filterParameters = {
  type: Schema.optionalKey(inForm(kind, { pattern: /^(http|mcp)$/, expected: "http or mcp" })),
  network: Schema.optionalKey(
    inForm(text("In either spelling."), {
      pattern: /^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/,
      expected: "a network such as ledger:testnet"
    })
  ),
  scheme: Schema.optionalKey(inForm(text("Payment scheme."), { pattern: word, expected: "a scheme such as exact" })),
  payTo: Schema.optionalKey(inForm(text("Address of a recipient."), { pattern: address, expected: "an address" })),
  asset: Schema.optionalKey(
    inForm(text("Contract address of a token."), { pattern: address, expected: "the address of a token contract" })
  ),
  maxPrice: Schema.optionalKey(
    inForm(units("In atomic units of `asset`, which it requires."), {
      pattern: /^(0|[1-9][0-9]{0,38})$/,
      expected: "a whole number of atomic units, without leading zeros, of at most 39 digits"
    })
  ),
  evidence: Schema.optionalKey(
    inForm(
      Schema.Literals(["any", "established"]).annotate({
        description: "Only listings with evidence, or with enough of it (`evidence.weight` young or established)."
      }),
      { pattern: /^(any|established)$/, expected: "any or established" }
    )
  ),
  extensions: Schema.optionalKey(
    inForm(text("Name of one declared extension."), { pattern: word, expected: "the name of one extension" })
  )
}

/** A page's parameters; `limit` describes its bounds. */
export const pagingParameters = (limit: string) => ({
  limit: Schema.optionalKey(
    inForm(Schema.Int.annotate({ description: limit, default: 20 }).check(Schema.isGreaterThanOrEqualTo(1)), natural)
  ),
  offset: Schema.optionalKey(inForm(whole("Entries to skip; prefer a cursor."), natural))
})

const filtering = Schema.Struct(filterParameters)
const paging = Schema.Struct(pagingParameters(""))

export const readFilters = (query: URLSearchParams): FilterQuery => {
  const read = readQuery(filtering, query)
  const filters: { -readonly [K in keyof Filters]: Filters[K] } = {}
  const take = (name: Parameters<typeof read.given>[0], use: (value: string) => void) => {
    const value = read.given(name)
    if (value !== undefined) use(value)
  }
  take("type", (value) => (filters.type = value as "http" | "mcp"))
  take(
    "network",
    (value) =>
      (filters.network = Option.match(readNetwork(value), {
        onNone: () => value as NeutralNetwork,
        onSome: ({ network }) => network
      }))
  )
  take("evidence", (value) => (filters.evidence = value as "any" | "established"))
  take("scheme", (value) => (filters.scheme = value))
  take("payTo", (value) => (filters.payTo = value))
  take("asset", (value) => (filters.asset = value))
  take("extensions", (value) => (filters.extension = neutralExtension(value)))
  take("maxPrice", (value) => (filters.maxPrice = BigInt(value)))
  if (filters.maxPrice !== undefined && filters.asset === undefined)
    read.refuse("maxPrice: asset is required, because maxPrice is in its atomic units")
  return { filters, issues: read.issues }
}

/** Equal for queries that mean the same. */
export const fingerprintOf = (filters: Filters, more: unknown = null): string =>
  canonicalJson([
    { ...filters, ...(filters.maxPrice === undefined ? {} : { maxPrice: filters.maxPrice.toString() }) },
    more
  ])

interface Paging {
  readonly limit: number
  readonly offset: number
  readonly issues: ReadonlyArray<string>
}

interface PagingBounds {
  readonly limitDefault: number
  readonly limitMax: number
  /** A larger limit is reduced to the maximum, or refused. */
  readonly clamp: boolean
}

export const readPaging = (query: URLSearchParams, { clamp, limitDefault, limitMax }: PagingBounds): Paging => {
  const read = readQuery(paging, query)
  const limit = Number(read.given("limit") ?? limitDefault)
  const offset = Number(read.given("offset") ?? 0)
  if (!clamp && (limit < 1 || limit > limitMax)) read.refuse(`limit: 1 to ${limitMax}`)
  return { limit: Math.min(limitMax, Math.max(1, limit)), offset, issues: read.issues }
}
