// The optional text of a resource: description, media type, service name, tags, icon. Each is cleaned and validated
// separately. An unusable one is left out and the rest is listed (soft drop), by the rules of the official helpers.
// Pure.
import { isLocalName } from "../../../kernel/http/localNames.ts"
import { parseAddress } from "../../../kernel/config/addressRange.ts"
import { cleanLine, cleanString } from "./cleanText.ts"
import type { Description } from "./Declaration.ts"

const descriptionLengthMax = 4_000
const nameLengthMax = 32
const tagsMax = 5
const iconUrlLengthMax = 2_048

const printable = /^[\x20-\x7e]+$/

const readDescription = (value: unknown): string | undefined => {
  if (typeof value !== "string") return undefined
  const text = cleanLine(value, descriptionLengthMax)
  return text === "" ? undefined : text
}

const readMimeType = (value: unknown): string | undefined =>
  typeof value === "string" &&
  value.length <= 128 &&
  /^[A-Za-z0-9!#$&^_.+-]+\/[A-Za-z0-9!#$&^_.+-]+(?:\s*;\s*[A-Za-z0-9_.-]+=[A-Za-z0-9_.+"-]+)*$/.test(value)
    ? value.toLowerCase()
    : undefined

const readName = (value: unknown): string | undefined =>
  typeof value === "string" && value.trim() !== "" && value.length <= nameLengthMax && printable.test(value)
    ? value.trim()
    : undefined

const readTags = (value: unknown): ReadonlyArray<string> | undefined => {
  if (!Array.isArray(value)) return undefined
  const tags = new Map<string, string>()
  for (const item of value) {
    const tag = readName(item)
    if (tag !== undefined && !tags.has(tag.toLowerCase())) tags.set(tag.toLowerCase(), tag)
    if (tags.size === tagsMax) break
  }
  return tags.size === 0 ? undefined : [...tags.values()]
}

const readIconUrl = (value: unknown): string | undefined => {
  if (
    typeof value !== "string" ||
    value.length > iconUrlLengthMax ||
    cleanString(value) !== value ||
    !URL.canParse(value)
  )
    return undefined
  const url = new URL(value)
  if (url.protocol !== "https:" && url.protocol !== "http:") return undefined
  if (url.username !== "" || url.password !== "") return undefined
  return parseAddress(url.hostname) !== undefined || isLocalName(url.hostname) ? undefined : url.href
}

const isUnusableName = (value: unknown): boolean => value !== "" && readName(value) === undefined

/** Fields with an unusable value: the protocol limits names and tags to 32 printable ASCII characters. */
export const droppedFields = ({ iconUrl, serviceName, tags }: Readonly<Record<string, unknown>>) => [
  ...(serviceName !== undefined && isUnusableName(serviceName) ? ["serviceName"] : []),
  ...(tags !== undefined && (!Array.isArray(tags) || tags.some(isUnusableName)) ? ["tags"] : []),
  ...(iconUrl !== undefined && iconUrl !== "" && readIconUrl(iconUrl) === undefined ? ["iconUrl"] : [])
]

/** The optional text of `resource`, which is untrusted input. */
export const readAbout = (resource: Readonly<Record<string, unknown>>): Omit<Description, "routeTemplate"> => {
  const about = {
    description: readDescription(resource["description"]),
    mimeType: readMimeType(resource["mimeType"]),
    serviceName: readName(resource["serviceName"]),
    tags: readTags(resource["tags"]),
    iconUrl: readIconUrl(resource["iconUrl"])
  }
  return Object.fromEntries(Object.entries(about).filter(([, value]) => value !== undefined))
}
