// A search result as one line: its purpose, its price in the asset's units, its grade, its evidence, the tool that pays
// for it with its inputs, and its reference, so that an agent can choose and pay without reading the declaration. The
// seller's text is inert and shortened; `x402_get_resource` has the rest. Pure.
import { inert, quoted } from "../inert.ts"
import { unitsOf } from "../contract.ts"
import { inputLine } from "./declaredInput.ts"
import { type CanonicalResource, stateOf } from "./DiscoveryWire.ts"
import type { WrappedResource } from "./wrapResource.ts"

interface AssetName {
  readonly symbol: string
  readonly decimals: number
}

const wordsMax = 140
const whereMax = 80
const pricesMax = 2

const textIn = (value: unknown): string => (typeof value === "string" ? value : "")

const whatItDoes = ({ description, serviceName, toolName }: CanonicalResource): string =>
  [...new Set([textIn(serviceName), textIn(toolName), textIn(description)])].filter((text) => text !== "").join(": ")

const priceOf = (option: unknown, assets: ReadonlyMap<string, AssetName>): ReadonlyArray<string> => {
  const { amount, asset, scheme } = Object(option) as Readonly<Record<string, unknown>>
  if (typeof amount !== "string" || !/^\d{1,39}$/.test(amount) || typeof asset !== "string") return []
  const known = assets.get(asset)
  const price =
    known === undefined
      ? `${amount} atomic units of ${inert(asset, 60)}`
      : `${unitsOf(BigInt(amount), known.decimals)} ${known.symbol}`
  return [scheme === "exact" ? price : `${inert(textIn(scheme), 20)} ${price}`]
}

const evidenceOf = (resource: CanonicalResource): string => {
  const { isPaidFor } = stateOf(resource)
  const { lastSettledAt, payers, settlements } = resource
  const [lastDay] = /^\d{4}-\d\d-\d\d(?=T)/.exec(textIn(lastSettledAt)) ?? []
  if (typeof settlements === "number" && settlements > 0)
    return (
      `${settlements} settled${typeof payers === "number" ? ` by ${payers} payers` : ""} in 30 days` +
      (lastDay === undefined ? "" : `, last ${lastDay}`)
    )
  return isPaidFor ? "payment observed" : "no payment observed"
}

export const lineOf = ({ resource, wrapper }: WrappedResource, assets: ReadonlyMap<string, AssetName>): string => {
  const { isProven } = stateOf(resource)
  const accepts = Array.isArray(resource["accepts"]) ? resource["accepts"] : []
  const prices = accepts.flatMap((option) => priceOf(option, assets))
  return [
    quoted(whatItDoes(resource), wordsMax),
    `${textIn(resource["type"])} ${inert(textIn(resource["resource"]), whereMax)}`,
    prices.slice(0, pricesMax).join(" or ") || "no price",
    `owner ${isProven ? "proven" : "unproven"}${wrapper.status === "stale" ? ", stale" : ""}`,
    evidenceOf(resource),
    inputLine(resource),
    `ref ${wrapper.ref}`
  ].join(" | ")
}
