// The current view and its filters. They are in the URL's fragment, so that a reload, a link and the browser's back
// button keep them. Also the URLs of detail pages.
import { useEffect, useState } from "preact/hooks"

export interface Place {
  readonly name: string
  /** The part after the name: an id, an address or an origin. */
  readonly rest: string
  readonly query: URLSearchParams
}

export const readPlace = (fragment: string): Place => {
  const [path = "", query = ""] = fragment.replace(/^#/, "").split(/\?(.*)/s, 2)
  const [name = "", rest = ""] = path.split(/\/(.*)/s, 2)
  return { name, rest: decode(rest), query: new URLSearchParams(query) }
}

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The current place, while the component is mounted. */
export const usePlace = (): Place => {
  const [fragment, change] = useState(location.hash)
  useEffect(() => {
    const follow = () => change(location.hash)
    addEventListener("hashchange", follow)
    return () => removeEventListener("hashchange", follow)
  }, [])
  return readPlace(fragment)
}

/** The typed text, before it is in the URL. A change of the URL replaces it. */
export const useTyped = (given: string): readonly [typed: string, type: (text: string) => void] => {
  const [typed, type] = useState(given)
  useEffect(() => type(given), [given])
  return [typed, type]
}

type Query = Readonly<Record<string, string | undefined>>

/** The URL of a view, without members that have no value. */
export const hrefOf = (name: string, rest = "", query: Query = {}): string => {
  const given = Object.entries(query).filter((entry): entry is [string, string] => (entry[1] ?? "") !== "")
  const asked = new URLSearchParams(given).toString()
  return `/dashboard#${name}${rest === "" ? "" : `/${encodeURIComponent(rest)}`}${asked === "" ? "" : `?${asked}`}`
}

/** The members of a query with these names that have a value. */
export const picked = (query: URLSearchParams, names: ReadonlyArray<string>): URLSearchParams =>
  new URLSearchParams(names.map((name) => [name, query.get(name) ?? ""]).filter(([, value]) => value !== ""))

/** Changes members of the current query and removes empty ones, as one step of the browser's history. */
export const amend = (changes: Query): void => {
  const { name, query, rest } = readPlace(location.hash)
  for (const [key, value] of Object.entries(changes)) {
    if ((value ?? "") === "") query.delete(key)
    else query.set(key, value!)
  }
  location.hash = hrefOf(name, rest, Object.fromEntries(query)).replace(/^[^#]*/, "")
}

export type Kind = "settlement" | "account" | "asset" | "resource" | "origin" | "key"

/** Search results, including those without a detail page. */
export type FoundKind = Kind | "reason"

/** The URL of a detail page. */
export const pageOf = (kind: FoundKind, id: string): string =>
  kind === "reason" ? hrefOf("settlements", "", { reason: id }) : hrefOf(kind, id)

/** A resource's public identity. */
export interface ListingId {
  readonly resource: string
  readonly type: string
  readonly toolName?: string | null
}

/** The identity as parameters of a route. Routes differ in the name of the URL. */
export const listingQuery = (one: ListingId, url: "url" | "resource" = "url"): Readonly<Record<string, string>> => ({
  [url]: one.resource,
  type: one.type,
  ...(one.toolName == null || one.toolName === "" ? {} : { toolName: one.toolName })
})

export const publicPageOf = (one: ListingId): string => `/resource?${new URLSearchParams(listingQuery(one))}`

export const payeePageOf = (account: string): string => `/payee?account=${encodeURIComponent(account)}`
