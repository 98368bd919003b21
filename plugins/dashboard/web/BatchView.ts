// Payment channels of batch-settlement: what each holds, what was charged and claimed, its age, and the deadline of a
// started withdrawal, those first. Where the channel store is not enabled, the panel is left out.
import { h, type VNode } from "preact"
import { useAsked } from "./ask.ts"
import type { Denomination } from "./format.ts"
import { Moment, Panel, SaveCsv, Shown, written } from "./parts.ts"
import { Amount, Table } from "./Table.ts"
import { Thing } from "./things.ts"

interface ChannelReported extends Denomination {
  readonly channel_id: string
  readonly principal: string | null
  readonly payer: string
  readonly pay_to: string
  readonly held: string
  readonly charged: string | null
  readonly claimed: string
  readonly opened_at: string | null
  readonly withdrawal_ends_at: string | null
}

interface Reported {
  readonly items: ReadonlyArray<ChannelReported>
  readonly more: boolean
}

const path = "/batch/v1/operator/channels"

const ChannelsTable = ({ of }: { readonly of: Reported }): VNode<any> =>
  h(Table<ChannelReported>, {
    label: "Payment channels",
    rows: of.items,
    keyOf: ({ channel_id, principal }) => `${channel_id} ${principal ?? ""}`,
    empty: "No payment channels yet.",
    cards: true,
    columns: [
      { head: "Seller", card: "first", cell: (row) => h(Thing, { kind: "account", id: row.pay_to }) },
      { head: "Buyer", cell: (row) => h(Thing, { kind: "account", id: row.payer }) },
      {
        head: "Key",
        cell: ({ principal }) => (principal === null ? "Own store" : h(Thing, { kind: "key", id: principal }))
      },
      { head: "Held", numeric: true, card: "last", cell: (row) => h(Amount, { units: row.held, of: row }) },
      {
        head: "Charged",
        numeric: true,
        cell: (row) => (row.charged === null ? "–" : h(Amount, { units: row.charged, of: row }))
      },
      { head: "Claimed", numeric: true, cell: (row) => h(Amount, { units: row.claimed, of: row }) },
      { head: "Opened", cell: ({ opened_at }) => h(Moment, { at: opened_at }) },
      { head: "Withdrawal ends", cell: ({ withdrawal_ends_at }) => h(Moment, { at: withdrawal_ends_at }) }
    ]
  })

export const BatchView = ({ refresh }: { readonly refresh: number }): VNode<any> | null => {
  const asked = useAsked<Reported>(`${path}?refresh=${refresh}`, 10_000)
  if (asked.state === "failed" && asked.status === 404) return null
  return h(
    Panel,
    { title: "Payment channels", wide: true, actions: h(SaveCsv, { name: "payment channels", path }) },
    h(Shown<Reported>, {
      asked,
      show: (of) => [
        h(ChannelsTable, { key: "table", of }),
        of.more ? h("p", { key: "more", class: "note" }, written(`The first ${of.items.length}.`)) : null
      ]
    })
  )
}
