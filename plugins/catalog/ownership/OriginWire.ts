// What an origin says of itself, on the wire. `/.well-known/x402` is a JSON object: `payTo` (a recipient or a list of
// them) for the whole origin; `resources`, whose objects `{ resource, toolName?, payTo? }` speak of one resource each
// (a string is a URL without a word about its owner); `delist`, a list of URLs, or of `{ resource, toolName }`, that
// are not to be listed. A live 402 is a PaymentRequired, in its header or its body. Unknown members are ignored; what
// is malformed says nothing.
import { Option, Predicate, Result } from "effect"
import { Base64 } from "effect/encoding"
import { readNetwork } from "../../../kernel/Dialect.ts"
import type { Identity } from "../declaration/Declaration.ts"
import { spellResourceUrl } from "../declaration/resourceUrl.ts"

/** The origin's word about one resource: whom it names, and whether it wants it listed. Empty `payTos`: silence. */
export interface OriginWord {
  readonly payTos: ReadonlyArray<string>
  readonly delisted: boolean
}

const silence: OriginWord = { payTos: [], delisted: false }

const payTosMax = 16
const entriesMax = 2_000

const isFields = (value: unknown): value is Readonly<Record<string, unknown>> =>
  Predicate.isObject(value) && !Array.isArray(value)

const recipients = (value: unknown): ReadonlyArray<string> =>
  [
    ...new Set(
      (Array.isArray(value) ? value : [value]).filter(
        (one): one is string => typeof one === "string" && /^[CGM][A-Z2-7]{55,68}$/.test(one)
      )
    )
  ].slice(0, payTosMax)

const entries = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value.slice(0, entriesMax) : [])

/** Whether an entry, a URL or a path of the origin itself, means the resource. */
const means = (entry: unknown, identity: Identity, base: string): boolean => {
  const fields = isFields(entry) ? entry : { resource: entry }
  const named = fields["resource"] ?? fields["url"]
  if (typeof named !== "string") return false
  const tool = fields["toolName"]
  if (tool !== undefined && tool !== identity.toolName) return false
  if (named === identity.resource) return true
  if (!URL.canParse(named, base)) return false
  return spellResourceUrl(identity.type, new URL(named, base).href)?.resource === identity.resource
}

/** Reads a well-known document for one resource. */
export const readWellKnown = (document: unknown, identity: Identity, base: string): OriginWord => {
  if (!isFields(document)) return silence
  const own = entries(document["resources"]).filter((entry) => isFields(entry) && means(entry, identity, base))
  const named = own.flatMap((entry) => recipients((entry as Readonly<Record<string, unknown>>)["payTo"]))
  return {
    payTos: (named.length > 0 ? [...new Set(named)] : recipients(document["payTo"])).slice(0, payTosMax),
    delisted: entries(document["delist"]).some((entry) => means(entry, identity, base))
  }
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const decoded = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

export const readJson = (bytes: Uint8Array): unknown => parse(decoded(bytes))

/** Recipients that a live 402 asks to be paid, on this ledger. */
export const readLive402 = (answer: {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}): OriginWord => {
  if (answer.status !== 402) return silence
  const header = answer.headers["payment-required"]
  const fromHeader =
    header === undefined ? undefined : parse(Option.getOrElse(Result.getSuccess(Base64.decodeString(header)), () => ""))
  const required = isFields(fromHeader) ? fromHeader : readJson(answer.body)
  if (!isFields(required)) return silence
  const payTos = entries(required["accepts"]).flatMap((option) =>
    isFields(option) && typeof option["network"] === "string" && Option.isSome(readNetwork(option["network"]))
      ? recipients(option["payTo"])
      : []
  )
  return { payTos: [...new Set(payTos)].slice(0, payTosMax), delisted: false }
}
