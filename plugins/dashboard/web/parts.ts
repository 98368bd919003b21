// Shared parts of the pages: panels, figures, tables, times and addresses. Sellers' and buyers' strings are only ever
// text, in an element with its own direction, so that neither markup nor bidirectional marks affect their surroundings.
import { type ComponentChildren, h, render, type VNode } from "preact"
import { useId, useState } from "preact/hooks"
import { type Asked, askCsv } from "./ask.ts"
import { count, moment, relative } from "./format.ts"
import { type Link, linkLabel } from "./stream.ts"
import { tag } from "./tag.ts"

export type Child = ComponentChildren

/** A URL breaks after its separators, and within a word only if that is not enough. */
const breakable = (url: string): ReadonlyArray<Child> =>
  url.split(/(?<=[/?&])(?![/])/).flatMap((part, index) => (index === 0 ? [part] : [h("wbr", { key: index }), part]))

/** Untrusted text. */
export const written = (text: string): VNode<any> =>
  tag("bdi.written", /^https?:[/]{2}/.test(text) ? breakable(text) : text)

interface PanelProps {
  readonly title: string
  readonly actions?: Child
  readonly wide?: boolean
  /** The page's title already names the panel, so the panel's title is for screen readers only. */
  readonly isPage?: boolean
  readonly children?: Child
}

const Panel = (props: PanelProps): VNode<any> => {
  const { actions, isPage, title, wide } = props
  const id = useId()
  return h(
    "section",
    { class: wide === true ? "panel wide" : "panel", "aria-labelledby": id },
    isPage === true
      ? [
          h("h2", { key: "title", id, class: "spoken" }, title),
          actions === undefined ? null : h("div", { key: "head", class: "panel-head" }, actions)
        ]
      : tag("div.panel-head", h("h2", { id }, title), actions),
    props.children
  )
}

export const panel = (props: Omit<PanelProps, "children">, ...children: ReadonlyArray<Child>): VNode<any> =>
  h(Panel, props, ...children)

/** A rounded figure, with the exact figure as its title. */
export const Exactly = (props: { readonly shown: string; readonly exact: string }): VNode<any> =>
  h("span", props.shown === props.exact ? null : { title: props.exact }, props.shown)

export interface Figure {
  readonly label: string
  readonly value: Child
  readonly note?: Child
  /** Takes the width of two figures, for long values such as a URL. */
  readonly isWide?: boolean
}

/** Named figures, side by side. */
export const Figures = ({ items }: { readonly items: ReadonlyArray<Figure> }): VNode<any> =>
  tag(
    "dl.figures",
    items.map(({ isWide, label, note, value }) =>
      h(
        "div",
        { key: label, class: isWide === true ? "span" : undefined },
        tag("dt", label),
        tag("dd", value, note === undefined ? null : tag("span.note", note))
      )
    )
  )

export const Notice = (props: { readonly kind: "error" | "hint"; readonly children?: Child }): VNode<any> =>
  h("p", { class: `notice ${props.kind}`, role: props.kind === "error" ? "alert" : "status" }, props.children)

/** Renders the three states of a request. */
export const Shown = <A>(props: { readonly asked: Asked<A>; readonly show: (body: A) => Child }): VNode<any> => {
  const { asked } = props
  if (asked.state === "loading") return h("p", { class: "quiet", "aria-busy": true }, "Loading…")
  if (asked.state === "failed") return h(Notice, { kind: "error" }, asked.words)
  return h(
    "div",
    { class: asked.lost === undefined ? "shown" : "shown stale" },
    asked.lost === undefined ? null : h(Notice, { kind: "error" }, `${asked.lost} Showing the last response.`),
    props.show(asked.body)
  )
}

/** A moment in the viewer's own time. Hover or focus shows it in UTC and how long ago it was. */
export const Moment = (props: {
  readonly at: string | null
  readonly inLink?: boolean
  /** Text to show instead of the viewer's own time, which then joins the details. */
  readonly shown?: string
}): VNode<any> => {
  const { at, inLink, shown } = props
  if (at === null) return tag("span.quiet", "–")
  const { own, utc } = moment(at)
  const more = [...(shown === undefined ? [] : [own]), utc, relative(at, Date.now())].join(", ")
  return h("time", { dateTime: at, "data-more": more, tabIndex: inLink === true ? undefined : 0 }, shown ?? own)
}

const tones: Readonly<Record<string, string>> = {
  success: "good",
  ready: "good",
  running: "good",
  active: "good",
  settled: "good",
  proven: "good",
  failed: "bad",
  expired: "bad",
  quarantined: "bad",
  removed: "bad",
  degraded: "warn",
  unknown: "warn",
  pending: "warn",
  unresolved: "warn",
  stale: "warn",
  provisional: "warn"
}

/** Longer words for states that are unclear by themselves. */
const stateWords: Readonly<Record<string, string>> = {
  provisional: "owner unconfirmed",
  proven: "owner confirmed"
}

/** A state as a word. The color repeats it. */
export const State = ({ word }: { readonly word: string }): VNode<any> =>
  h("span", { class: `state ${tones[word] ?? "plain"}` }, stateWords[word] ?? word.replaceAll("_", " "))

/** One word for each state of a settlement, whichever route reports it. */
const settlementStates: Readonly<Record<string, string>> = {
  success: "settled",
  unknown: "pending",
  prepared: "pending",
  submitted: "pending"
}

export const SettlementState = ({ word }: { readonly word: string }): VNode<any> =>
  h(State, { word: settlementStates[word] ?? word })

export const LinkState = ({ link }: { readonly link: Link }): VNode<any> =>
  h("span", { class: `state ${link === "open" ? "good" : "warn"}`, role: "status" }, linkLabel[link])

/** Rows of a CSV: the first value for a list by offset. A list by cursor has a higher maximum, from its route. */
const savedMax = 200
const bounds = [savedMax, 2_000, 10_000]

/** Saves the CSV, from the first filtered row. Returns a message for the reader if it failed or may be incomplete. */
const saveCsv = async (name: string, path: string): Promise<string | undefined> => {
  const all = path.replace(/\blimit=[0-9]+/, `limit=${savedMax}`).replace(/&(?:cursor|offset)=[^&]*/g, "")
  const answer = await askCsv(all)
  if (answer.state === "failed") return `Not saved. ${answer.words}`
  const link = document.createElement("a")
  link.href = URL.createObjectURL(new Blob([answer.body], { type: "text/csv" }))
  link.download = `${name}.csv`
  link.click()
  URL.revokeObjectURL(link.href)
  const rows = answer.body.split("\r\n").length - 2
  return bounds.includes(rows) ? `Saved the first ${count(rows)} rows; narrow the filters for others.` : undefined
}

/** A button that saves a list as CSV, from the list's route with its filters. */
export const SaveCsv = ({ name, path }: { readonly name: string; readonly path: string }): VNode<any> => {
  const [words, say] = useState<string | undefined>(undefined)
  return tag(
    "span.row",
    words === undefined ? null : h("span", { class: "quiet", role: "alert" }, words),
    h(
      "button",
      { type: "button", class: "small", onClick: () => void saveCsv(name, path).then(say) },
      "Export CSV",
      tag("span.spoken", ` of ${name}`)
    )
  )
}

/** Skips to the content without changing the fragment, which holds the view and its filters. */
const skip = (event: Event): void => {
  event.preventDefault()
  const main = document.getElementById("main")
  main?.setAttribute("tabindex", "-1")
  main?.focus()
}

/** The bar above every page; `end` is right-aligned. */
export const Bar = (props: { readonly here: string; readonly find?: Child; readonly end?: Child }): VNode<any> =>
  tag(
    "header.bar",
    h("a", { class: "skip", href: "#main", onClick: skip }, "Skip to the content"),
    h("a", { class: "brand", href: "/" }, "Tollkeeper"),
    h(
      "nav",
      { "aria-label": "Pages" },
      pageLinks.map(([href, label]) =>
        h("a", { key: href, href, "aria-current": props.here === href ? "page" : undefined }, label)
      )
    ),
    props.find,
    props.end
  )

const pageLinks: ReadonlyArray<readonly [href: string, label: string]> = [
  ["/", "Catalog"],
  ["/seller", "Selling"],
  ["/dashboard", "Dashboard"],
  ["/receipts", "Receipts"],
  ["/docs", "API"],
  ["/status", "Status"]
]

export const Foot = (): VNode<any> =>
  tag(
    "footer.foot",
    tag(
      "p",
      "Every figure here is the answer of a route of this facilitator; ",
      h("a", { href: "/docs" }, "the API page"),
      " describes them. ",
      h("a", { href: "/status" }, "Status"),
      " of the last 30 days. ",
      h("a", { href: "/receipts" }, "Check a receipt"),
      " in this browser."
    )
  )

/** Renders a page in place of the static HTML. */
export const draw = (page: VNode<any>): void => {
  const place = document.getElementById("page")!
  place.replaceChildren()
  render(page, place)
}
