// Signing keys, and the effects of a rotation to the keys in the sources, shown before the operator confirms it: the
// new signers, the settlements that end under the previous keys, and the seeds that must be kept. The rotation runs
// only while the sources hold the same keys.
import { h, type VNode } from "preact"
import { useState } from "preact/hooks"
import { post, useAsked } from "./ask.ts"
import { Confirmed } from "./Confirmed.ts"
import { counted } from "./format.ts"
import type { Rotations } from "./reports.ts"
import { panel, Shown } from "./parts.ts"
import { tag } from "./tag.ts"
import { Thing } from "./things.ts"

type Rotation = Rotations["items"][number]

const effectsOf = ({ next, now, what }: Rotation): ReadonlyArray<string> => {
  const added = next.channels.filter((address) => !now.channels.includes(address)).length
  const left = now.channels.filter((address) => !next.channels.includes(address)).length
  return [
    ...(what === "sponsor" && next.sponsor !== now.sponsor
      ? [
          `New payments are paid for by ${next.sponsor}, in place of ${now.sponsor}.`,
          "Settlements pending under the old sponsor end as they were recorded."
        ]
      : []),
    ...(added + left === 0
      ? []
      : left === now.channels.length
        ? ["Every channel is replaced; the previous ones are no longer leased, and are merged back."]
        : [`Channels added: ${added}; no longer leased, and merged back: ${left}.`]),
    "Other replicas follow within seconds, as soon as their own sources hold the same keys.",
    "Keep the previous seeds in their sources until no settlement is open under them."
  ]
}

const Plan = (props: { readonly of: Rotation; readonly mayMove: boolean; readonly done: () => void }): VNode<any> => {
  const { mayMove, of } = props
  const signer =
    of.what === "sponsor"
      ? [h(Thing, { key: "now", kind: "account", id: of.now.sponsor }), " pays the fees."]
      : [`Keys of ${counted(of.now.channels.length, "channel")}, the configured maximum.`]
  return tag(
    "li.item",
    tag("h3", of.what === "sponsor" ? "Sponsor" : "Channels"),
    tag("p", ...signer),
    of.refused === null
      ? h(
          Confirmed,
          {
            label: of.what === "sponsor" ? "Rotate the sponsor" : "Rotate the channels",
            question: "Rotate to the keys in the sources?",
            disabled: !mayMove,
            run: (note) => post("/dashboard/v1/moves", { move: "rotate", what: of.what, plan: of.plan, note }),
            done: props.done
          },
          tag(
            "ul",
            effectsOf(of).map((sentence) => h("li", { key: sentence }, sentence))
          )
        )
      : tag("p.quiet", `Nothing to rotate to: ${of.refused}.`)
  )
}

export const RotationView = (props: {
  readonly mayMove: boolean
  readonly refresh: number
  readonly done: () => void
}): VNode<any> => {
  const [own, readAgain] = useState(0)
  const asked = useAsked<Rotations>(`/dashboard/v1/rotations?refresh=${props.refresh}.${own}`)
  return panel(
    {
      title: "Signing keys",
      wide: true,
      actions: h("button", { type: "button", class: "small", onClick: () => readAgain(own + 1) }, "Refresh")
    },
    h(Shown<Rotations>, {
      asked,
      show: ({ items }) =>
        tag(
          "ul.list",
          items.map((of) => h(Plan, { key: of.what, of, mayMove: props.mayMove, done: props.done }))
        )
    })
  )
}
