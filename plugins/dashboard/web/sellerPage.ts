// The page at `/seller`: a seller's own sales, refusals with their reasons, its listings, and on the local ledger a
// demonstration payment. Sign-in is by a seller's key, or by the paid account. Without keys, the page and its stream
// are for this machine only.
import { h, type VNode } from "preact"
import { useFacts } from "./about.ts"
import { AccountBar, AccountSignIn, useAccount } from "./account.ts"
import { Find } from "./Find.ts"
import { ListingView } from "./ListingView.ts"
import { OwnView } from "./OwnView.ts"
import { Bar, draw, Foot, panel } from "./parts.ts"
import type { AccountShown } from "./reports.ts"
import { AccountView, SalesView } from "./SalesView.ts"
import { type Session, SignIn, useSession, SignedInAs } from "./session.ts"
import { TryView } from "./TryView.ts"
import { tag } from "./tag.ts"

/** Instructions for sellers, shown above the sales. */
const HowTo = (): VNode<any> =>
  panel(
    { title: "How to sell", wide: true },
    tag(
      "ol.steps",
      tag("li", "1. Answer an unpaid request with 402 and your terms: asset, amount, the account to pay."),
      tag("li", "2. Send the payment that comes with the next request to ", tag("code", "POST /verify"), "."),
      tag("li", "3. Do the work, then send it to ", tag("code", "POST /settle"), "; deliver on success."),
      tag("li", "4. Declare the resource in the payment: the catalog then lists it automatically.")
    ),
    tag("p", h("a", { href: "/docs" }, "Quickstart and every route"), ", to try in the browser.")
  )

const byKey = ({ keys_required, role }: Session): boolean => !keys_required || role === "caller"

const SignIns = ({ session }: { readonly session: Session }): VNode<any> =>
  tag(
    "div.grid.wide-grid",
    h(AccountSignIn, {}),
    byKey(session)
      ? null
      : h(SignIn, {
          why:
            session.role === "operator"
              ? "You are signed in as an operator; the key that a server settles with shows that seller's own sales."
              : "Or use the key that your server settles with: it shows that key's settlements, to any account."
        })
  )

const Content = (props: { readonly session: Session; readonly account: AccountShown }): VNode<any> => {
  const { account, session } = props
  const { assets = [], plugins = [] } = useFacts() ?? {}
  const isKnown = account.account !== null
  return tag(
    "div.stack",
    isKnown || session.role === "caller" ? null : tag("div.grid", h(HowTo, {})),
    isKnown ? tag("div.grid", h(AccountBar, { of: account }), h(OwnView, {})) : null,
    byKey(session)
      ? tag(
          "div.grid",
          isKnown ? null : h(ListingView, {}),
          // Without keys all callers share one identity, so the stream would show all sales instead of one seller's.
          session.role === "caller" ? h(SalesView, { assets }) : null,
          isKnown ? null : h(SignIns, { session }),
          h(AccountView, {}),
          isKnown ? h(ListingView, {}) : null,
          plugins.includes("demo") && !session.keys_required ? h(TryView, {}) : null
        )
      : isKnown
        ? null
        : h(SignIns, { session })
  )
}

const Page = (): VNode<any> => {
  const session = useSession()
  const account = useAccount()
  return tag(
    "div",
    h(Bar, {
      here: "/seller",
      find: h(Find, { mayRead: session?.may_read === true }),
      end: h(SignedInAs, { session })
    }),
    h(
      "main",
      { id: "main" },
      tag("h1", "Selling"),
      session === undefined || account === undefined ? tag("p.quiet", "Loading…") : h(Content, { session, account })
    ),
    h(Foot, {})
  )
}

draw(h(Page, {}))
