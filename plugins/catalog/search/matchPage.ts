// The words of a page's first listings that a query matches, as positions in their texts, and the corrected words of
// the query. Positions are data: a page highlights by them and renders no markup of a seller's.
import { Effect } from "effect"
import type { Matched, SearchBranch, Span } from "../contract.ts"

/** Listings whose texts are compared. */
const listingsMax = 20
const fields = ["serviceName", "toolName", "description"] as const
/** Longest part of a text that is compared. */
const charactersMax = 1_000

export interface PageMatches extends Pick<Matched, "corrected"> {
  /** By listing. */
  readonly spans: ReadonlyArray<Readonly<Partial<Record<(typeof fields)[number], ReadonlyArray<Span>>>>>
}

/** Undefined without a branch that matches words, or if it does not answer. */
export const matchPage = (
  branches: ReadonlyArray<Pick<SearchBranch, "match" | "timeoutMillis">>,
  query: string,
  bodies: ReadonlyArray<string>
): Effect.Effect<PageMatches | undefined> => {
  const { match, timeoutMillis = 0 } = branches.find((branch) => branch.match !== undefined) ?? {}
  if (match === undefined) return Effect.undefined
  const texts = bodies.slice(0, listingsMax).flatMap((body, listing) => {
    const of = JSON.parse(body) as Readonly<Record<string, unknown>>
    return fields.map((field) => ({ listing, field, text: String(of[field] ?? "").slice(0, charactersMax) }))
  })
  const matching = match(
    query,
    texts.map(({ text }) => text)
  )
  return matching.pipe(
    Effect.timeout(timeoutMillis),
    Effect.map(({ corrected, spans }) => ({
      corrected,
      spans: bodies.map((_, listing) =>
        Object.fromEntries(
          texts.flatMap((one, at) =>
            one.listing === listing && spans[at]!.length > 0 ? [[one.field, spans[at]!]] : []
          )
        )
      )
    })),
    Effect.catch((error) => Effect.as(Effect.logWarning("a search does not show its matches", error), undefined))
  )
}
