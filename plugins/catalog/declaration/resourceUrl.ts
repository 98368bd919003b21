// Normalizes a resource's URL to the single spelling under which it is listed: without query and fragment, host in
// lower case and punycode, no trailing dot, unreserved characters not escaped; for a dynamic route the origin and its
// template. Origins that the profile does not accept are refused here, in any spelling (S24, S25, S40–S42). Pure.
import { isInstanceAddress } from "../../../kernel/http/addresses.ts"
import { isLocalName } from "../../../kernel/http/localNames.ts"
import type { CatalogValues } from "../Config.ts"
import { isSmooth } from "./cleanText.ts"
import type { PublicReason } from "./Declaration.ts"

export interface ResourceUrl {
  readonly resource: string
  /** None for a symbolic `mcp://` name. */
  readonly origin: string | undefined
}

type UrlRefused = { readonly _tag: "Refused"; readonly reason: PublicReason; readonly detail: string }

const refused = (reason: PublicReason, detail: string): UrlRefused => ({ _tag: "Refused", reason, detail })

export const urlLengthMax = 2_048
const templateLengthMax = 512

const unreserved = /[A-Za-z0-9\-._~]/

/** Escapes in one spelling: none for unreserved characters, upper-case digits for the rest. */
const normalizeEscapes = (path: string): string =>
  path.replace(/%([0-9a-fA-F]{2})/g, (escape, digits: string) => {
    const character = String.fromCharCode(parseInt(digits, 16))
    return unreserved.test(character) ? character : escape.toUpperCase()
  })

const decodePassesMax = 5

const fullyDecoded = (text: string): string | undefined => {
  let current = text
  for (let pass = 0; pass < decodePassesMax; pass++) {
    let next: string
    try {
      next = decodeURIComponent(current)
    } catch {
      return undefined
    }
    if (next === current) return current
    current = next
  }
  return undefined
}

/**
 * Converts a route template of the official helpers, with `[param]` and `*` segments, to the `:param` form; undefined
 * if it is not a template. A path without a variable part is not a template: its page can be requested, and a dynamic
 * route's cannot.
 */
export const readTemplate = (value: unknown): string | undefined => {
  if (typeof value !== "string" || value.length > templateLengthMax) return undefined
  let wildcards = 0
  const template = value
    .split("/")
    .map((segment) => (segment === "*" ? `:var${++wildcards}` : segment.replace(/^\[([A-Za-z_]\w*)\]$/, ":$1")))
    .join("/")
  if (!/^\/[a-zA-Z0-9_/:.\-~%]+$/.test(template) || template.startsWith("//") || !template.includes(":"))
    return undefined
  const decoded = fullyDecoded(template)
  if (
    decoded === undefined ||
    decoded.includes("..") ||
    decoded.includes("://") ||
    decoded.includes("\\") ||
    !isSmooth(decoded)
  )
    return undefined
  return template
}

/**
 * A path in the loosest spelling that a server may take for the same: decoded, lower case, no path parameters (`;x=1`),
 * no empty segments, dots or spaces at a segment's end, no NUL, which no database stores. Two paths of one spelling
 * may be one resource.
 */
export const loosePath = (path: string): string =>
  (fullyDecoded(path) ?? path)
    .replaceAll("\0", "")
    .normalize("NFKC")
    .toLowerCase()
    .split(/[/\\]/)
    .map((segment) => segment.replace(/;.*$/, "").replace(/[\s.]+$/, ""))
    .filter((segment) => segment !== "")
    .map((segment) => `/${segment}`)
    .join("")

export const matchesTemplate = (template: string, path: string): boolean => {
  const [expected, given] = [template.split("/"), path.split("/")]
  return (
    expected.length === given.length &&
    expected.every((part, at) => (part.includes(":") ? templatePart(part, given[at]!) : part === given[at]))
  )
}

const templatePart = (part: string, given: string): boolean => {
  const at = part.indexOf(":")
  return given.length > at && given.startsWith(part.slice(0, at))
}

const symbolic = /^mcp:\/\/[A-Za-z0-9](?:[A-Za-z0-9._~-]{0,126}[A-Za-z0-9])?(?:\/[A-Za-z0-9._~%/-]*)?$/

/** Reads a declared URL; `template` only for HTTP. */
export const readResourceUrl = (
  type: "http" | "mcp",
  declared: unknown,
  template: string | undefined,
  policy: Pick<CatalogValues, "requireHttpsOrigins" | "allowLocalOrigins">
): ResourceUrl | UrlRefused => {
  if (typeof declared !== "string" || declared.trim() === "") return refused("missing_resource_url", "no resource.url")
  if (declared.length > urlLengthMax) return refused("missing_resource_url", "resource.url is too long")
  if (!isSmooth(declared.trim())) return refused("missing_resource_url", "resource.url holds white space or controls")
  if (type === "mcp" && /^mcp:/i.test(declared)) {
    const name = declared.trim().replace(/^mcp:/i, "mcp:").split(/[?#]/, 1)[0]!
    return symbolic.test(name)
      ? { resource: name, origin: undefined }
      : refused("missing_resource_url", "not a symbolic name")
  }
  if (!URL.canParse(declared)) return refused("missing_resource_url", "resource.url is not a URL")
  const url = new URL(declared)
  if (url.protocol !== "https:" && url.protocol !== "http:")
    return refused("missing_resource_url", "resource.url is neither http nor https")
  if (url.username !== "" || url.password !== "")
    return refused("missing_resource_url", "resource.url holds a user name")
  const host = url.hostname.replace(/\.$/, "")
  if (host === "" || host.endsWith(".")) return refused("missing_resource_url", "resource.url has no host")
  if (!policy.allowLocalOrigins && isLocalName(host)) return refused("local_origin", "the host is local by its name")
  if (isInstanceAddress(host)) return refused("local_origin", "the host is a cloud's instance metadata address")
  // A seller on a local machine does not have a certificate, so plain http is allowed if local origins are accepted.
  const mayBePlain = !policy.requireHttpsOrigins || (policy.allowLocalOrigins && isLocalName(host))
  if (url.protocol === "http:" && !mayBePlain) return refused("insecure_origin", "the resource is plain http")
  const origin = `${url.protocol}//${host}${url.port === "" ? "" : `:${url.port}`}`
  const path = normalizeEscapes(url.pathname)
  if (template !== undefined) return { resource: `${origin}${template}`, origin }
  return { resource: `${origin}${path}`, origin }
}

/**
 * The spelling under which a URL is or would be listed, for any origin; undefined when it cannot be one.
 */
export const spellResourceUrl = (type: "http" | "mcp", url: string): ResourceUrl | undefined => {
  const read = readResourceUrl(type, url, undefined, { requireHttpsOrigins: false, allowLocalOrigins: true })
  return "_tag" in read ? undefined : read
}
