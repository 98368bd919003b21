// Totals of each calendar month by key and asset, with the month's statement to download.
import { h, type VNode } from "preact"
import type { MonthTotals } from "./reports.ts"
import { useAsked } from "./ask.ts"
import { Shown } from "./parts.ts"
import { keyName } from "./things.ts"
import { Table } from "./Table.ts"

type Row = MonthTotals["items"][number]

const statementOf = ({ key, month }: Row, format: "csv" | "jsonl"): string =>
  `/dashboard/v1/statement?${new URLSearchParams({ month, key, format })}`

export const BooksPanel = (): VNode<any> =>
  h(Shown<MonthTotals>, {
    asked: useAsked<MonthTotals>("/dashboard/v1/books"),
    show: ({ items }) =>
      h(Table<Row>, {
        label: "Books",
        rows: items,
        keyOf: ({ asset, key, month }) => `${month} ${key} ${asset}`,
        cards: true,
        empty: "No settlement yet.",
        columns: [
          { head: "Month (UTC)", card: "first", cell: ({ month }) => month },
          { head: "Key", cell: ({ key }) => keyName(key) },
          { head: "Settled", numeric: true, cell: ({ settled }) => String(settled) },
          { head: "Amount", numeric: true, cell: ({ amount, asset }) => `${amount} ${asset}` },
          { head: "Fees", numeric: true, cell: ({ fees_xlm }) => `${fees_xlm} XLM` },
          {
            head: "Statement",
            card: "last",
            cell: (row) => [
              h("a", { href: statementOf(row, "csv"), download: true }, "CSV"),
              " ",
              h("a", { href: statementOf(row, "jsonl"), download: true }, "JSONL")
            ]
          }
        ]
      })
  })
