// Live settlements, from server-sent events. Each is one row that changes until the settlement ends. The view redraws
// at most a few times a second and keeps a bounded number of rows, so that the page stays responsive under load.
import { h, type VNode } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { type Denomination, duration, stroops } from "./format.ts"
import { LinkState, Moment, Notice, panel, SettlementState } from "./parts.ts"
import { pageOf } from "./place.ts"
import { Reason } from "./reasons.ts"
import { Amount, Table } from "./Table.ts"
import { type Link, useStream } from "./stream.ts"
import { Thing } from "./things.ts"

interface SettlementUpdate extends Denomination {
  readonly id: string
  readonly at: string
  readonly state: string
  readonly scheme: string
  readonly payer: string
  readonly pay_to: string
  readonly amount: string
  readonly transaction_hash: string
  readonly recorded_at: string
  readonly resolved_at: string | null
  readonly fee_stroops: string | null
  readonly error_reason: string | null
}

const rowsMax = 100
const drawEveryMillis = 200

/** Newest first. An update replaces its settlement's row. */
const merged = (
  rows: ReadonlyArray<SettlementUpdate>,
  updates: ReadonlyArray<SettlementUpdate>
): ReadonlyArray<SettlementUpdate> => {
  const known = new Map(rows.map((row) => [row.id, row]))
  for (const one of updates) known.set(one.id, one)
  return [...known.values()].sort((a, b) => (a.recorded_at < b.recorded_at ? 1 : -1)).slice(0, rowsMax)
}

const useUpdates = (): { readonly rows: ReadonlyArray<SettlementUpdate>; readonly link: Link } => {
  const [rows, change] = useState<ReadonlyArray<SettlementUpdate>>([])
  const waiting = useRef<Array<SettlementUpdate>>([])
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const draw = (): void => {
    timer.current = undefined
    const updates = waiting.current.splice(0)
    change((rows) => merged(rows, updates))
  }
  const link = useStream("/analytics/v1/events", (data) => {
    waiting.current.push(JSON.parse(data) as SettlementUpdate)
    if (waiting.current.length > rowsMax) waiting.current.splice(0, waiting.current.length - rowsMax)
    timer.current ??= setTimeout(draw, drawEveryMillis)
  })
  useEffect(() => () => clearTimeout(timer.current), [])
  return { rows, link }
}

const took = ({ recorded_at, resolved_at }: SettlementUpdate): string =>
  resolved_at === null ? "–" : duration((Date.parse(resolved_at) - Date.parse(recorded_at)) / 1_000)

const feeOf = ({ fee_stroops }: SettlementUpdate): string => (fee_stroops === null ? "–" : stroops(fee_stroops))

export const LiveView = (): VNode<any> => {
  const { link, rows } = useUpdates()
  return panel(
    {
      title: "Live settlements",
      isPage: true,
      wide: true,
      actions: [
        h("span", { key: "what", class: "quiet" }, `The newest ${rowsMax}, as they are recorded and as they end.`),
        h(LinkState, { key: "link", link })
      ]
    },
    link === "lost" || link === "refused" ? h(Notice, { kind: "error" }, "Showing the last known settlements.") : null,
    h(Table<SettlementUpdate>, {
      label: "Live settlements",
      rows,
      keyOf: ({ id }) => id,
      empty: "No settlements in the last 15 minutes. New ones appear here as they happen.",
      cards: true,
      columns: [
        { head: "Amount", numeric: true, card: "first", cell: (row) => h(Amount, { units: row.amount, of: row }) },
        {
          head: "State",
          card: "last",
          cell: ({ error_reason, state }) => [
            h(SettlementState, { word: state }),
            h(Reason, { word: error_reason ?? undefined, isShort: true })
          ]
        },
        { head: "Payer", card: "under", cell: ({ payer }) => h(Thing, { kind: "account", id: payer }) },
        { head: "Recipient", isSpare: true, cell: ({ pay_to }) => h(Thing, { kind: "account", id: pay_to }) },
        {
          head: "Time",
          card: "aside",
          cell: ({ recorded_at, transaction_hash }) =>
            h(
              "a",
              { class: "when", href: pageOf("settlement", transaction_hash), title: transaction_hash },
              h(Moment, { at: recorded_at, inLink: true })
            )
        },
        { head: "Duration", numeric: true, cell: took },
        { head: "Fee", numeric: true, isMiddle: true, cell: feeOf },
        {
          head: "Transaction",
          isMiddle: true,
          cell: (row) => h(Thing, { kind: "settlement", id: row.transaction_hash })
        }
      ]
    })
  )
}
