// Status of the facilitator: money in flight, settlement times, fees spent and left, channels, pending and unresolved
// settlements, plugins, actors and operator actions. Channels are resized from here.
import { h, type VNode } from "preact"
import { useState } from "preact/hooks"
import { post, useAsked } from "./ask.ts"
import { BatchView } from "./BatchView.ts"
import { BooksPanel } from "./BooksPanel.ts"
import { LimitsPanel } from "./LimitsPanel.ts"
import { Confirmed, Entry } from "./Confirmed.ts"
import { WaitingDeliveries } from "./DeliveriesView.ts"
import { amount, count, counted, duration, percent, roundedStroops, seconds, stroops } from "./format.ts"
import { isTransaction } from "./identifiers.ts"
import { RotationView } from "./RotationView.ts"
import {
  Exactly,
  type Figure,
  Figures,
  Moment,
  Notice,
  panel,
  SaveCsv,
  SettlementState,
  Shown,
  State,
  written
} from "./parts.ts"
import type { ActorShown, ChannelShown, FacilitatorStatus, Moves, WithoutEnd } from "./reports.ts"
import { Amount, Table } from "./Table.ts"
import { tag } from "./tag.ts"
import { keyName, Thing } from "./things.ts"

export const paceFigures = ({ pace }: FacilitatorStatus): ReadonlyArray<Figure> => [
  {
    label: "Settlement time, p50",
    value: seconds(pace.p50_ms),
    note: `${counted(pace.over, "settlement")} in 30 days`
  },
  { label: "Settlement time, p95", value: seconds(pace.p95_ms) }
]

const StatusFigures = ({ of }: { readonly of: FacilitatorStatus }): VNode<any> => {
  const { fees, in_flight, sponsor } = of
  const used = BigInt(fees.charged_stroops) + BigInt(fees.reserved_stroops)
  const left = BigInt(fees.limit_stroops) - used
  return h(Figures, {
    items: [
      ...(in_flight.length === 0 ? [{ label: "In flight", value: "None" }] : []),
      ...in_flight.map((one) => ({
        label: `In flight in ${one.asset_symbol ?? "another asset"}`,
        value: amount(one.amount, one),
        note: counted(one.settlements, "settlement")
      })),
      ...paceFigures(of),
      { label: "Fees today", value: stroops(fees.charged_stroops), note: `${stroops(fees.reserved_stroops)} reserved` },
      {
        label: "Fee budget left today",
        value: roundedStroops(left > 0n ? left : 0n),
        note: `of ${roundedStroops(fees.limit_stroops)}, until 00:00 UTC`
      },
      ...(sponsor === null
        ? []
        : [
            {
              label: "Sponsor balance",
              value: h(Exactly, {
                shown: roundedStroops(sponsor.balance_stroops),
                exact: stroops(sponsor.balance_stroops)
              })
            },
            {
              label: "Usable channels",
              value: count(sponsor.channels_usable),
              note:
                sponsor.channel_balance_least_stroops === null
                  ? undefined
                  : `at least ${stroops(sponsor.channel_balance_least_stroops)} in each`
            }
          ])
    ]
  })
}

const WithoutEndTable = ({ of }: { readonly of: FacilitatorStatus }): VNode<any> =>
  h(Table<WithoutEnd>, {
    label: "Pending and unresolved settlements",
    rows: of.without_end,
    keyOf: ({ id }) => id,
    empty: "Every settlement has ended.",
    cards: true,
    columns: [
      { head: "Age", card: "aside", cell: ({ age_seconds }) => duration(age_seconds) },
      { head: "State", card: "last", cell: ({ state }) => h(SettlementState, { word: state }) },
      { head: "Amount", numeric: true, card: "first", cell: (row) => h(Amount, { units: row.amount, of: row }) },
      { head: "Key", card: "under", cell: ({ principal }) => h(Thing, { kind: "key", id: principal }) },
      { head: "Expires at ledger", numeric: true, cell: ({ expires_ledger }) => String(expires_ledger) },
      { head: "Transaction", card: "rest", cell: (row) => h(Thing, { kind: "settlement", id: row.transaction_hash }) }
    ]
  })

const BudgetTable = ({ of }: { readonly of: FacilitatorStatus }): VNode<any> =>
  h(Table<FacilitatorStatus["fees"]["principals"][number]>, {
    label: "Fees by caller",
    rows: of.fees.principals,
    keyOf: ({ principal }) => principal,
    empty: "No fee was sponsored today.",
    cards: true,
    columns: [
      {
        head: "Caller",
        card: "first",
        // A caller without a key is counted by its address. Its settlements are not distinguishable from those of other
        // callers without a key.
        cell: ({ principal }) =>
          principal.startsWith("ip:") ? keyName(principal) : h(Thing, { kind: "key", id: principal })
      },
      { head: "Charged", numeric: true, cell: (row) => stroops(row.charged_stroops) },
      { head: "Reserved", numeric: true, cell: (row) => stroops(row.reserved_stroops) },
      {
        head: "Share of limit",
        numeric: true,
        cell: (row) =>
          percent(Number(row.charged_stroops) + Number(row.reserved_stroops), of.fees.limit_per_principal_stroops)
      }
    ]
  })

const uses: Readonly<Record<string, string>> = { idle: "Idle", leased: "Leased" }

const ChannelTable = (props: { readonly label: string; readonly rows: ReadonlyArray<ChannelShown> }): VNode<any> =>
  h(Table<ChannelShown>, {
    label: props.label,
    cards: true,
    rows: props.rows,
    keyOf: ({ address }) => address,
    empty: "No channels yet. They are created while the sponsor has the balance for them.",
    columns: [
      { head: "Account", card: "first", cell: ({ address }) => h(Thing, { kind: "account", id: address }) },
      { head: "Number", numeric: true, cell: ({ number }) => String(number) },
      { head: "State", card: "last", cell: ({ state }) => h(State, { word: state }) },
      {
        head: "Use",
        card: "under",
        cell: ({ use }) => (use.length === 36 ? h(Thing, { kind: "settlement", id: use }) : (uses[use] ?? use))
      },
      {
        head: "Reserved by",
        card: "aside",
        cell: ({ claimed }) => (claimed ? "This replica" : "No replica, or another")
      }
    ]
  })

/** One line counts the ready channels; channels in another state are listed. */
const Channels = ({ of }: { readonly of: FacilitatorStatus }): VNode<any> => {
  const isReady = ({ state }: ChannelShown): boolean => state === "ready"
  const ready = of.channels.filter(isReady)
  const busy = ready.filter(({ use }) => use !== "idle")
  if (of.channels.length === 0) return h(ChannelTable, { label: "Channels", rows: [] })
  const others = of.channels.filter((one) => !isReady(one))
  return tag(
    "div",
    others.length === 0 ? null : h(ChannelTable, { label: "Channels that are not ready", rows: others }),
    tag("p", `${counted(ready.length, "channel")} ready, ${count(busy.length)} in use.`),
    ready.length === 0
      ? null
      : tag(
          "details",
          tag("summary", `Ready channels (${count(ready.length)})`),
          h(ChannelTable, { label: "Channels", rows: ready })
        )
  )
}

const moveWords: Readonly<Record<string, string>> = {
  "give-up": "Give up a settlement",
  "resize-channels": "Resize the channels",
  rotate: "Rotate keys",
  reread: "Read keys again",
  limit: "Change a limit",
  drain: "Move a former sponsor's XLM",
  restore: "Restore a backup",
  repair: "Repair the database",
  reset: "Reset the state",
  seal: "Seal seeds",
  move: "Move the database",
  "begin-epoch": "Begin an epoch of the log",
  replay: "Replay webhooks",
  enable: "Enable a webhook",
  rebuild: "Rebuild reports"
}
const outcomeWords: Readonly<Record<string, string>> = { asked: "Asked", done: "Done" }

const Audit = ({ refresh }: { readonly refresh: number }): VNode<any> =>
  h(Shown<Moves>, {
    asked: useAsked<Moves>(`/dashboard/v1/moves?refresh=${refresh}`),
    show: ({ items }) =>
      h(Table<Moves["items"][number]>, {
        label: "Operator actions",
        rows: items,
        keyOf: ({ id }) => id,
        cards: true,
        empty: "No actions yet. Each action on this page or the command line is recorded here with its reason.",
        columns: [
          { head: "When", card: "last", cell: ({ at }) => h(Moment, { at }) },
          { head: "Operator", cell: ({ by, via }) => `${by}, ${via}` },
          { head: "Action", card: "first", cell: ({ move }) => moveWords[move] ?? move },
          {
            head: "Subject",
            cell: ({ subject }) =>
              isTransaction(subject) ? h(Thing, { kind: "settlement", id: subject }) : tag("code.subject", subject)
          },
          {
            head: "Change",
            cell: ({ after, before }) => [written(before ?? "–"), " → ", written(after ?? "–")]
          },
          { head: "Reason", cell: ({ note }) => written(note) },
          { head: "Outcome", cell: ({ outcome }) => outcomeWords[outcome] ?? outcome }
        ]
      })
  })

const Resize = (props: {
  readonly of: FacilitatorStatus
  readonly mayMove: boolean
  readonly done: () => void
}): VNode<any> =>
  h(
    Confirmed,
    {
      label: "Resize",
      question: "Change the number of channels?",
      disabled: !props.mayMove,
      run: (note, given) =>
        post("/dashboard/v1/moves", { move: "resize-channels", count: Number(given.get("count")), note }),
      done: props.done
    },
    h(Entry, {
      label: "Channels ",
      type: "number",
      name: "count",
      min: 1,
      max: 1_000,
      required: true,
      defaultValue: String(props.of.channels_required)
    })
  )

/** An actor, and the result of a reconciler's last run. */
const ActorLine = ({ one }: { readonly one: ActorShown }): VNode<any> =>
  tag(
    "li",
    tag(
      "span",
      one.actor,
      one.last_run_at === null
        ? null
        : tag(
            "span.note",
            "Last run ",
            h(Moment, { at: one.last_run_at }),
            `, ${count(one.last_run_ms ?? 0)} ms, by ${one.last_run_cause}`
          )
    ),
    tag(
      "span.held",
      one.restarts === 0 ? null : tag("span.quiet", `${counted(one.restarts, "restart")} `),
      h(State, { word: one.last_run_outcome === "failed" ? "failed" : one.state })
    )
  )

const isWell = (one: ActorShown): boolean => one.state === "running" && one.last_run_outcome !== "failed"

/** Shows plugins and actors that do not run first, expanded. The running ones are collapsed in one line. */
const Parts = ({ of }: { readonly of: FacilitatorStatus }): VNode<any> => {
  const broken = of.plugins.filter(({ state }) => state !== "running")
  const failing = of.actors.filter((one) => !isWell(one))
  const plugin = ({ detail, id, state }: FacilitatorStatus["plugins"][number]) =>
    h(
      "li",
      { key: id },
      tag("span", id, detail === null ? null : tag("span.note", written(detail))),
      tag("span.held", h(State, { word: state }))
    )
  const actor = (one: ActorShown) => h(ActorLine, { key: one.actor, one })
  return tag(
    "div",
    tag(
      "p",
      broken.length === 0 && failing.length === 0
        ? `All ${count(of.plugins.length)} plugins and ${count(of.actors.length)} actors run.`
        : `${counted(broken.length, "plugin")} and ${counted(failing.length, "actor")} need attention.`
    ),
    broken.length + failing.length === 0 ? null : tag("ul.columns", broken.map(plugin), failing.map(actor)),
    tag("details", tag("summary", `Plugins (${count(of.plugins.length)})`), tag("ul.columns", of.plugins.map(plugin))),
    tag("details", tag("summary", `Actors (${count(of.actors.length)})`), tag("ul.columns", of.actors.map(actor)))
  )
}

const isAllWell = ({ actors, plugins }: FacilitatorStatus): boolean =>
  actors.every(isWell) && plugins.every(({ state }) => state === "running")

export const StatusView = ({ mayMove }: { readonly mayMove: boolean }): VNode<any> => {
  const [read, readAgain] = useState(0)
  const asked = useAsked<FacilitatorStatus>(`/dashboard/v1/standing?refresh=${read}`, 3_000)
  const done = () => readAgain(read + 1)
  return h(Shown<FacilitatorStatus>, {
    asked,
    show: (of) => {
      const open = panel({ title: "Pending and unresolved", wide: true }, h(WithoutEndTable, { of }))
      const parts = panel({ title: "Plugins and actors", wide: true }, h(Parts, { of }))
      return tag(
        "div.grid",
        mayMove
          ? null
          : tag(
              "div.wide-grid",
              h(
                Notice,
                { kind: "hint" },
                "The actions of this view require an operator's key: sign in with one, or use the command line."
              )
            ),
        // Problems come first.
        isAllWell(of) ? null : parts,
        of.without_end.length === 0 ? null : open,
        panel(
          {
            title: "Current status",
            wide: true,
            actions: h(SaveCsv, { name: "operation", path: "/dashboard/v1/standing" })
          },
          h(StatusFigures, { of })
        ),
        of.without_end.length === 0 ? open : null,
        panel(
          {
            title: "Channel accounts",
            wide: true,
            actions: h(Resize, { of, mayMove, done })
          },
          h(Channels, { of })
        ),
        panel({ title: "Fees by caller today", wide: true }, h(BudgetTable, { of })),
        panel({ title: "Limits", wide: true }, h(LimitsPanel, { of, mayMove, done })),
        panel({ title: "Books by month", wide: true }, h(BooksPanel, {})),
        h(BatchView, {}),
        h(WaitingDeliveries, {}),
        h(RotationView, { mayMove, refresh: read, done }),
        isAllWell(of) ? parts : null,
        panel(
          {
            title: "Operator actions",
            wide: true,
            actions: h(SaveCsv, { name: "operator actions", path: "/dashboard/v1/moves" })
          },
          tag("div.acts", h(Audit, { refresh: read }))
        )
      )
    }
  })
}
