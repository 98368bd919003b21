// The reference by which an agent names a resource: `v1.` and the base64url of the canonical JSON `{n?, t, u}`: tool
// name, type and URL, which are the resource's identity (S193). It contains only public data from discovery and needs
// no secret. We never connect to its URL; we only ask the facilitator for it (S200). One identity has exactly one
// reference. Pure.
import { Result } from "effect"
import { Base64Url } from "effect/encoding"
import { canonicalJson } from "../../kernel/payment/wire/canonicalJson.ts"

export interface Identity {
  readonly type: "http" | "mcp"
  readonly url: string
  /** Empty for HTTP. */
  readonly toolName: string
}

const prefix = "v1."
/** Maximum characters of a reference: a URL of 2,048 and a tool's name, escaped, in base64. */
export const referenceLengthMax = 8_192
const urlLengthMax = 2_048
const toolNameLengthMax = 256

export const encodeReference = ({ toolName, type, url }: Identity): string => {
  const members = { t: type, u: url, ...(type === "mcp" ? { n: toolName } : {}) }
  return `${prefix}${Base64Url.encode(new TextEncoder().encode(canonicalJson(members)))}`
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const parse = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(utf8.decode(bytes))
  } catch {
    return undefined
  }
}

/** Decodes a reference; undefined unless `encodeReference` would produce the same text. */
export const decodeReference = (text: string): Identity | undefined => {
  if (!text.startsWith(prefix) || text.length > referenceLengthMax) return undefined
  const bytes = Result.getOrUndefined(Base64Url.decode(text.slice(prefix.length)))
  const value = bytes === undefined ? undefined : parse(bytes)
  if (typeof value !== "object" || value === null) return undefined
  const { n: toolName = "", t: type, u: url } = value as Readonly<Record<string, unknown>>
  if ((type !== "http" && type !== "mcp") || typeof url !== "string" || typeof toolName !== "string") return undefined
  if (
    url === "" ||
    url.length > urlLengthMax ||
    toolName.length > toolNameLengthMax ||
    (type === "mcp") !== (toolName !== "")
  )
    return undefined
  const identity: Identity = { type, url, toolName }
  return encodeReference(identity) === text ? identity : undefined
}
