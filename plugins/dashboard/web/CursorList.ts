// A list by cursor as a panel: its filters, the table, how many there are, a button for more, and a CSV of what is
// filtered. New rows arrive at the top while it is shown.
import { h, type VNode } from "preact"
import { count } from "./format.ts"
import { type CursorPage, type Pages, usePages } from "./pagesOf.ts"
import { type Child, Panel, SaveCsv, Shown } from "./parts.ts"
import { type Column, Table } from "./Table.ts"

const pageSize = 50
const everyMillis = 10_000

const countText = (shown: number, { more, total }: CursorPage<unknown>["pagination"]): string =>
  total === undefined || total <= shown
    ? `${count(shown)} shown`
    : `${count(shown)} of ${more === true ? "more than " : ""}${count(total)}`

/** How many rows there are, and what leads to more. */
const FootRow = (
  props: Pick<Pages<unknown>, "more" | "isBusy" | "failed"> & {
    readonly shown: number
    readonly of: CursorPage<unknown>
  }
): VNode<any> =>
  h(
    "p",
    { class: "row foot-row" },
    h("span", { class: "quiet" }, countText(props.shown, props.of.pagination)),
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
  /** Of the saved file, and of what the table is read as. */
  readonly name: string
  /** With a query, and without limit and cursor. */
  readonly path: string
  readonly keyOf: (row: Row) => string
  /** Of an answer, where a cell needs more than its row. */
  readonly columns: ReadonlyArray<Column<Row>> | ((body: any) => ReadonlyArray<Column<Row>>)
  readonly empty: Child
  readonly filters?: Child
  /** Rows of the first page. */
  readonly limit?: number
  /** Between the filters and the table, by the answer. */
  readonly above?: (body: any) => Child
  /** At the right of the title, beside the CSV. */
  readonly actions?: Child
  /** The list is the page: its filters and actions share a row, below the page's own title. */
  readonly isPage?: boolean
  /** The route is not enabled: in place of the panel. */
  readonly absent?: Child
}): VNode<any> | null => {
  const { absent, columns, empty, keyOf, limit = pageSize, name, path, title } = props
  const { asked, failed, isBusy, isPending, more, rows } = usePages<Row>(`${path}&limit=${limit}`, everyMillis, keyOf)
  if (asked.state === "failed" && asked.status === 404 && absent !== undefined)
    return absent === null ? null : h(Panel, { title, wide: true }, absent)
  const actions = h("span", { class: "row" }, props.actions, h(SaveCsv, { name, path }))
  return h(
    Panel,
    props.isPage === true ? { title, wide: true, isPage: true } : { title, wide: true, actions },
    props.isPage === true ? h("div", { class: "list-head" }, props.filters, actions) : props.filters,
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
