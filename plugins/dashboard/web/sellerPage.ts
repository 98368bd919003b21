// The page at `/seller`: a seller's own sales, refusals with their reasons, its listings, and on the local ledger a
// payment to try. It is signed in by a seller's key; without keys it is for this machine alone, as the stream is.
import { h, type VNode } from "preact"
import { useAsked } from "./ask.ts"
import { ListingView } from "./ListingView.ts"
import { Bar, draw, Foot, Notice } from "./parts.ts"
import type { AssetShown } from "./prices.ts"
import { AccountView, SalesView } from "./SalesView.ts"
import { type Session, SignIn, useSession, Who } from "./session.ts"
import { TryView } from "./TryView.ts"

interface About {
  readonly plugins: ReadonlyArray<string>
  readonly assets: ReadonlyArray<AssetShown>
}

const Content = ({ session }: { readonly session: Session }): VNode<any> => {
  const about = useAsked<About>("/dashboard/v1/about")
  if (session.keys_required && session.role !== "caller")
    return h(
      "div",
      null,
      session.role === "operator"
        ? h(Notice, { kind: "hint" }, "You are signed in as an operator; a seller's page is for a seller's key.")
        : null,
      h(SignIn, { why: "The key that your server settles with shows your own sales." })
    )
  const { assets, plugins } = about.state === "ready" ? about.body : { assets: [], plugins: [] }
  return h(
    "div",
    { class: "grid" },
    h(SalesView, { assets }),
    h(ListingView, {}),
    h(AccountView, {}),
    plugins.includes("demo") && !session.keys_required ? h(TryView, {}) : null
  )
}

const Page = (): VNode<any> => {
  const session = useSession()
  return h(
    "div",
    null,
    h(Bar, { here: "/seller", end: h(Who, { session }) }),
    h(
      "main",
      { id: "main" },
      h("h1", null, "Selling"),
      session === undefined ? h("p", { class: "quiet" }, "Loading…") : h(Content, { session })
    ),
    h(Foot, {})
  )
}

draw(h(Page, {}))
