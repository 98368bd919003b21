// The public page at `/`: identity, accepted payments and health of this facilitator, and the catalog.
import { h, type VNode } from "preact"
import { useAsked } from "./ask.ts"
import { Find } from "./Find.ts"
import { CatalogView } from "./CatalogView.ts"
import { decimal, duration } from "./format.ts"
import type { About } from "./reports.ts"
import { useSession } from "./session.ts"
import { TryView } from "./TryView.ts"
import { Bar, draw, Figures, Foot, panel, Shown, State } from "./parts.ts"
import { tag } from "./tag.ts"

interface Ready {
  readonly status: string
  readonly plugins: Readonly<Record<string, { readonly state: string; readonly detail?: string }>>
  readonly ledger?: {
    readonly state: string
    readonly sequence?: number
    readonly ageSeconds?: number
    readonly channelsUsable?: number
    readonly detail?: string
  }
}

/** The configured limit. Without one, the settings contain the largest number, which is left out. */
const limitOf = ({ decimals, max_payment, symbol }: About["assets"][number]): ReadonlyArray<string> =>
  max_payment.length > 30 ? [] : [`at most ${decimal(max_payment, decimals)} ${symbol} a payment`]

const Taken = ({ about }: { readonly about: About }): VNode<any> =>
  h(Figures, {
    items: [
      { label: "Network", value: about.network, note: about.networks.slice(1).join(", ") },
      { label: "Schemes", value: about.schemes.join(", ") },
      {
        label: "Assets",
        value: about.assets.map(({ symbol }) => symbol).join(", "),
        note: about.assets.flatMap(limitOf).join("; ")
      },
      { label: "Access", value: about.keys_required ? "Callers with a key" : "Public" },
      { label: "Ledger fees", value: "Sponsored", note: "the buyer needs the asset alone" }
    ]
  })

const Health = (): VNode<any> => {
  const asked = useAsked<Ready>("/health/ready", 3_000)
  return panel(
    { title: "Health" },
    h(Shown<Ready>, {
      asked,
      show: ({ ledger, plugins, status }) => {
        const degraded = Object.entries(plugins).filter(([, { state }]) => state !== "running")
        return [
          h(Figures, {
            items: [
              { label: "Facilitator", value: h(State, { word: status }) },
              ...(ledger === undefined
                ? []
                : [
                    { label: "Ledger", value: h(State, { word: ledger.state }), note: ledger.detail },
                    {
                      label: "Last ledger",
                      value: String(ledger.sequence ?? "–"),
                      note: ledger.ageSeconds === undefined ? undefined : `${duration(ledger.ageSeconds)} ago`
                    },
                    {
                      label: "Concurrent payments",
                      value: String(ledger.channelsUsable ?? "–"),
                      note: "channels ready to settle"
                    }
                  ])
            ]
          }),
          degraded.length === 0 ? null : tag("p", `Degraded: ${degraded.map(([id]) => id).join(", ")}`)
        ]
      }
    })
  )
}

const Page = (): VNode<any> => {
  const about = useAsked<About>("/dashboard/v1/about")
  const session = useSession()
  return tag(
    "div",
    h(Bar, { here: "/", find: h(Find, { mayRead: session?.may_read === true }) }),
    h(
      "main",
      { id: "main" },
      tag("h1", "Payments for the open web, settled on Stellar"),
      tag(
        "p.lead",
        "Tollkeeper is an x402 facilitator. A seller answers an unpaid request with 402 and its terms; a buyer signs ",
        "once; this service verifies the signature, puts the transfer on the ledger, pays the ledger's fee and ",
        "answers with a receipt."
      ),
      tag(
        "div.grid",
        about.state === "ready" && about.body.plugins.includes("demo") && session?.keys_required === false
          ? h(TryView, {})
          : null,
        h(CatalogView, { assets: about.state === "ready" ? about.body.assets : [] }),
        panel(
          { title: "Accepted payments" },
          h(Shown<About>, { asked: about, show: (body) => h(Taken, { about: body }) })
        ),
        h(Health, null)
      )
    ),
    h(Foot, null)
  )
}

draw(h(Page, {}))
