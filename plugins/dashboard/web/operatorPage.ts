// The operator's dashboard: one page whose part is chosen by what follows `#` in its address, so that each can be
// linked to and the browser's own buttons go back.
import { h, type VNode } from "preact"
import { useEffect, useState } from "preact/hooks"
import { OverviewView } from "./OverviewView.ts"
import { ParticipantsView } from "./ParticipantsView.ts"
import { Bar, draw, Foot } from "./parts.ts"
import { SettlementsView } from "./SettlementsView.ts"

const views: ReadonlyArray<
  readonly [name: string, label: string, view: (props: { readonly rest: string }) => VNode<any>]
> = [
  ["overview", "Overview", () => h(OverviewView, {})],
  ["settlements", "Settlements", () => h(SettlementsView, {})],
  ["participants", "Buyers and sellers", () => h(ParticipantsView, {})]
]

const useFragment = (): string => {
  const [fragment, change] = useState(location.hash.slice(1))
  useEffect(() => {
    const follow = () => change(location.hash.slice(1))
    addEventListener("hashchange", follow)
    return () => removeEventListener("hashchange", follow)
  }, [])
  return fragment
}

const Page = (): VNode<any> => {
  const [name = "", rest = ""] = useFragment().split("/", 2)
  const chosen = views.find(([one]) => one === name) ?? views[0]!
  return h(
    "div",
    null,
    h(Bar, { here: "/dashboard" }),
    h(
      "nav",
      { class: "tabs", "aria-label": "Parts of the dashboard" },
      views.map(([one, label]) =>
        h("a", { key: one, href: `#${one}`, "aria-current": one === chosen[0] ? "page" : undefined }, label)
      )
    ),
    h("main", { id: "main" }, h("h1", null, chosen[1]), chosen[2]({ rest })),
    h(Foot, null)
  )
}

draw(h(Page, {}))
