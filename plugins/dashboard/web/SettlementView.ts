// One settlement: payer, recipient, resource and fee, a timeline to scale and step by step, and its attempts. An
// operator may give up a settlement that the ledger will never decide.
import { h, type VNode } from "preact"
import { useState } from "preact/hooks"
import { post, useAsked } from "./ask.ts"
import { Confirmed } from "./Confirmed.ts"
import { address, amount, type Denomination, seconds, stroops } from "./format.ts"
import { type Child, type Figure, Figures, Moment, Notice, panel, SettlementState, Shown, written } from "./parts.ts"
import { Reason, reasonText } from "./reasons.ts"
import type { Life, Settlement } from "./reports.ts"
import { Table } from "./Table.ts"
import { tag } from "./tag.ts"
import { Copy, Thing } from "./things.ts"
import { type Mark, TimelineStrip } from "./TimelineStrip.ts"

const Step = (props: {
  readonly name: string
  readonly at?: string | null
  readonly since?: string
  readonly kind: "done" | "now" | "failed"
  readonly children?: Child
}): VNode<any> => {
  const millis =
    props.at == null || props.since === undefined ? undefined : Date.parse(props.at) - Date.parse(props.since)
  const shown = millis === undefined ? undefined : `+${seconds(Math.max(0, millis))}`
  return h(
    "li",
    { class: props.kind },
    tag("strong", props.name),
    tag(
      "span.quiet.at",
      props.at == null ? null : h(Moment, { at: props.at, ...(shown === undefined ? {} : { shown }) })
    ),
    props.children == null ? null : tag("div.quiet.more-of", props.children)
  )
}

const isOpen = ({ state }: Life): boolean => state === "prepared" || state === "submitted"

/** A node's response to a transaction, with the RPC's status as key. */
const answerWords: Readonly<Record<string, string>> = {
  Pending: "Accepted",
  Duplicate: "Accepted before",
  TryAgainLater: "Asked to try again later",
  Error: "Refused"
}

const sentText = (one: Life["attempts"][number]): string =>
  one.sent_status === null
    ? "Not sent yet"
    : `${answerWords[one.sent_status] ?? one.sent_status} at ledger ${one.sent_ledger ?? "–"}`

const Attempts = ({ of }: { readonly of: Life }): VNode<any> =>
  h(Table<Life["attempts"][number]>, {
    label: "Attempts",
    rows: of.attempts,
    keyOf: ({ number }) => String(number),
    cards: true,
    empty: "Nothing was submitted yet.",
    columns: [
      {
        head: "Attempt",
        card: "first",
        cell: ({ kind, number }) => `${number}${kind === "cancel" ? ", a cancellation" : ""}`
      },
      { head: "Node's answer", card: "last", cell: sentText },
      { head: "Bid for inclusion", numeric: true, cell: ({ bid_stroops }) => stroops(bid_stroops) },
      { head: "Sent", cell: ({ recorded_at, sent_at }) => h(Moment, { at: sent_at ?? recorded_at }) },
      {
        head: "Outer hash",
        cell: ({ outer_hash }) => h(Thing, { kind: "settlement", id: outer_hash })
      }
    ]
  })

const End = ({ of, since }: { readonly of: Life; readonly since: string }): VNode<any> =>
  isOpen(of)
    ? h(Step, { name: "Pending: followed until the ledger decides", kind: "now" })
    : h(
        Step,
        {
          name: endText[of.state] ?? of.state,
          kind: of.state === "settled" ? "done" : "failed",
          at: of.resolved_at,
          since
        },
        of.reason === null ? null : tag("span", reasonText(of.reason), " ", tag("code", of.reason)),
        of.reason_message === null ? null : tag("div", written(of.reason_message))
      )

const endText: Readonly<Record<string, string>> = {
  settled: "Settled",
  failed: "Failed",
  expired: "Expired",
  unresolved: "Unresolved: an operator decides"
}

const Steps = ({ of }: { readonly of: Life }): VNode<any> => {
  const since = of.asked_at ?? of.recorded_at
  const sent = of.attempts.find(({ sent_at }) => sent_at !== null)
  return tag(
    "ol.steps.life",
    of.asked_at === null ? null : h(Step, { name: "Requested", kind: "done", at: of.asked_at }),
    h(Step, { name: "Verified", kind: "done", at: of.verified_at, since }),
    h(
      Step,
      { name: "Channel leased", kind: "done", at: of.leased_at, since },
      h(Thing, { kind: "account", id: of.channel })
    ),
    h(
      Step,
      { name: "Recorded", kind: "done", at: of.recorded_at, since },
      `At ledger ${of.recorded_ledger}; expires at ledger ${of.expires_ledger}.`
    ),
    sent === undefined ? null : h(Step, { name: "Submitted", kind: "done", at: sent.sent_at, since }, sentText(sent)),
    of.ledger === null ? null : h(Step, { name: `In ledger ${of.ledger}`, kind: "done", at: of.closed_at }),
    h(End, { of, since }),
    of.delivered_at === null
      ? null
      : h(Step, { name: "Delivered to the caller", kind: "done", at: of.delivered_at, since })
  )
}

/**
 * Steps that have a time, as marks of the timeline. The ledger's close time is left out: it has whole seconds and comes
 * from another clock.
 */
const marksOf = (of: Life): ReadonlyArray<Mark> => {
  const sent = of.attempts.find(({ sent_at }) => sent_at !== null)?.sent_at ?? null
  const steps: ReadonlyArray<readonly [string, string | null, Mark["tone"]]> = [
    ["Requested", of.asked_at, "done"],
    ["Verified", of.verified_at, "done"],
    ["Channel leased", of.leased_at, "done"],
    ["Recorded", of.recorded_at, "done"],
    ["Submitted", sent, "done"],
    [
      of.state === "settled" ? "Settled" : (endText[of.state] ?? of.state),
      of.resolved_at,
      of.state === "settled" ? "done" : "failed"
    ],
    ["Delivered", of.delivered_at, "done"]
  ]
  return steps.flatMap(([label, at, tone]) => (at === null ? [] : [{ label, at, tone }]))
}

/** Accounts and the listing come from the reports, which redact addresses if so configured. */
const Parties = ({ of }: { readonly of: Life }): VNode<any> => {
  const asked = useAsked<Settlement>(
    `/analytics/v1/transactions/${of.transaction_hash}`,
    isOpen(of) ? 3_000 : undefined
  )
  const row = asked.state === "ready" ? asked.body : undefined
  const later = tag("span.quiet", "known when it ends")
  const account = (id: string | undefined) => (id === undefined ? later : h(Thing, { kind: "account", id }))
  return h(Figures, {
    items: [
      { label: "Payer", value: account(row?.payer) },
      { label: "Recipient", value: account(row?.pay_to) },
      ...resourceOf(of.resource_url, row?.resource_id ?? null),
      { label: "Asset", value: h(AssetOf, { of }) },
      { label: "Key", value: h(Thing, { kind: "key", id: of.principal }) },
      {
        label: "Fee",
        value: of.charged_stroops === null ? "–" : stroops(of.charged_stroops),
        note: `at most ${stroops(of.reserved_stroops)}, paid by the sponsor`
      },
      { label: "Scheme", value: of.scheme, note: of.network },
      ...(of.payment_identifier === null
        ? []
        : [
            {
              label: "Payment identifier",
              value: tag(
                "span.thing",
                tag("code", of.payment_identifier),
                h(Copy, { text: of.payment_identifier, noun: "payment identifier" })
              )
            }
          ])
    ]
  })
}

const AssetOf = ({ of }: { readonly of: Denomination }): VNode<any> =>
  of.asset === null
    ? tag("span", "–")
    : h(Thing, { kind: "asset", id: of.asset, ...(of.asset_symbol === null ? {} : { text: of.asset_symbol }) })

const resourceOf = (url: string | null, id: string | null): ReadonlyArray<Figure> =>
  url === null
    ? []
    : [
        {
          label: "Resource",
          value:
            id === null ? written(address(url)) : h(Thing, { kind: "resource", id, text: address(url), copies: url }),
          note: originOf(url),
          isWide: true
        }
      ]

const originOf = (url: string): VNode<any> | undefined => {
  if (!/^https?:/i.test(url) || !URL.canParse(url)) return undefined
  const { origin } = new URL(url)
  return tag("span", "of ", h(Thing, { kind: "origin", id: origin }))
}

const Hash = ({ of }: { readonly of: string }): VNode<any> =>
  tag("div", tag("span.note", "Transaction"), h(Thing, { kind: "settlement", id: of, whole: true }))

const unknown = (more?: string): VNode<any> =>
  panel(
    { title: "Unknown settlement", wide: true },
    tag("p", "No settlement of this facilitator has this id or hash. Check that it is whole, or find its payer."),
    more === undefined ? null : tag("p.quiet", more)
  )

/** The settlement as the reports have it, for callers without an operator's key. */
export const RecordView = ({ id }: { readonly id: string }): VNode<any> => {
  const asked = useAsked<Settlement>(`/analytics/v1/transactions/${encodeURIComponent(id)}`, 5_000)
  if (asked.state === "failed" && (asked.status === 404 || asked.status === 400))
    return unknown("A pending one is shown here as soon as it ends.")
  return h(Shown<Settlement>, {
    asked,
    show: (of) =>
      h(
        "section",
        { class: "panel wide hero", "aria-label": "Payment" },
        tag(
          "div.row",
          tag("span.sum", amount(of.status === "success" ? of.amount : of.max_amount, of)),
          h(SettlementState, { word: of.status })
        ),
        h(Hash, { of: of.transaction_hash }),
        of.error_reason === null ? null : h(Reason, { word: of.error_reason }),
        h(Figures, {
          items: [
            { label: "Payer", value: h(Thing, { kind: "account", id: of.payer }) },
            { label: "Recipient", value: h(Thing, { kind: "account", id: of.pay_to }) },
            ...resourceOf(of.resource_url, of.resource_id),
            { label: "Asset", value: h(AssetOf, { of }) },
            { label: "Time", value: h(Moment, { at: of.occurred_at }) },
            { label: "Fee", value: stroops(of.fee_stroops), note: "paid by the sponsor" },
            { label: "Scheme", value: of.scheme, note: of.network }
          ]
        })
      )
  })
}

export const SettlementView = (props: { readonly id: string; readonly mayMove: boolean }): VNode<any> => {
  const [again, readAgain] = useState(0)
  const asked = useAsked<Life>(`/dashboard/v1/settlements/${encodeURIComponent(props.id)}?refresh=${again}`, 2_000)
  if (asked.state === "failed" && asked.status === 404) return unknown()
  return h(Shown<Life>, {
    asked,
    show: (of) =>
      tag(
        "div.grid",
        h(
          "section",
          { class: "panel wide hero", "aria-label": "Payment" },
          tag("div.row", tag("span.sum", amount(of.moved ?? of.amount, of)), h(SettlementState, { word: of.state })),
          h(Hash, { of: of.transaction_hash }),
          h(Parties, { of }),
          isOpen(of) ? h(GiveUp, { of, mayMove: props.mayMove, done: () => readAgain(again + 1) }) : null
        ),
        panel(
          { title: "Timeline", wide: true },
          h(TimelineStrip, { marks: marksOf(of) }),
          tag("h3", "Steps"),
          h(Steps, { of })
        ),
        panel({ title: "Attempts", wide: true }, h(Attempts, { of }))
      )
  })
}

const GiveUp = (props: { readonly of: Life; readonly mayMove: boolean; readonly done: () => void }): VNode<any> =>
  props.mayMove
    ? h(Confirmed, {
        label: "Give up",
        question: "Mark this settlement as unresolved? It may have moved money, and it is no longer followed.",
        run: (note) => post("/dashboard/v1/moves", { move: "give-up", settlement: props.of.id, note }),
        done: props.done
      })
    : h(
        Notice,
        { kind: "hint" },
        "To give it up, sign in with an operator's key, or use the command line: settlements give-up."
      )
