// A list by cursor as a panel: its filters, the table, the number of rows, a button for more, and a CSV of the filtered
// rows. New rows arrive at the top while the list is shown.
import { h, type VNode } from "preact"
import { count } from "./format.ts"
import { type CursorPage, type Pages, usePages } from "./pagesOf.ts"
import { type Child, panel, SaveCsv, Shown } from "./parts.ts"
import { type Column, Table } from "./Table.ts"
import { tag } from "./tag.ts"

const pageSize = 50
const everyMillis = 10_000

const countText = (shown: number, { more, total }: CursorPage<unknown>["pagination"]): string =>
  total === undefined || total <= shown
    ? `${count(shown)} shown`
    : `${count(shown)} of ${more === true ? "more than " : ""}${count(total)}`

/** Shows the number of rows, and the button that loads more. */
const FootRow = (
  props: Pick<Pages<unknown>, "more" | "isBusy" | "failed"> & {
    readonly shown: number
    readonly of: CursorPage<unknown>
  }
): VNode<any> =>
  tag(
    "p.row.foot-row",
    tag("span.quiet", countText(props.shown, props.of.pagination)),
    props.failed === undefined ? null : h("span", { class: "quiet", role: "alert" }, props.failed),
    props.more === undefined
      ? null
      : h(
          "button",
          { type: "button", disabled: props.isBusy, onClick: props.more },
          props.isBusy ? "Loading…" : "Show more"
        )
  )

export const CursorList = <Row>(props: {
  readonly title: string
  /** Name of the saved file, also used as the label of its button for screen readers. */
  readonly name: string
  /** Path with the query, but without limit and cursor. */
  readonly path: string
  readonly keyOf: (row: Row) => string
  /** The columns, or a function of the response if a cell needs more than its row. */
  readonly columns: ReadonlyArray<Column<Row>> | ((body: any) => ReadonlyArray<Column<Row>>)
  readonly empty: Child
  readonly filters?: Child
  readonly limit?: number
  /** Content between the filters and the table, from the response. */
  readonly above?: (body: any) => Child
  /** Buttons in the row of "Export CSV". */
  readonly actions?: Child
  /** The list is the page: its filters and actions share a row, below the page's own title. */
  readonly isPage?: boolean
  /** Shown instead of the list if the route is not enabled. Null hides the panel. */
  readonly absent?: Child
}): VNode<any> | null => {
  const { absent, columns, empty, keyOf, limit = pageSize, name, path, title } = props
  const { asked, failed, isBusy, isPending, more, rows } = usePages<Row>(`${path}&limit=${limit}`, everyMillis, keyOf)
  if (asked.state === "failed" && asked.status === 404 && absent !== undefined)
    return absent === null ? null : panel({ title, wide: true }, absent)
  const actions = tag("span.row", props.actions, h(SaveCsv, { name, path }))
  return panel(
    props.isPage === true ? { title, wide: true, isPage: true } : { title, wide: true, actions },
    props.isPage === true ? tag("div.list-head", props.filters, actions) : props.filters,
    h(
      "div",
      { class: isPending ? "pending" : undefined, "aria-busy": isPending ? true : undefined },
      h(Shown<CursorPage<Row>>, {
        asked,
        show: (body) => [
          props.above?.(body),
          h(Table<Row>, {
            label: title,
            rows,
            keyOf,
            columns: typeof columns === "function" ? columns(body) : columns,
            cards: true,
            empty
          }),
          rows.length === 0 ? null : h(FootRow, { shown: rows.length, of: body, more, isBusy, failed })
        ]
      })
    )
  )
}
