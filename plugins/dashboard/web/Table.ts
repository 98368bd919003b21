// Tables. A table that is too wide scrolls horizontally. With `cards`, it is a list of cards on a phone, with the
// amount and the state at the top of each. Amounts in a column are aligned on the decimal point.
import { h, type VNode } from "preact"
import { amount, amountParts, type Denomination } from "./format.ts"
import type { Child } from "./parts.ts"
import { Rows } from "./Rows.ts"
import { tag } from "./tag.ts"

export interface Column<Row> {
  readonly head: string
  readonly cell: (row: Row) => Child
  readonly numeric?: boolean
  /**
   * Position in a phone's card: start or end of the first line, or of the second one (`under`, `aside`). If a table has
   * a second line, only columns with `rest` get further lines. Otherwise each column is a line with its label.
   */
  readonly card?: "first" | "last" | "under" | "aside" | "rest"
  /** Hidden at tablet width and below. */
  readonly isMiddle?: boolean
  /** Hidden at tablet width, but shown in a phone's card. */
  readonly isSpare?: boolean
}

const classOf = <Row>({ card, isMiddle, isSpare, numeric }: Column<Row>): string | undefined =>
  [
    ...(numeric === true ? ["numeric"] : []),
    ...(isMiddle === true ? ["middle-only"] : []),
    ...(isSpare === true ? ["spare"] : []),
    ...(card === undefined ? [] : [`card-${card}`])
  ].join(" ") || undefined

const Head = <Row>({ columns }: { readonly columns: ReadonlyArray<Column<Row>> }): VNode<any> =>
  tag(
    "thead",
    tag(
      "tr",
      columns.map((column) => h("th", { scope: "col", key: column.head, class: classOf(column) }, column.head))
    )
  )

export const Table = <Row>(props: {
  readonly label: string
  readonly columns: ReadonlyArray<Column<Row>>
  readonly rows: ReadonlyArray<Row>
  readonly keyOf: (row: Row) => string
  /** Message in place of an empty table, with the next step. */
  readonly empty: Child
  readonly cards?: boolean
}): VNode<any> => {
  if (props.rows.length === 0) return tag("p.empty", props.empty)
  const isShort = props.columns.some(({ card }) => card === "under")
  return h(
    "div",
    {
      class: ["scroll", ...(props.cards === true ? ["cards"] : []), ...(isShort ? ["short"] : [])].join(" "),
      tabIndex: 0,
      role: "region",
      "aria-label": `${props.label}, table`
    },
    h(
      "table",
      { "aria-rowcount": props.rows.length + 1 },
      h(Head<Row>, { columns: props.columns }),
      h(Rows<Row>, {
        rows: props.rows,
        columns: props.columns.length,
        show: (row, place) =>
          h(
            "tr",
            { key: props.keyOf(row), "aria-rowindex": place + 1 },
            props.columns.map((column) =>
              h(
                "td",
                { key: column.head, class: classOf(column), "data-label": column.head },
                tag("div.cell", column.cell(row))
              )
            )
          )
      })
    )
  )
}

/** An amount that is aligned on its decimal point with the amounts above it. */
export const Amount = (props: { readonly units: string | null; readonly of: Denomination }): VNode<any> => {
  const parts = props.units === null ? undefined : amountParts(props.units, props.of)
  return parts === undefined
    ? tag("span", amount(props.units, props.of))
    : tag("span.amount", `${parts.whole}.`, tag("span.part", parts.part), tag("span.unit", ` ${parts.symbol}`))
}
