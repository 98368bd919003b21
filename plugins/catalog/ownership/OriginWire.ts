// An origin's statements about itself, on the wire. `/.well-known/x402` is a JSON object: `payTo` (a recipient or a
// list of them) for the whole origin; `resources`, with objects `{ resource, toolName?, payTo?, accepts?, … }` that
// each describe one resource (a string is a URL without an owner; a tool's `unpaidCall` is read by `ToolWire.ts`);
// `delist`, a list of URLs, or of `{ resource, toolName }`, that must not be listed. `/.well-known/x402.json` lists
// resources in the shape of discovery itself, under `resources` or `items`. A live 402 is a PaymentRequired of either
// protocol version, in its header or its body. Unknown members and malformed values are ignored.
import { Option, Result } from "effect"
import { Base64 } from "effect/encoding"
import { neutralExtension, readNetwork } from "../../../kernel/Dialect.ts"
import type { Terms } from "../../../kernel/payment/Payment.ts"
import { measureJson } from "../declaration/cleanText.ts"
import { type Identity, isSellersExtension } from "../declaration/Declaration.ts"
import { isToolName, type Offer } from "../declaration/DeclarationWire.ts"
import { spellResourceUrl, urlLengthMax } from "../declaration/resourceUrl.ts"
import { type Fields, isFields } from "../fields.ts"

/** The origin's statement on one resource: its recipients, and whether it is delisted. Empty `payTos`: no statement. */
export interface OriginStatement {
  readonly payTos: ReadonlyArray<string>
  readonly delisted: boolean
}

/** An origin's offer under one method, or as one tool: its declaration, and each way to pay on this ledger. */
export interface OriginOffer {
  readonly sentKey: string
  /** The declaration in the form of the extension. */
  readonly declaration: Fields
  /** Neutral keys of the seller's extensions. */
  readonly extensions: ReadonlyArray<string>
  readonly offers: ReadonlyArray<Offer>
}

export interface NamedResource {
  readonly type: "http" | "mcp"
  readonly resource: string
  readonly toolName: string
  /** HTTP methods that the document names; may be empty. */
  readonly methods: ReadonlyArray<string>
  readonly offers: ReadonlyArray<OriginOffer>
}

/** An entry of a document that names no resource of the document's own origin; an origin can only name its own. */
export interface UnusableEntry {
  /** As the document has it: the URL, or an entry without one as JSON; cut at `entryLengthMax`. */
  readonly resource: string
  readonly toolName: string
  /**
   * `unreadable_url`: not a URL, or a URL that cannot be listed (credentials, another protocol, too long, a tool name
   * that no listing can have).
   */
  readonly reason: "other_origin" | "unreadable_url"
}

export const noOriginStatement: OriginStatement = { payTos: [], delisted: false }

const payTosMax = 16
const entriesMax = 2_000
const acceptsMax = 32
const entryLengthMax = 256

const isRecipient = (value: unknown): value is string =>
  typeof value === "string" && /^[CGM][A-Z2-7]{55,68}$/.test(value)

export const recipients = (value: unknown): ReadonlyArray<string> =>
  [...new Set((Array.isArray(value) ? value : [value]).filter(isRecipient))].slice(0, payTosMax)

const entries = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value.slice(0, entriesMax) : [])

const namedUrl = (entry: Fields): unknown => entry["resource"] ?? entry["url"]

/** The spelling of a URL or path that a document of the origin names; undefined when it can be no listing. */
const spellIn = (type: "http" | "mcp", named: string, base: string) =>
  named.length <= urlLengthMax && URL.canParse(named, base)
    ? spellResourceUrl(type, new URL(named, base).href)
    : undefined

export const unusable = (entry: unknown, toolName: string, reason: UnusableEntry["reason"]): UnusableEntry => {
  const text = typeof entry === "string" ? entry : JSON.stringify(entry)
  return { resource: text.slice(0, entryLengthMax).toWellFormed(), toolName, reason }
}

/** Whether an entry, a URL or a path of the origin itself, names the resource. */
const means = (entry: unknown, identity: Identity, base: string): boolean => {
  const fields = isFields(entry) ? entry : { resource: entry }
  const named = namedUrl(fields)
  if (typeof named !== "string") return false
  const tool = fields["toolName"]
  if (tool !== undefined && tool !== identity.toolName) return false
  if (named === identity.resource) return true
  return spellIn(identity.type, named, base)?.resource === identity.resource
}

/** The entries of a well-known document for one resource. */
export const entriesFor = (document: unknown, identity: Identity, base: string): ReadonlyArray<Fields> =>
  isFields(document)
    ? entries(document["resources"]).filter((entry): entry is Fields => isFields(entry) && means(entry, identity, base))
    : []

/** Reads a well-known document for one resource. */
export const readWellKnown = (document: unknown, identity: Identity, base: string): OriginStatement => {
  if (!isFields(document)) return noOriginStatement
  const named = entriesFor(document, identity, base).flatMap((entry) => recipients(entry["payTo"]))
  return {
    payTos: (named.length > 0 ? [...new Set(named)] : recipients(document["payTo"])).slice(0, payTosMax),
    delisted: entries(document["delist"]).some((entry) => means(entry, identity, base))
  }
}

/** Levels of nesting of a document that is read: an OpenAPI document needs some forty. */
const depthMax = 128

/** A deeper value would overflow the stack of the first function that walks it, such as JSON.stringify. */
const parse = (text: string): unknown => {
  try {
    const value: unknown = JSON.parse(text)
    return measureJson(value, depthMax, Infinity).tooDeep ? undefined : value
  } catch {
    return undefined
  }
}

export const readJson = (bytes: Uint8Array): unknown => parse(new TextDecoder().decode(bytes))

const canonicalAmount = /^(0|[1-9][0-9]{0,38})$/

/** One element of `accepts`, of either protocol version; undefined when it is not of this ledger or not usable. */
const readOffer = (accept: unknown, resource: Fields): Offer | undefined => {
  if (!isFields(accept) || typeof accept["network"] !== "string") return undefined
  const network = readNetwork(accept["network"])
  const amount = accept["amount"] ?? accept["maxAmountRequired"]
  const { asset, extra, maxTimeoutSeconds, payTo, scheme } = accept
  if (Option.isNone(network) || !isRecipient(payTo)) return undefined
  if (typeof scheme !== "string" || !/^[a-z0-9-]{1,32}$/.test(scheme)) return undefined
  if (typeof asset !== "string" || !/^[A-Z0-9]{1,64}$/.test(asset)) return undefined
  if (typeof amount !== "string" || !canonicalAmount.test(amount)) return undefined
  const terms: Terms = {
    scheme,
    network: network.value.network,
    asset,
    amount: Option.some(BigInt(amount)),
    amountText: amount,
    payTo,
    maxTimeoutSeconds: Number.isSafeInteger(maxTimeoutSeconds) ? (maxTimeoutSeconds as number) : 60,
    extra: isFields(extra) ? extra : {}
  }
  return { dialect: network.value.dialect, resource, terms }
}

/** The elements of `accepts` that are of this ledger and usable. */
export const readOffers = (accepts: unknown, resource: Fields): ReadonlyArray<Offer> =>
  entries(accepts)
    .slice(0, acceptsMax)
    .flatMap((accept) => readOffer(accept, resource) ?? [])

/** The declaration among a body's extensions; of the first protocol version, its members on input and output. */
export const declarationOf = (
  extensions: unknown,
  accepts: unknown
): { readonly sentKey: string; readonly value: Fields } => {
  const known = isFields(extensions) ? extensions : {}
  const sentKey = ["catalog", "bazaar"].find((key) => isFields(known[key])) ?? "catalog"
  const value = known[sentKey]
  if (isFields(value)) return { sentKey, value }
  const [first] = entries(accepts)
  const output = isFields(first) && isFields(first["outputSchema"]) ? first["outputSchema"] : {}
  return { sentKey, value: isFields(output["input"]) ? { info: output } : {} }
}

const bodyMethods = ["POST", "PUT", "PATCH"]

/** The declaration as one of this HTTP method; members of another method are ignored. */
const ofMethod = (value: Fields, method: string): Fields => {
  const { routeTemplate: _, ...rest } = value
  const info = isFields(rest["info"]) ? rest["info"] : {}
  const input = isFields(info["input"]) ? info["input"] : {}
  const isSame = (input["method"] ?? method) === method && (input["type"] ?? "http") === "http"
  const { discoverable: _discoverable, ...reported } = isSame ? input : ({} as Fields)
  // A document need not describe a body.
  const sent = bodyMethods.includes(method) ? { bodyType: "json", body: {}, ...reported } : reported
  return { ...(isSame ? rest : {}), info: { ...(isSame ? info : {}), input: { ...sent, type: "http", method } } }
}

/** Neutral keys of the seller's extensions. */
export const extensionsOf = (extensions: unknown): ReadonlyArray<string> => {
  const reported = Object.keys(isFields(extensions) ? extensions : {}).map(neutralExtension)
  return [...new Set(["catalog", ...reported.filter(isSellersExtension)])].sort()
}

export interface Live402 {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** The PaymentRequired of a live 402; undefined if the response is not one. */
const requiredOf = ({ body, headers, status }: Live402): Fields | undefined => {
  if (status !== 402) return undefined
  const header = headers["payment-required"]
  const fromHeader =
    header === undefined ? undefined : parse(Option.getOrElse(Result.getSuccess(Base64.decodeString(header)), () => ""))
  const required = isFields(fromHeader) ? fromHeader : readJson(body)
  return isFields(required) ? required : undefined
}

/** Recipients that a live 402 asks to be paid, on this ledger. */
export const readLive402 = (answer: Live402): OriginStatement => {
  const required = requiredOf(answer)
  if (required === undefined) return noOriginStatement
  const payTos = entries(required["accepts"]).flatMap((option) =>
    isFields(option) && typeof option["network"] === "string" && Option.isSome(readNetwork(option["network"]))
      ? recipients(option["payTo"])
      : []
  )
  return { payTos: [...new Set(payTos)].slice(0, payTosMax), delisted: false }
}

/** A live 402's offer of the requested resource, by this method. */
export const readLiveOffer = (answer: Live402, url: string, method: string): OriginOffer | undefined => {
  const required = requiredOf(answer)
  if (required === undefined) return undefined
  const [first] = entries(required["accepts"])
  const reported = isFields(required["resource"]) ? required["resource"] : isFields(first) ? first : {}
  const { description, iconUrl, mimeType, serviceName, tags } = reported
  const offers = readOffers(required["accepts"], { url, description, iconUrl, mimeType, serviceName, tags })
  if (offers.length === 0) return undefined
  const { sentKey, value } = declarationOf(required["extensions"], required["accepts"])
  return {
    sentKey,
    declaration: ofMethod(value, method),
    extensions: extensionsOf(required["extensions"]),
    offers
  }
}

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]

const inputOf = ({ info }: Fields): Fields => (isFields(info) && isFields(info["input"]) ? info["input"] : {})

/** The methods that an entry names: of its operations, or its own, or its declaration's. */
const methodsOf = (entry: Fields): ReadonlyArray<string> => {
  const operations = entries(entry["operations"]).filter(isFields)
  const own = entry["method"] ?? inputOf(declarationOf(entry["extensions"], []).value)["method"]
  const named = operations.length > 0 ? operations.map(({ method }) => method) : [own]
  return methods.filter((method) => named.includes(method))
}

/** The operations of an entry: one for each offer, or the single operation of its declaration. */
const offersOfEntry = (entry: Fields, url: string, type: "http" | "mcp"): ReadonlyArray<OriginOffer> => {
  const { sentKey, value } = declarationOf(entry["extensions"], [])
  const extensions = extensionsOf(entry["extensions"])
  const input = inputOf(value)
  const reported = { ...entry, url }
  if (type === "mcp") {
    const offers = readOffers(entry["accepts"], reported)
    return isFields(input["inputSchema"]) ? [{ sentKey, declaration: value, extensions, offers }] : []
  }
  const operations = entries(entry["operations"]).filter(isFields)
  const own = operations.length > 0 ? operations : [{ method: entry["method"] ?? input["method"] ?? "GET" }]
  // One of each method: thousands would each offer all of the entry's options.
  const distinct = new Map(own.toReversed().map((operation: Fields) => [operation["method"], operation]))
  return [...distinct.values()].reverse().flatMap((operation) => {
    const { accepts, info, method } = operation
    if (typeof method !== "string" || !methods.includes(method)) return []
    const declared = isFields(info) ? { ...value, info } : value
    const offers = readOffers(accepts ?? entry["accepts"], reported)
    return [{ sentKey, declaration: ofMethod(declared, method), extensions, offers }]
  })
}

/** Reads one entry of a document; a string is only a URL. */
const readNamed = (given: unknown, base: string): NamedResource | UnusableEntry => {
  const entry = typeof given === "string" ? { resource: given } : given
  if (!isFields(entry)) return unusable(given, "", "unreadable_url")
  const named = namedUrl(entry)
  const toolName = typeof entry["toolName"] === "string" ? entry["toolName"] : ""
  if (toolName !== "" && !isToolName(toolName)) return unusable(named ?? entry, "", "unreadable_url")
  const type = entry["type"] === "mcp" || toolName !== "" ? "mcp" : "http"
  if (typeof named !== "string") return unusable(entry, toolName, "unreadable_url")
  const spelled = spellIn(type, named, base)
  if (spelled === undefined) return unusable(named, toolName, "unreadable_url")
  if (spelled.origin !== base) return unusable(named, toolName, "other_origin")
  const offers = offersOfEntry(entry, spelled.resource, type).filter((offer) => offer.offers.length > 0)
  return { type, resource: spelled.resource, toolName, methods: methodsOf(entry), offers }
}

/** Reads the resource that a document's entry names; empty for resources of other origins. */
export const readEntry = (entry: unknown, base: string): ReadonlyArray<NamedResource> => {
  const read = readNamed(entry, base)
  return "reason" in read ? [] : [read]
}

/** The entry itself, when it names no resource of the origin. */
export const readUnusableEntry = (entry: unknown, base: string): ReadonlyArray<UnusableEntry> => {
  const read = readNamed(entry, base)
  return "reason" in read ? [read] : []
}

const manifestEntries = (document: unknown): ReadonlyArray<unknown> =>
  isFields(document) ? entries(document["resources"] ?? document["items"]) : []

/** The resources that a manifest of either kind names, in its order. */
export const readManifest = (document: unknown, base: string): ReadonlyArray<NamedResource> =>
  manifestEntries(document).flatMap((entry) => readEntry(entry, base))

/** The entries of a manifest that name no resource of its origin, in its order. */
export const readUnusable = (document: unknown, base: string): ReadonlyArray<UnusableEntry> =>
  manifestEntries(document).flatMap((entry) => readUnusableEntry(entry, base))

/** The URLs of an origin's own that a document names, listed or delisted. */
export const readNames = (document: unknown, base: string): ReadonlyArray<string> => {
  if (!isFields(document)) return []
  const named = [...manifestEntries(document), ...entries(document["delist"])]
  return named.flatMap((entry) => {
    const url = isFields(entry) ? namedUrl(entry) : entry
    const spelled = typeof url === "string" ? spellIn("http", url, base) : undefined
    return spelled?.origin === base ? [spelled.resource] : []
  })
}
