// The canonical spelling of an origin, which the tools use to compare, count and decide: scheme and host in lower case,
// the host in punycode and without a trailing dot, an IPv4 address mapped into IPv6 as the IPv4 address, no default
// port. The platform's URL parser does the rest. If requests to two URLs reach one server under one name, the URLs have
// the same origin. Pure.
import { parseAddress } from "../../kernel/config/addressRange.ts"

const canonicalHost = (hostname: string): string => {
  const bare = hostname.replace(/\.$/, "")
  const bytes = bare.startsWith("[") ? parseAddress(bare) : undefined
  return bytes?.length === 4 ? bytes.join(".") : bare
}

/** The origin of an http(s) URL; undefined for anything else, and for a URL with credentials or without a host. */
export const canonicalOrigin = (text: string): string | undefined => {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return undefined
  const { hostname, password, port, protocol, username } = new URL(text)
  const host = canonicalHost(hostname)
  if (username !== "" || password !== "" || host === "" || host.endsWith(".")) return undefined
  return `${protocol}//${host}${port === "" ? "" : `:${port}`}`
}

/** The host of an origin in its canonical spelling. */
export const hostOf = (origin: string): string => new URL(origin).hostname

/**
 * True if a listing's URL has the spelling that we dial: the canonical origin, a path in the URL parser's form, and no
 * parts that do not identify a resource. A symbolic name has one spelling too.
 */
export const isCanonicalUrl = (url: string): boolean => {
  if (/^mcp:\/\/[^\s?#]+$/.test(url)) return true
  const origin = canonicalOrigin(url)
  if (origin === undefined || !url.startsWith(`${origin}/`)) return false
  const { hash, href, search } = new URL(url)
  return href === url && search === "" && hash === "" && !/[?#]/.test(url)
}
