// An origin's OpenAPI document on the wire, by the explorer's convention: a paid operation has `x-payment-info`, with
// `price` (`{ mode: "fixed", currency, amount }`; in the older form a plain amount next to `pricingMode`) and
// `protocols`, each a name or `{ x402: { scheme, network, asset, payTo, amount } }`. Terms are read from `accepts` or
// from `protocols`. Otherwise they follow from a fixed price in a currency that an asset of this ledger represents, and
// from the single recipient that the origin's own document names. A price range is not accepted as a price. Malformed
// values are ignored. Operations with parameters in their path cannot be requested directly, and documents of other
// servers do not describe the origin.
import { type Fields, isFields } from "../fields.ts"
import { atomicAmount, isPaidIn, type PricedAsset } from "../pricing.ts"
import { type NamedResource, readEntry, readUnusableEntry, unusable, type UnusableEntry } from "./OriginWire.ts"

interface Pricing {
  readonly assets: ReadonlyArray<PricedAsset>
  /** Recipients that the origin names for all of it. */
  readonly payTos: ReadonlyArray<string>
}

const operationsMax = 2_000
/** Characters of a server's URL, which each operation's URL begins with. */
const serverLengthMax = 512
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
interface Price {
  readonly currency: string
  readonly amount: string
}

/** The fixed price of an operation, in this form of the convention or the previous one. */
const priceOf = (payment: Fields): Price | undefined => {
  const { price, pricingMode } = payment
  const reported = isFields(price) ? price : { mode: pricingMode, amount: price, currency: payment["currency"] }
  const { amount, currency = "USD", mode = "fixed" } = reported as Fields
  const text = typeof amount === "number" ? String(amount) : amount
  return mode === "fixed" && typeof text === "string" && typeof currency === "string"
    ? { amount: text, currency: currency.toUpperCase() }
    : undefined
}

/** One element of `accepts` for each asset of the price's currency. */
const acceptsOf = (price: Price, payTo: string, assets: ReadonlyArray<PricedAsset>): ReadonlyArray<Fields> =>
  assets.flatMap(({ contract, decimals, network, symbol }) => {
    const amount = atomicAmount(price.amount, decimals)
    const isOfCurrency = isPaidIn(price.currency, symbol)
    return isOfCurrency && amount !== undefined ? [{ scheme: "exact", network, asset: contract, amount, payTo }] : []
  })

/**
 * The terms of an operation: as declared, or as they follow from its price. For operations that can be requested
 * without effect, the live 402 has the price.
 */
const termsOf = (method: string, payment: Fields, { assets, payTos }: Pricing): ReadonlyArray<unknown> => {
  const { accepts, payTo, protocols } = payment
  if (Array.isArray(accepts)) return accepts
  const reported = (Array.isArray(protocols) ? protocols : []).flatMap((one) =>
    isFields(one) && isFields(one["x402"]) && Object.keys(one["x402"]).length > 0 ? [one["x402"]] : []
  )
  if (reported.length > 0 || method === "GET" || method === "HEAD") return reported
  const price = priceOf(payment)
  const recipient = typeof payTo === "string" ? payTo : payTos.length === 1 ? payTos[0] : undefined
  return price === undefined || recipient === undefined ? [] : acceptsOf(price, recipient, assets)
}

const bodyTypes = [
  [/^application\/(.*\+)?json/, "json"],
  [/^(multipart\/form-data|application\/x-www-form-urlencoded)/, "form-data"],
  [/^text\//, "text"]
] as const

/** The input of a method with a body, by the operation's own description; undefined for one without. */
const inputOf = (method: string, { requestBody }: Fields): Fields | undefined => {
  if (!["POST", "PUT", "PATCH"].includes(method)) return undefined
  const content = isFields(requestBody) && isFields(requestBody["content"]) ? requestBody["content"] : {}
  const known = Object.entries(content).flatMap(([type, media]) => {
    const [, bodyType] = bodyTypes.find(([pattern]) => pattern.test(type)) ?? []
    return bodyType === undefined || !isFields(media) ? [] : [{ bodyType, media }]
  })
  const [first = { bodyType: "json", media: {} as Fields }] = known
  const { example, schema } = first.media
  const body = example ?? (isFields(schema) ? schema["example"] : undefined) ?? (first.bodyType === "text" ? "" : {})
  return { type: "http", method, bodyType: first.bodyType, body }
}

/**
 * Prefix of the document's paths: a path, or a URL if its server is another origin's; undefined means none. A long one
 * would be copied and parsed for each of thousands of operations.
 */
const prefixOf = (servers: unknown, base: string): string | undefined => {
  const [first] = Array.isArray(servers) ? servers : []
  if (!isFields(first) || typeof first["url"] !== "string") return ""
  const { url } = first
  if (url.length > serverLengthMax || !URL.canParse(url, base)) return undefined
  const { origin, pathname } = new URL(url, base)
  return `${origin === base ? "" : origin}${pathname.replace(/\/$/, "")}`
}

interface PaidOperation {
  readonly path: string
  readonly method: string
  readonly operation: Fields
  readonly payment: Fields
}

/** The paid operations of a document that can be requested without filling in parameters. */
const paidOperations = (document: Fields): ReadonlyArray<PaidOperation> => {
  const paths = isFields(document["paths"]) ? document["paths"] : {}
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(isFields(item) ? item : {}).map(([key, operation]) => ({ path, key, operation }))
  )
  return operations.slice(0, operationsMax).flatMap(({ key, operation, path }) => {
    const payment = isFields(operation) ? operation["x-payment-info"] : undefined
    const method = key.toUpperCase()
    if (!isFields(operation) || !isFields(payment) || !methods.includes(method)) return []
    return path.startsWith("/") && !path.includes("{") ? [{ path, method, operation, payment }] : []
  })
}

/** The resources of the paid operations of an OpenAPI document; resources of other origins are skipped. */
export const readOpenApi = (document: unknown, base: string, pricing: Pricing): ReadonlyArray<NamedResource> => {
  const prefix = isFields(document) ? prefixOf(document["servers"], base) : undefined
  if (!isFields(document) || prefix === undefined) return []
  return paidOperations(document).flatMap(({ method, operation, path, payment }) => {
    const description = operation["description"] ?? operation["summary"]
    const accepts = termsOf(method, payment, pricing)
    const input = isFields(payment["extensions"]) ? undefined : inputOf(method, operation)
    const operations = input === undefined ? {} : { operations: [{ method, accepts, info: { input } }] }
    return readEntry({ description, ...payment, accepts, resource: prefix + path, method, ...operations }, base)
  })
}

/** The paid operations that name no resource of the origin, such as those of a document of another server. */
export const readUnusableOperations = (document: unknown, base: string): ReadonlyArray<UnusableEntry> => {
  if (!isFields(document)) return []
  const prefix = prefixOf(document["servers"], base)
  return paidOperations(document).flatMap(({ path }) =>
    prefix === undefined ? [unusable(path, "", "unreadable_url")] : readUnusableEntry(prefix + path, base)
  )
}
