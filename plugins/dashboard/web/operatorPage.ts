// The operator's dashboard: one page. The URL fragment selects the view, so that views can be linked to and the
// browser's back button works. If keys are required, the page begins with the sign-in.
import { h, type VNode, type ComponentType } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { Find } from "./Find.ts"
import { tabTitle } from "./format.ts"
import { LiveView } from "./LiveView.ts"
import { OverviewView } from "./OverviewView.ts"
import { Bar, draw, Foot } from "./parts.ts"
import { usePlace } from "./place.ts"
import { RefusalsPage } from "./RefusalsView.ts"
import { ResourcesView } from "./ResourcesView.ts"
import { type Session, SignIn, useSession, SignedInAs } from "./session.ts"
import { tag } from "./tag.ts"
import { keyName } from "./things.ts"
import { SettlementsView } from "./SettlementsView.ts"
import { RecordView, SettlementView } from "./SettlementView.ts"

/** A component that shows a message until `load` has resolved. */
const later = <Props extends object>(load: () => Promise<ComponentType<Props>>) => {
  let loaded: ComponentType<Props> | undefined
  return (props: Props): VNode<any> => {
    const [state, setState] = useState<"loading" | "loaded" | "failed">("loading")
    useEffect(() => {
      if (loaded !== undefined) return
      load().then(
        (view) => {
          loaded = view
          setState("loaded")
        },
        () => setState("failed")
      )
    }, [])
    if (loaded !== undefined) return h(loaded, props)
    return state === "failed"
      ? h("p", { role: "alert" }, "This view could not be loaded. Reload the page.")
      : tag("p.quiet", "Loading…")
  }
}

// Views other than the first ones of a visit.
const AccountView = later(async () => (await import("./ThingViews.ts")).AccountView)
const AssetView = later(async () => (await import("./ThingViews.ts")).AssetView)
const ChannelsView = later(async () => (await import("./BatchView.ts")).ChannelsView)
const DeliveriesView = later(async () => (await import("./DeliveriesView.ts")).DeliveriesView)
const KeyView = later(async () => (await import("./ThingViews.ts")).KeyView)
const OriginView = later(async () => (await import("./ThingViews.ts")).OriginView)
const ParticipantsView = later(async () => (await import("./ParticipantsView.ts")).ParticipantsView)
const ResourceView = later(async () => (await import("./ResourceView.ts")).ResourceView)
const SearchView = later(async () => (await import("./SearchView.ts")).SearchView)
const StatusView = later(async () => (await import("./StatusView.ts")).StatusView)

interface View {
  readonly name: string
  readonly label: string
  readonly operators: boolean
  readonly show: (session: Session, rest: string) => VNode<any>
}

const tabs: ReadonlyArray<View> = [
  { name: "overview", label: "Overview", operators: false, show: (session) => h(OverviewView, { session }) },
  { name: "live", label: "Live", operators: false, show: () => h(LiveView, {}) },
  { name: "settlements", label: "Settlements", operators: false, show: () => h(SettlementsView, {}) },
  { name: "refusals", label: "Refusals", operators: false, show: () => h(RefusalsPage, {}) },
  { name: "participants", label: "Buyers and sellers", operators: false, show: () => h(ParticipantsView, {}) },
  { name: "resources", label: "Listings", operators: false, show: () => h(ResourcesView, {}) },
  {
    name: "search",
    label: "Search",
    operators: false,
    show: ({ may_operate }) => h(SearchView, { mayOperate: may_operate })
  },
  {
    name: "standing",
    label: "Operation",
    operators: true,
    show: ({ may_move }) => h(StatusView, { mayMove: may_move })
  }
]

const details: ReadonlyArray<View> = [
  {
    name: "settlement",
    label: "Settlement",
    operators: false,
    show: ({ may_move, may_operate }, id) =>
      may_operate ? h(SettlementView, { id, mayMove: may_move }) : h(RecordView, { id })
  },
  {
    name: "resource",
    label: "Listing",
    operators: false,
    show: ({ may_move }, id) => h(ResourceView, { id, mayMove: may_move })
  },
  { name: "channels", label: "Payment channels", operators: true, show: () => h(ChannelsView, {}) },
  { name: "deliveries", label: "Webhook deliveries", operators: true, show: () => h(DeliveriesView, {}) },
  { name: "account", label: "Account", operators: false, show: (_, id) => h(AccountView, { id }) },
  { name: "asset", label: "Asset", operators: false, show: (_, id) => h(AssetView, { id }) },
  { name: "origin", label: "Origin", operators: false, show: (_, id) => h(OriginView, { id }) },
  {
    name: "key",
    label: "Key",
    operators: false,
    show: ({ may_operate }, id) => h(KeyView, { id, mayOperate: may_operate })
  }
]

/** The tab of a detail page. */
const parents: Readonly<Record<string, string>> = {
  settlement: "settlements",
  resource: "resources",
  origin: "resources",
  account: "participants",
  asset: "settlements",
  key: "standing",
  channels: "standing",
  deliveries: "standing"
}

/** Shown for an unknown fragment: a typing error, or a link of another version. */
const unknownView: View = {
  name: "not-found",
  label: "Not found",
  operators: false,
  show: () => tag("p", "There is no such view. ", h("a", { href: "#" }, "Go to the overview"), ".")
}

const Content = (props: { readonly view: View; readonly rest: string; readonly session: Session }): VNode<any> => {
  const { rest, session, view } = props
  if (view === unknownView) return view.show(session, rest)
  if (!session.may_read) return h(SignIn, { why: "The figures of this facilitator require a key." })
  if (view.operators && !session.may_operate) return h(SignIn, { why: "This view requires an operator's key." })
  return view.show(session, rest)
}

/** Sets the title of the browser's tab and history to the view, and scrolls its tab into sight. */
const useNamed = (view: View, rest: string) => {
  const nav = useRef<HTMLElement>(null)
  useEffect(() => {
    document.title = tabTitle(view.label, view.name === "key" ? keyName(rest) : rest)
    const row = nav.current
    const tab = row?.querySelector<HTMLElement>("[aria-current]")
    if (row != null && tab != null) row.scrollLeft = tab.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2
  }, [view, rest])
  return nav
}

const Page = (): VNode<any> => {
  const { name, rest } = usePlace()
  const session = useSession()
  const view = [...tabs, ...details].find((one) => one.name === name) ?? (name === "" ? tabs[0]! : unknownView)
  const nav = useNamed(view, rest)
  return tag(
    "div",
    h(Bar, {
      here: "/dashboard",
      find: h(Find, { mayRead: session?.may_read === true }),
      end: h(SignedInAs, { session })
    }),
    h(
      "nav",
      { class: "tabs", ref: nav, "aria-label": "Parts of the dashboard" },
      tabs.map((one) =>
        h(
          "a",
          {
            key: one.name,
            href: `#${one.name}`,
            "aria-current": one === view ? "page" : parents[view.name] === one.name ? "true" : undefined
          },
          one.label
        )
      )
    ),
    h(
      "main",
      { id: "main" },
      tag("h1", view.label),
      session === undefined
        ? tag("p.quiet", "Loading…")
        : h(Content, { key: `${view.name}/${rest}`, view, rest, session })
    ),
    h(Foot, {})
  )
}

draw(h(Page, {}))
