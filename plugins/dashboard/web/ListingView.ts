// "Why am I not listed?": observations and decisions for a URL, and the steps that would raise its listing's grade.
import { h, type VNode } from "preact"
import { useAsked } from "./ask.ts"
import { address, count } from "./format.ts"
import { bareUrl, nameOf } from "./listings.ts"
import { Moment, Notice, panel, Shown, State, written } from "./parts.ts"
import { amend, payeePageOf, usePlace, useTyped } from "./place.ts"
import { reasonText } from "./reasons.ts"
import { Table } from "./Table.ts"
import { tag } from "./tag.ts"
import { Thing } from "./things.ts"
import { type Decision, Decisions, stageText } from "./decisions.ts"

interface Listing {
  readonly type: string
  readonly resource: string
  readonly toolName?: string
  readonly status: string
  readonly reason?: string
  readonly verification: string
  readonly ownership: string
  readonly version: number
  /** The next step that would raise the grade. */
  readonly raisedBy?: string
  readonly decisions: ReadonlyArray<Decision>
}

interface Observed {
  readonly resource: string
  readonly payTo: string
  readonly stage: string
  readonly decision: string
  readonly reason?: string
  readonly times: string
  readonly lastAt: string
}

export interface Explained {
  readonly listings: ReadonlyArray<Listing>
  readonly items: ReadonlyArray<Observed>
}

/** The seller's next steps, from the listing's state. */
const adviceOf = ({ ownership, raisedBy, status, verification }: Listing): ReadonlyArray<string> => [
  ...(verification === "payment_observed" ? [] : ["Have one buyer pay: unpaid listings rank last."]),
  ...(ownership === "proven"
    ? []
    : [
        "Let your origin name the account that is paid: answer 402 with these terms, or serve /.well-known/x402. " +
          "Until then, a payment of someone else may have declared it."
      ]),
  ...(raisedBy === undefined || raisedBy.startsWith("nothing") ? [] : [`To raise its grade: ${raisedBy}.`]),
  ...(status === "stale" ? ["Take another payment: a stale listing is left out."] : []),
  ...(status === "quarantined" ? ["It is quarantined until an operator restores it."] : [])
]

const ListingShown = ({ of }: { readonly of: Listing }): VNode<any> => {
  const advice = adviceOf(of)
  return tag(
    "li.item",
    tag("h3", written(nameOf(of))),
    nameOf(of) === bareUrl(of.resource) ? null : tag("div.url", written(address(of.resource))),
    tag(
      "div.row",
      h(State, { word: of.status }),
      h(State, { word: of.ownership }),
      h(State, { word: of.verification })
    ),
    advice.length === 0
      ? tag("p", "Nothing is missing.")
      : tag(
          "ul",
          advice.map((sentence) => h("li", { key: sentence }, sentence))
        ),
    h(Decisions, { items: of.decisions })
  )
}

export const ListingsShown = ({ listings }: { readonly listings: ReadonlyArray<Listing> }): VNode<any> =>
  tag(
    "ul.list",
    listings.map((one) => h(ListingShown, { key: one.resource + (one.toolName ?? ""), of: one }))
  )

export const Observations = ({ items }: { readonly items: ReadonlyArray<Observed> }): VNode<any> =>
  h(Table<Observed>, {
    label: "Observations",
    rows: items,
    keyOf: (row) => row.resource + row.lastAt + row.stage + row.payTo + row.decision,
    empty: "No observations.",
    cards: true,
    columns: [
      { head: "Resource", card: "first", cell: ({ resource }) => written(bareUrl(resource)) },
      { head: "Decision", card: "last", cell: ({ decision }) => h(State, { word: decision }) },
      { head: "Reason", card: "under", cell: ({ reason }) => (reason === undefined ? "–" : reasonText(reason)) },
      { head: "Stage", cell: ({ stage }) => stageText(stage) },
      { head: "Recipient", cell: ({ payTo }) => h(Thing, { kind: "account", id: payTo, href: payeePageOf(payTo) }) },
      { head: "Times", numeric: true, cell: ({ times }) => count(times) },
      { head: "Last", card: "aside", cell: ({ lastAt }) => h(Moment, { at: lastAt }) }
    ]
  })

const Explanation = ({ of }: { readonly of: Explained }): VNode<any> =>
  tag(
    "div",
    of.listings.length === 0
      ? h(
          Notice,
          { kind: "hint" },
          of.items.length === 0
            ? "Nothing was ever observed of this URL. A resource is listed when a payment that declares it is verified."
            : "It is not listed; the observations below show why."
        )
      : h(ListingsShown, { listings: of.listings }),
    of.items.length === 0 ? null : tag("h3", "Observations"),
    of.items.length === 0 ? null : h(Observations, { items: of.items })
  )

export const ListingView = (): VNode<any> => {
  const { query } = usePlace()
  const url = query.get("url") ?? ""
  const [typed, type] = useTyped(url)
  const asked = useAsked<Explained>(
    url === "" ? undefined : `/catalog/v1/observations?url=${encodeURIComponent(url)}`,
    5_000
  )
  return panel(
    { title: "Why am I not listed?", wide: true },
    h(
      "form",
      {
        class: "line",
        onSubmit: (event: SubmitEvent) => {
          event.preventDefault()
          amend({ url: typed.trim() })
        }
      },
      tag(
        "label",
        "URL of your resource",
        h("input", {
          name: "url",
          type: "text",
          required: true,
          maxLength: 2_000,
          value: typed,
          onInput: ({ target }: Event) => type((target as HTMLInputElement).value)
        })
      ),
      h("button", { type: "submit", class: "main" }, "Explain")
    ),
    url === "" ? null : h(Shown<Explained>, { asked, show: (of) => h(Explanation, { of }) })
  )
}
