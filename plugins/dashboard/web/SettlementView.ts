// The timeline of one settlement: verification, channel lease, record, each attempt to submit it, the ledger that
// included it, its outcome and its delivery, with the time since the request. An operator may give up one that the
// ledger will never decide.
import { h, type VNode } from "preact"
import { useState } from "preact/hooks"
import { post, useAsked } from "./ask.ts"
import { Confirmed } from "./Confirmed.ts"
import { address, amount, stroops, type Denomination } from "./format.ts"
import { type Child, Figures, Moment, Name, Notice, Panel, SettlementState, Shown, written } from "./parts.ts"

interface Life extends Denomination {
  readonly id: string
  readonly state: string
  readonly network: string
  readonly scheme: string
  readonly amount: string
  readonly moved: string | null
  readonly principal: string
  readonly resource_url: string | null
  readonly transaction_hash: string
  readonly channel: string
  readonly asked_at: string | null
  readonly verified_at: string | null
  readonly leased_at: string | null
  readonly recorded_at: string
  readonly recorded_ledger: number
  readonly expires_ledger: number
  readonly attempts: ReadonlyArray<{
    readonly number: number
    readonly kind: string
    readonly outer_hash: string
    readonly bid_stroops: string
    readonly recorded_at: string | null
    readonly recorded_ledger: number
    readonly sent_at: string | null
    readonly sent_status: string | null
    readonly sent_ledger: number | null
  }>
  readonly ledger: number | null
  readonly closed_at: string | null
  readonly resolved_at: string | null
  readonly delivered_at: string | null
  readonly reserved_stroops: string
  readonly charged_stroops: string | null
  readonly reason: string | null
  readonly reason_message: string | null
  readonly explorer_url: string | null
}

const Step = (props: {
  readonly name: string
  readonly at?: string | null
  readonly since?: string
  readonly kind: "done" | "now" | "failed"
  readonly children?: Child
}): VNode<any> => {
  const millis =
    props.at == null || props.since === undefined ? undefined : Date.parse(props.at) - Date.parse(props.since)
  return h(
    "li",
    { class: props.kind },
    h(
      "div",
      { class: "row" },
      h("strong", null, props.name),
      millis === undefined ? null : h("span", { class: "quiet" }, `after ${(Math.max(0, millis) / 1_000).toFixed(2)} s`)
    ),
    props.at == null ? null : h(Moment, { at: props.at }),
    h("div", null, props.children)
  )
}

const isOpen = ({ state }: Life): boolean => state === "prepared" || state === "submitted"

const Attempts = ({ of, since }: { readonly of: Life; readonly since: string }): ReadonlyArray<VNode<any>> =>
  of.attempts.map((one) =>
    h(
      Step,
      {
        key: one.number,
        name: `Attempt ${one.number}${one.kind === "cancel" ? " (cancel)" : ""}`,
        kind: "done",
        at: one.sent_at ?? one.recorded_at,
        since
      },
      h(Name, { text: one.outer_hash }),
      ` bids ${stroops(one.bid_stroops)} for inclusion; `,
      one.sent_status === null
        ? "not sent yet"
        : `the node's answer: ${one.sent_status} at ledger ${one.sent_ledger ?? "–"}`
    )
  )

const End = ({ of, since }: { readonly of: Life; readonly since: string }): VNode<any> =>
  isOpen(of)
    ? h(Step, { name: "Pending: followed until the ledger confirms an outcome", kind: "now" })
    : h(
        Step,
        {
          name: `Ended: ${of.state}`,
          kind: of.state === "settled" ? "done" : "failed",
          at: of.resolved_at,
          since
        },
        of.charged_stroops === null ? null : `The ledger charged ${stroops(of.charged_stroops)}. `,
        of.reason,
        of.reason_message === null ? null : h("div", null, written(of.reason_message))
      )

/** The steps before the record: request, verification, channel. */
const Before = ({ of, since }: { readonly of: Life; readonly since: string }): ReadonlyArray<VNode<any> | null> => [
  of.asked_at === null ? null : h(Step, { name: "Requested", kind: "done", at: of.asked_at }),
  h(
    Step,
    { name: "Verified", kind: "done", at: of.verified_at, since },
    "The signature, the terms and a simulation on the ledger, independent of any earlier /verify."
  ),
  h(
    Step,
    { name: "Channel leased", kind: "done", at: of.leased_at, since },
    h(Name, { text: of.channel }),
    " carries this transaction alone until it ends."
  )
]

const Timeline = ({ of }: { readonly of: Life }): VNode<any> => {
  const since = of.asked_at ?? of.recorded_at
  return h(
    "ol",
    { class: "steps" },
    h(Before, { of, since }),
    h(
      Step,
      { name: "Recorded before submission", kind: "done", at: of.recorded_at, since },
      `At ledger ${of.recorded_ledger}; expires at ledger ${of.expires_ledger}. `,
      `At most ${stroops(of.reserved_stroops)} of fees reserved.`
    ),
    h(Attempts, { of, since }),
    of.ledger === null
      ? null
      : h(
          Step,
          { name: `Included in ledger ${of.ledger}`, kind: "done", at: of.closed_at },
          h(Name, { text: of.transaction_hash })
        ),
    h(End, { of, since }),
    of.delivered_at === null
      ? null
      : h(Step, { name: "Success delivered to the caller", kind: "done", at: of.delivered_at, since })
  )
}

export const SettlementView = (props: { readonly id: string; readonly mayMove: boolean }): VNode<any> => {
  const [again, readAgain] = useState(0)
  const asked = useAsked<Life>(`/dashboard/v1/settlements/${encodeURIComponent(props.id)}?refresh=${again}`, 2_000)
  return h(Shown<Life>, {
    asked,
    show: (of) =>
      h(
        "div",
        { class: "grid" },
        h(
          Panel,
          { title: "Payment" },
          h(Figures, {
            items: [
              { label: "State", value: h(SettlementState, { word: of.state }) },
              { label: of.moved === null ? "Amount" : "Amount settled", value: amount(of.moved ?? of.amount, of) },
              { label: "Scheme", value: of.scheme, note: of.network },
              { label: "Settled for", value: of.principal },
              { label: "Transaction", value: h(Name, { text: of.transaction_hash, whole: true }) }
            ]
          }),
          of.resource_url === null
            ? null
            : h("p", { class: "quiet" }, "For ", h("span", { class: "url" }, written(address(of.resource_url)))),
          of.explorer_url === null
            ? h("p", { class: "quiet" }, "This ledger runs in the facilitator; no explorer shows it.")
            : h("p", null, h("a", { href: of.explorer_url, rel: "noreferrer" }, "Open in an explorer")),
          isOpen(of) ? h(GiveUp, { of, mayMove: props.mayMove, done: () => readAgain(again + 1) }) : null
        ),
        h(Panel, { title: "Timeline" }, h(Timeline, { of }))
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
