// The public pages of one resource (`/resource`) and of one recipient account (`/payee`). They show only responses of
// the public discovery routes, with badges that a seller can embed.
import { h, type VNode } from "preact"
import { useEffect } from "preact/hooks"
import { useFacts } from "./about.ts"
import { useAsked } from "./ask.ts"
import { Find } from "./Find.ts"
import { address, count, percent, tabTitle } from "./format.ts"
import { nameOf } from "./listings.ts"
import { Bar, type Child, draw, Figures, Foot, Moment, panel, Shown, State, written } from "./parts.ts"
import { payeePageOf, publicPageOf } from "./place.ts"
import { Prices } from "./PriceHistory.ts"
import { priceOf } from "./prices.ts"
import type { About, Listing, ListingHistory, PaymentOption } from "./reports.ts"
import { useSession } from "./session.ts"
import { Table } from "./Table.ts"
import { tag } from "./tag.ts"
import { Copy, Thing } from "./things.ts"

const badgeKinds = [
  ["listing", "Verified listing"],
  ["calls", "Settled calls"],
  ["uptime", "Uptime"]
] as const

const badgePath = (kind: string, { accepts, resource }: Listing): string =>
  `/badge/${kind}.svg?${new URLSearchParams({ url: resource, payTo: accepts[0]?.payTo ?? "" })}`

const Badges = ({ of }: { readonly of: Listing }): VNode<any> =>
  panel(
    { title: "Badges" },
    tag(
      "p.quiet",
      "For the seller's own page: a picture of this facilitator's public figures. ",
      "It sets no cookie and names no visitor."
    ),
    tag(
      "div.badges",
      badgeKinds.map(([kind, label]) => {
        const path = badgePath(kind, of)
        const image = `<img src="${location.origin}${path}" alt="${label}">`
        const html = `<a href="${location.origin}${publicPageOf(of)}">${image}</a>`
        return h(
          "div",
          { key: kind, class: "row" },
          h("img", { src: path, alt: label, height: 20 }),
          h(Copy, { text: html.replaceAll("&", "&amp;"), noun: `HTML of the badge ${label.toLowerCase()}` })
        )
      })
    )
  )

const Price = (props: { readonly terms: PaymentOption; readonly facts: About | undefined }): VNode<any> =>
  tag(
    "div.row",
    tag("span.sum", priceOf(props.terms, props.facts?.assets ?? [])),
    tag("span.quiet", `${props.terms.scheme} on ${props.terms.network}, paid to`),
    h(Thing, { kind: "account", id: props.terms.payTo, href: payeePageOf(props.terms.payTo) })
  )

const ResourceShown = (props: { readonly of: Listing; readonly query: URLSearchParams }): VNode<any> => {
  const { of } = props
  const facts = useFacts()
  const history = useAsked<ListingHistory>(`/discovery/history?${props.query}`)
  return tag(
    "div.grid",
    h(
      "section",
      { class: "panel wide hero", "aria-label": "Resource" },
      tag("div.row", h(State, { word: of.status }), h(State, { word: of.ownership })),
      tag("div.row", tag("span.url", written(address(of.resource))), h(Copy, { text: of.resource, noun: "URL" })),
      of.description === undefined ? null : tag("p.written", of.description),
      of.accepts.slice(0, 4).map((terms, index) => h(Price, { key: index, terms, facts })),
      of.tags === undefined || of.tags.length === 0 ? null : tag("div.row.quiet", of.tags.map(written))
    ),
    panel(
      { title: "Evidence" },
      h(Figures, {
        items: [
          { label: "Settled calls", value: count(of.settlements ?? 0), note: "in 30 days" },
          { label: "Payers", value: count(of.payers ?? 0), note: "in 30 days" },
          {
            label: "Uptime",
            value: of.uptime === undefined ? "–" : percent(of.uptime, 1),
            note: of.uptime === undefined ? "not probed" : undefined
          },
          {
            label: "Owner",
            value: of.ownership === "proven" ? "Confirmed" : "Unconfirmed",
            note:
              of.ownership === "proven"
                ? "its origin names the recipient"
                : "its origin does not name the recipient yet"
          },
          { label: "Last change", value: h(Moment, { at: of.lastUpdated }) }
        ]
      })
    ),
    h(Badges, { of }),
    panel(
      { title: "Price history", wide: true },
      h(Shown<ListingHistory>, { asked: history, show: (body) => h(Prices, { of: body, assets: facts?.assets ?? [] }) })
    )
  )
}

const Titled = (props: { readonly title: Child; readonly children?: Child }): VNode<any> =>
  tag("div", tag("h1", props.title), props.children)

const ResourcePage = ({ query }: { readonly query: URLSearchParams }): VNode<any> => {
  const asked = useAsked<{ readonly resource?: Listing } & Partial<Listing>>(`/discovery/resource?${query}`)
  if (asked.state === "failed" && asked.status === 404)
    return h(
      Titled,
      { title: "Not listed" },
      tag(
        "p.lead",
        "This facilitator lists no resource of this URL. A seller sees why on the page for sellers: ",
        h("a", { href: "/seller" }, "Why am I not listed?")
      )
    )
  return h(Shown<unknown>, {
    asked,
    show: (body) => {
      const of = (
        typeof (body as Listing).resource === "string" ? body : (body as { resource: Listing }).resource
      ) as Listing
      return h(Titled, { title: written(nameOf(of)) }, h(ResourceShown, { of, query: historyQuery(query) }))
    }
  })
}

/** The history route uses another name for the URL parameter. */
const historyQuery = (query: URLSearchParams): URLSearchParams => {
  const asked = new URLSearchParams(query)
  asked.set("resource", query.get("url") ?? "")
  asked.delete("url")
  return asked
}

const PayeePage = ({ account }: { readonly account: string }): VNode<any> => {
  const facts = useFacts()
  const asked = useAsked<{ readonly items: ReadonlyArray<Listing>; readonly pagination: { readonly total?: number } }>(
    `/discovery/resources?limit=100&payTo=${encodeURIComponent(account)}`,
    30_000
  )
  return h(
    Titled,
    { title: "Recipient" },
    tag(
      "div.grid",
      h(
        "section",
        { class: "panel wide hero", "aria-label": "Account" },
        h(Thing, { kind: "account", id: account, whole: true })
      ),
      panel(
        { title: "Resources for sale", wide: true },
        h(Shown<{ readonly items: ReadonlyArray<Listing> }>, {
          asked,
          show: ({ items }) =>
            h(Table<Listing>, {
              label: "Resources for sale",
              rows: items,
              keyOf: (one) => `${one.resource} ${one.toolName ?? ""}`,
              cards: true,
              empty: "Nothing that pays this account is listed here.",
              columns: [
                {
                  head: "Resource",
                  card: "first",
                  cell: (one) => h("a", { href: publicPageOf(one) }, written(nameOf(one)))
                },
                {
                  head: "Price",
                  card: "under",
                  numeric: true,
                  cell: ({ accepts }) => (accepts[0] === undefined ? "–" : priceOf(accepts[0], facts?.assets ?? []))
                },
                { head: "State", card: "last", cell: ({ status }) => h(State, { word: status }) },
                {
                  head: "Settled in 30 days",
                  card: "aside",
                  numeric: true,
                  cell: ({ settlements }) => count(settlements ?? 0)
                },
                {
                  head: "Uptime",
                  numeric: true,
                  cell: ({ uptime }) => (uptime === undefined ? "–" : percent(uptime, 1))
                }
              ]
            })
        })
      )
    )
  )
}

const Page = (): VNode<any> => {
  const session = useSession()
  const query = new URLSearchParams(location.search)
  if (!query.has("type")) query.set("type", query.has("toolName") ? "mcp" : "http")
  const isPayee = location.pathname === "/payee"
  const name = query.get(isPayee ? "account" : "url") ?? ""
  useEffect(() => {
    document.title = tabTitle(isPayee ? "Recipient" : "Resource", name)
  }, [])
  return tag(
    "div",
    h(Bar, { here: location.pathname, find: h(Find, { mayRead: session?.may_read === true }) }),
    h("main", { id: "main" }, isPayee ? h(PayeePage, { account: name }) : h(ResourcePage, { query })),
    h(Foot, {})
  )
}

draw(h(Page, {}))
