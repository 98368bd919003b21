// The body of a long table, in chunks. Only the chunks near the viewport are in the document. One empty row of the same
// height replaces each of the others, so that ten thousand rows cost as much as one screen of rows. A short table is a
// single chunk.
import { h, type VNode } from "preact"
import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { tag } from "./tag.ts"

/** Rows of a chunk: a few chunks fill a screen, and one renders within a frame. */
const chunkRows = 25
/** A table of at most this many rows is rendered whole. */
const wholeMax = 100
/** Distance from the viewport at which a chunk is rendered. */
const margin = "600px 0px"
/** Estimated height of a row, until one was measured. */
const rowPixels = 40

interface Chunks {
  readonly isNear: (index: number) => boolean
  /** Height in pixels: measured, or estimated from the measured chunks. */
  readonly heightOf: (index: number, rows: number) => number
  readonly watch: (element: HTMLElement | null, index: number) => void
}

/** Tracks the chunks near the viewport, and the heights of the others. */
const useChunks = (isLong: boolean): Chunks => {
  const [near, change] = useState<ReadonlySet<number>>(new Set([0, 1]))
  const heights = useRef(new Map<number, number>())
  const indices = useRef(new WeakMap<Element, number>())
  const observer = useRef<IntersectionObserver | undefined>(undefined)
  const waiting = useRef(new Set<HTMLElement>())
  useEffect(() => {
    if (!isLong) return undefined
    const follow = (entries: ReadonlyArray<IntersectionObserverEntry>) =>
      change((last) => {
        const next = new Set(last)
        for (const { boundingClientRect, isIntersecting, target } of entries) {
          const index = indices.current.get(target)
          if (index === undefined) continue
          // The chunk with the focus stays rendered while the reader scrolls.
          if (isIntersecting || target.contains(document.activeElement)) next.add(index)
          else {
            if (next.has(index) && boundingClientRect.height > 0) heights.current.set(index, boundingClientRect.height)
            next.delete(index)
          }
        }
        return next
      })
    const own = new IntersectionObserver(follow, { rootMargin: margin })
    observer.current = own
    for (const element of waiting.current) own.observe(element)
    return () => {
      own.disconnect()
      observer.current = undefined
    }
  }, [isLong])
  const watch = useCallback((element: HTMLElement | null, index: number) => {
    if (element === null || indices.current.has(element)) return
    indices.current.set(element, index)
    waiting.current.add(element)
    observer.current?.observe(element)
  }, [])
  const heightOf = (index: number, rows: number): number => {
    const known = heights.current.get(index)
    if (known !== undefined) return known
    const measured = [...heights.current.values()]
    const mean = measured.length === 0 ? 0 : measured.reduce((sum, one) => sum + one, 0) / measured.length / chunkRows
    return rows * (mean === 0 ? rowPixels : mean)
  }
  return { isNear: (index) => near.has(index), heightOf, watch }
}

const Spacer = (props: { readonly height: number; readonly columns: number }): VNode<any> =>
  h(
    "tr",
    { class: "spacer", "aria-hidden": true },
    h("td", { colSpan: props.columns, style: { height: `${Math.round(props.height)}px` } })
  )

export const Rows = <Row>(props: {
  readonly rows: ReadonlyArray<Row>
  readonly columns: number
  /** Renders a row. `place` is its number among all rows, from 1. */
  readonly show: (row: Row, place: number) => VNode<any>
}): VNode<any> | Array<VNode<any>> => {
  const { columns, rows, show } = props
  const isLong = rows.length > wholeMax
  const { heightOf, isNear, watch } = useChunks(isLong)
  if (!isLong)
    return tag(
      "tbody",
      rows.map((row, index) => show(row, index + 1))
    )
  return Array.from({ length: Math.ceil(rows.length / chunkRows) }, (_, index) => {
    const first = index * chunkRows
    const own = rows.slice(first, first + chunkRows)
    return h(
      "tbody",
      { key: index, ref: (element: HTMLElement | null) => watch(element, index) },
      isNear(index)
        ? own.map((row, at) => show(row, first + at + 1))
        : h(Spacer, { height: heightOf(index, own.length), columns })
    )
  })
}
