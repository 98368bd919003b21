// The query of `/discovery/search`, read and checked against the specification's constraints; every issue is named
// (S116–S124). Pure.
import type { SearchMode } from "../contract.ts"
import { readFilters, readPaging } from "../discovery/filters.ts"
import type { Filters } from "../contract.ts"

const queryLengthMax = 512

export interface ReadSearch {
  readonly query: string
  readonly mode: SearchMode
  /** The caller asked for the mode; otherwise it follows from the branches that are on. */
  readonly isModeAsked: boolean
  readonly filters: Filters
  readonly limit: number
  readonly offset: number
  readonly cursor: string | undefined
  readonly matches: boolean
  /** Explain how each resource was ranked. */
  readonly explain: boolean
}

interface SearchIssue {
  readonly error: "query_required" | "query_too_long" | "invalid_filter"
  readonly details: ReadonlyArray<string>
}

export const readSearch = (params: URLSearchParams): ReadSearch | SearchIssue => {
  const query = params.get("query")?.trim() ?? ""
  if (query === "") return { error: "query_required", details: ["query: 1 to 512 characters"] }
  if ([...query].length > queryLengthMax)
    return { error: "query_too_long", details: [`query: at most ${queryLengthMax} characters`] }
  const { issues: errors, filters } = readFilters(params)
  const paging = readPaging(params, { limitDefault: 20, limitMax: 200, clamp: false })
  const mode = params.get("mode") ?? ""
  const known = mode === "" || mode === "lexical" || mode === "semantic" || mode === "hybrid"
  const wrong = [...errors, ...paging.issues, ...(known ? [] : ["mode: lexical, semantic or hybrid"])]
  if (wrong.length > 0) return { error: "invalid_filter", details: wrong }
  const cursor = params.get("cursor")
  return {
    query,
    mode: mode === "" ? "hybrid" : (mode as SearchMode),
    isModeAsked: mode !== "",
    filters,
    limit: paging.limit,
    offset: paging.offset,
    cursor: cursor === null || cursor === "" ? undefined : cursor,
    matches: params.get("matches") === "1",
    explain: params.get("explain") === "1"
  }
}
