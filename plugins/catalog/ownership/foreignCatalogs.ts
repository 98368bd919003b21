// Other catalogs as a source of origins, off by default: their pages are read hourly, with conditional requests, and
// each origin that they name is probed as a seller's own request would have it probed. Resources found there are listed
// by the origin's own words, unverified until a payment is observed, so they are hidden and rank last. The other
// catalog's own text on a resource (recipient, price, text) is never read. Bounded in pages, bytes, origins and probes.
import { Effect, Result } from "effect"
import { reconciler } from "../../../kernel/actor/Actor.ts"
import { BoundedMap } from "../../../kernel/cache/BoundedMap.ts"
import { readJson } from "../../../kernel/http/BoundedJson.ts"
import { Config } from "../Config.ts"
import { OriginDocuments } from "./OriginDocuments.ts"
import { OriginProbes } from "./OriginProbes.ts"

/** Resources of one page, and pages of one turn. */
const pageItems = 100
const pagesMax = 10
/** Origins that it keeps as probed. */
const originsMax = 10_000

interface Page {
  readonly origins: ReadonlyArray<string>
  /** Whether it was as long as was asked for. */
  readonly isFull: boolean
}

const originOf = (item: unknown): string | undefined => {
  const { resource } = (item ?? {}) as { readonly resource?: unknown }
  if (typeof resource !== "string" || !URL.canParse(resource)) return undefined
  const { origin, protocol } = new URL(resource)
  return protocol === "https:" || protocol === "http:" ? origin : undefined
}

/** The origins that a page names; empty for an invalid page. */
const readPage = (body: Uint8Array): Page => {
  const read = Result.getOrElse(readJson(body), () => undefined) as { readonly items?: unknown } | null | undefined
  const items = Array.isArray(read?.items) ? read.items.slice(0, pageItems) : []
  return { origins: [...new Set(items.flatMap((item) => originOf(item) ?? []))], isFull: items.length === pageItems }
}

const pageUrl = (catalog: string, offset: number): URL => {
  const url = new URL(catalog)
  url.searchParams.set("limit", String(pageItems))
  url.searchParams.set("offset", String(offset))
  return url
}

/** Reads the catalogs of the settings for as long as the Scope lives. */
export const startForeignCatalogs = Effect.gen(function* () {
  const { foreignCatalogs } = yield* Config
  const documents = yield* OriginDocuments
  const probes = yield* OriginProbes
  const known = new BoundedMap<string, { readonly tag: string; readonly isFull: boolean }>(
    foreignCatalogs.length * pagesMax
  )
  const probed = new BoundedMap<string, true>(originsMax)

  /**
   * Reads one page. An unchanged page names nothing new, but its successor may. Undefined if the page is unavailable.
   */
  const pageAt = Effect.fnUntraced(function* (url: URL) {
    const before = known.get(url.href)
    const more = before === undefined ? undefined : { headers: { "if-none-match": before.tag } }
    const answer = yield* Effect.option(documents.send(url, "GET", more))
    if (answer._tag === "None") return undefined
    if (answer.value.status === 304 && before !== undefined) return { ...before, origins: [] }
    if (answer.value.status !== 200) return undefined
    const page = readPage(answer.value.body)
    return { ...page, tag: answer.value.headers["etag"] }
  })

  /** Probes new origins; false if the catalog has used up its probes of this hour. */
  const probeAll = Effect.fnUntraced(function* (origins: ReadonlyArray<string>, catalog: string) {
    for (const origin of origins) {
      if (probed.get(origin) !== undefined) continue
      const answer = yield* probes.probe(origin, `foreign ${catalog}`)
      if (answer._tag === "Later") return false
      probed.set(origin, true)
    }
    return true
  })

  const readCatalog = Effect.fnUntraced(function* (catalog: string) {
    for (let page = 0; page < pagesMax; page++) {
      const url = pageUrl(catalog, page * pageItems)
      const read = yield* pageAt(url)
      if (read === undefined) return
      // A page counts as read only when all of its origins are: the next turn continues.
      if (!(yield* probeAll(read.origins, catalog))) return
      const { isFull, tag } = read
      if (tag !== undefined) known.set(url.href, { tag, isFull })
      if (!isFull) return
    }
  })

  yield* reconciler({
    id: "foreign-catalogs",
    every: "1 hour",
    turn: Effect.forEach(
      foreignCatalogs.filter((catalog) => URL.canParse(catalog)),
      readCatalog,
      { discard: true }
    )
  })
})
