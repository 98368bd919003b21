// Host and origin validation of a loopback listener. Any page in this machine's browser can send requests here; two
// headers identify them. A Host that does not name this machine means DNS rebinding. An Origin other than this
// listener's own, or a fetch that the browser marks cross-site, is a foreign page: it may read public routes only.
// Programs send neither header. Pure.
import { memoize } from "../cache/memoize.ts"
import { inRange, parseAddress } from "../config/addressRange.ts"

const namesMax = 256

/** The host name in a Host header, without a port; undefined if it is malformed. */
export const parseHostName = (header: string | undefined): string | undefined =>
  header === undefined || header === "" ? undefined : readHostName(header)

const readHostName = memoize({ name: "host-names", capacity: namesMax }, (header) =>
  URL.canParse(`http://${header}`) ? new URL(`http://${header}`).hostname : undefined
)

/** Whether the spelling of a name or address is this machine's own. */
export const isLoopback = memoize({ name: "loopback-names", capacity: namesMax }, (host): boolean => {
  const bare = host.replace(/^\[|\]$/g, "")
  return (
    bare === "localhost" ||
    (parseAddress(bare) !== undefined && (inRange(bare, "127.0.0.0/8") || inRange(bare, "::1/128")))
  )
})

export const isListedHost = (header: string | undefined, allowedHosts: ReadonlyArray<string>): boolean => {
  const host = parseHostName(header)
  return host !== undefined && (allowedHosts.includes(host) || allowedHosts.includes(header!.toLowerCase()))
}

type Headers = Readonly<Record<string, string | undefined>>

/** Whether a request comes from a page that is neither this listener's own nor allowed. */
export const isCrossOrigin = (headers: Headers, allowedOrigins: ReadonlyArray<string>): boolean => {
  const origin = headers["origin"]?.toLowerCase()
  if (origin === undefined) return headers["sec-fetch-site"] === "cross-site"
  if (allowedOrigins.includes(origin)) return false
  return !URL.canParse(origin) || new URL(origin).host !== headers["host"]?.toLowerCase()
}

/** The reason why no challenge is issued or accepted under a Host header. */
export const unlistedHost = "challenges are signed for a configured name: add this host to server.allowed_hosts"

export interface PageRules {
  /** The address that the listener is bound to. */
  readonly host: string
  /** Further Host headers to answer, in addition to the names of this machine; lower case. */
  readonly allowedHosts: ReadonlyArray<string>
  /** Allowed origins of pages, in addition to the listener's own; lower case. */
  readonly allowedOrigins: ReadonlyArray<string>
}

/**
 * The reason why a request is refused; undefined if it is allowed. A listener on another address than loopback allows
 * every request.
 */
export const checkHostAndOrigin = (
  { allowedHosts, allowedOrigins, host }: PageRules,
  headers: Headers,
  isPublic: () => boolean
): { readonly reason: string; readonly message: string } | undefined => {
  if (!isLoopback(host)) return undefined
  const name = parseHostName(headers["host"])
  if (name === undefined || !(isLoopback(name) || isListedHost(headers["host"], allowedHosts)))
    return {
      reason: "forbidden_host",
      message: "this host name is not allowed; behind a proxy, add it to server.allowed_hosts"
    }
  if (isCrossOrigin(headers, allowedOrigins) && !isPublic())
    return {
      reason: "forbidden_origin",
      message: "pages of this origin are not allowed; add it to server.allowed_origins to allow it"
    }
  return undefined
}
