// A list by cursor. While it is shown, we poll the first page and merge it in place, so that new rows arrive at the top
// without a jump. Each further page is added at the end. A new filter starts over.
import { useEffect, useRef, useState } from "preact/hooks"
import { ask, type Asked, useAsked } from "./ask.ts"

export interface CursorPage<Row> {
  readonly items: ReadonlyArray<Row>
  readonly pagination: { readonly cursor: string | null; readonly total?: number; readonly more?: boolean }
}

export interface Pages<Row> {
  readonly asked: Asked<CursorPage<Row>>
  readonly rows: ReadonlyArray<Row>
  /** Undefined on the last page. */
  readonly more: (() => void) | undefined
  readonly isBusy: boolean
  /** The rows belong to the previous filters, until the next response arrives. */
  readonly isPending: boolean
  /** Why the next page could not be loaded. */
  readonly failed: string | undefined
}

interface Kept<Row> {
  readonly path: string
  readonly rows: ReadonlyArray<Row>
  readonly cursor: string | null
}

/** A request for the next page. */
interface Further {
  readonly path: string
  readonly isBusy: boolean
  readonly failed?: string | undefined
}

/** Merges a fresh first page with the kept rows. If they have no row in common, the fresh page replaces everything. */
const merged = <Row>(kept: ReadonlyArray<Row>, fresh: ReadonlyArray<Row>, keyOf: (row: Row) => string) => {
  const known = new Set(fresh.map(keyOf))
  const overlap = kept.findLastIndex((row) => known.has(keyOf(row)))
  return overlap < 0 ? undefined : [...fresh, ...kept.slice(overlap + 1)]
}

/** Rows of each further page. More than on the first page, because the reader asked to continue. */
const furtherLimit = 200

/** Polls the first page of `path` (without a cursor) every `everyMillis`. `keyOf` identifies a row. */
export const usePages = <Row>(path: string, everyMillis: number, keyOf: (row: Row) => string): Pages<Row> => {
  const asked = useAsked<CursorPage<Row>>(path, everyMillis)
  const [kept, keep] = useState<Kept<Row>>({ path: "", rows: [], cursor: null })
  const [further, report] = useState<Further>({ path, isBusy: false })
  const before = useRef<Asked<CursorPage<Row>>>(asked)
  if (asked.state !== "loading") before.current = asked
  const current = useRef(path)
  current.current = path
  useEffect(() => {
    if (asked.state !== "ready") return
    const { items, pagination } = asked.body
    keep((last) => {
      const rows = last.path === path && last.rows.length > items.length ? merged(last.rows, items, keyOf) : undefined
      return rows === undefined ? { path, rows: items, cursor: pagination.cursor } : { ...last, rows }
    })
  }, [asked, path])
  const isCurrent = kept.path === path
  const cursor = isCurrent ? kept.cursor : null
  const more = async (): Promise<void> => {
    report({ path, isBusy: true })
    const next = path.replace(/\blimit=[0-9]+/, `limit=${furtherLimit}`)
    const answer = await ask<CursorPage<Row>>(`${next}&cursor=${encodeURIComponent(cursor!)}`)
    report({ path, isBusy: false, failed: answer.state === "failed" ? answer.words : undefined })
    if (answer.state !== "ready" || current.current !== path) return
    const { items, pagination } = answer.body
    keep((last) => {
      if (last.path !== path) return last
      const known = new Set(last.rows.map(keyOf))
      const added = items.filter((row) => !known.has(keyOf(row)))
      return { path, rows: [...last.rows, ...added], cursor: pagination.cursor }
    })
  }
  const isPending = asked.state === "loading" && before.current.state === "ready"
  return {
    asked: isPending ? before.current : asked,
    rows: isCurrent || isPending ? kept.rows : asked.state === "ready" ? asked.body.items : [],
    more: cursor === null ? undefined : () => void more(),
    isBusy: further.path === path && further.isBusy,
    isPending,
    failed: further.path === path ? further.failed : undefined
  }
}
