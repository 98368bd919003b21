// Compares a seller's terms with the catalog's before anything is reserved or signed (S210): URL, tool, transport,
// input schema, network, scheme, asset, recipient, amount, timeout and extension data. A schema's descriptive text
// (titles, descriptions, examples) is not compared: it is not binding and the catalog sanitizes it. Pure.
import { canonicalJson } from "../../../kernel/payment/wire/canonicalJson.ts"
import { neutralExtension } from "../../../kernel/Dialect.ts"
import { type DeclaredInput, isWord, readDeclaration } from "../../mcp-tools/contract.ts"
import { type Challenge, type Fields, isFields, type ListedTool, type PaymentOption } from "./SellerWire.ts"

const prose = new Set(["$schema", "$id", "title", "description", "examples", "example", "default", "$comment"])

/** A schema without its descriptive members. Property names are always kept. */
const bindingPart = (schema: unknown, isNames = false): unknown => {
  if (Array.isArray(schema)) return schema.map((item) => bindingPart(item))
  if (typeof schema !== "object" || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key]) => isNames || !prose.has(key))
      .map(([key, value]) => [
        key,
        bindingPart(value, !isNames && (key === "properties" || key === "$defs" || key === "definitions"))
      ])
  )
}

const sameSchema = (a: unknown, b: unknown): boolean =>
  canonicalJson(bindingPart(a ?? {})) === canonicalJson(bindingPart(b ?? {}))

/** A URL reduced to the parts that identify a resource. */
const bareUrl = (text: string): string => {
  if (!/^https?:/i.test(text) || !URL.canParse(text)) return text.replace(/^mcp:/i, "mcp:").split(/[?#]/, 1)[0]!
  const url = new URL(text)
  return `${url.protocol}//${url.host.replace(/\.(?=:|$)/, "")}${url.pathname}`
}

export interface CatalogTerms {
  readonly url: string
  readonly toolName: string
  readonly declared: DeclaredInput | undefined
  readonly option: PaymentOption
}

export type TermsComparison =
  | { readonly _tag: "Same"; readonly option: PaymentOption }
  /** `members`: names of the differing members. */
  | { readonly _tag: "Differs"; readonly members: ReadonlyArray<string> }

const optionMembers = [
  "scheme",
  "network",
  "asset",
  "payTo",
  "amount",
  "maxTimeoutSeconds",
  "feesSponsored",
  "extra"
] as const

const differing = (a: PaymentOption, b: PaymentOption): ReadonlyArray<string> =>
  optionMembers.filter((member) => a[member] !== b[member])

interface OfferMatch {
  readonly fitting: PaymentOption | undefined
  readonly members: ReadonlyArray<string>
}

/** Returns the offer that matches the catalog listing exactly, or the names of the members that differ. */
const compareOffers = (option: PaymentOption, challenge: Challenge): OfferMatch => {
  const offers = challenge.options.filter(
    ({ asset, network, scheme }) => scheme === option.scheme && network === option.network && asset === option.asset
  )
  const fitting = offers.find((offer) => differing(offer, option).length === 0)
  const demanded = unknownDemands(challenge.extensions)
  if (fitting === undefined)
    return { fitting, members: offers[0] === undefined ? ["accepts"] : differing(offers[0], option) }
  // With two offers of the same kind, it would be ambiguous which one is paid.
  return { fitting, members: [...(offers.length > 1 ? ["accepts"] : []), ...demanded] }
}

/** Required extensions of the seller that this program does not implement: it could not meet their requirements. */
const unknownDemands = (extensions: Fields): ReadonlyArray<string> =>
  Object.entries(extensions).flatMap(([key, value]) => {
    const info = isFields(value) ? value["info"] : undefined
    const isRequired = isFields(info) && info["required"] === true
    return isRequired && key !== "payment-identifier" && neutralExtension(key) !== "catalog"
      ? [isWord(key) ? `extensions.${key}` : "extensions"]
      : []
  })

const verified = (members: ReadonlyArray<string>, fitting: PaymentOption | undefined): TermsComparison =>
  members.length === 0 && fitting !== undefined
    ? { _tag: "Same", option: fitting }
    : { _tag: "Differs", members: [...new Set(members)] }

/** For an HTTP resource. `urls`: the catalog's URLs for it and the requested one. */
export const compareHttpTerms = (
  urls: ReadonlyArray<string>,
  option: PaymentOption,
  challenge: Challenge
): TermsComparison => {
  const { fitting, members } = compareOffers(option, challenge)
  const isOurs = urls.some((url) => bareUrl(url) === bareUrl(challenge.resourceUrl))
  return verified([...(isOurs ? [] : ["resource.url"]), ...members], fitting)
}

/** `listed`: the tool in the server's own list; undefined if it is missing there. */
export const compareTerms = (
  catalog: CatalogTerms,
  challenge: Challenge,
  listed: ListedTool | undefined
): TermsComparison => {
  const members: Array<string> = []
  if (bareUrl(challenge.resourceUrl) !== bareUrl(catalog.url)) members.push("resource.url")
  const live = readDeclaration(challenge.extensions)
  if (live !== undefined) {
    if (live.toolName !== catalog.toolName) members.push("toolName")
    if (live.transport !== (catalog.declared?.transport ?? "streamable-http")) members.push("transport")
    if (!sameSchema(live.inputSchema, catalog.declared?.inputSchema)) members.push("inputSchema")
  }
  if (listed === undefined) members.push("toolName")
  // The challenge's own declaration takes precedence over the server's list.
  else if (live === undefined && !sameSchema(listed.inputSchema, catalog.declared?.inputSchema))
    members.push("inputSchema")

  const offered = compareOffers(catalog.option, challenge)
  return verified([...members, ...offered.members], offered.fitting)
}
