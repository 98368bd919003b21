// Decisions about a listing, as sentences. Its operator and its seller see the same text.
import { h, type VNode } from "preact"
import { Moment, written } from "./parts.ts"
import { reasonText, sentenceOf } from "./reasons.ts"
import { tag } from "./tag.ts"

export interface Decision {
  readonly at: string
  readonly by: string
  readonly move: string
  readonly to: string
  readonly reason: string | null
}

const shownMax = 50

const decided: Readonly<Record<string, string>> = {
  listed: "was listed",
  returned: "is listed again",
  quarantined: "was taken out of the catalog",
  restored: "was put back into the catalog",
  removed: "was removed",
  proven: "has a confirmed owner",
  displaced: "went to another recipient",
  stale: "went stale"
}

const stages: Readonly<Record<string, string>> = { verified: "Verified", settled: "Settled" }

/** The step of a payment at which the observation was made. */
export const stageText = (stage: string): string => stages[stage] ?? stage

/** The operator, the action and the reason. */
const Sentence = ({ of }: { readonly of: Decision }): VNode<any> =>
  tag(
    "li",
    tag("span.quiet", h(Moment, { at: of.at }), "  "),
    `It ${decided[of.move] ?? `is now ${of.to}, by ${of.move.replaceAll("_", " ")}`}`,
    of.by === "facilitator" || of.by === "origin" ? "" : ` by ${of.by}`,
    of.reason === null || of.reason === ""
      ? "."
      : [" – ", sentenceOf(of.reason) ?? written(/^[a-z_]+$/.test(of.reason) ? `${reasonText(of.reason)}.` : of.reason)]
  )

export const Decisions = ({ items }: { readonly items: ReadonlyArray<Decision> }): VNode<any> =>
  items.length === 0
    ? tag("p.empty", "Nothing was decided yet.")
    : tag(
        "ol.sentences",
        items.slice(0, shownMax).map((one, index) => h(Sentence, { key: index, of: one }))
      )
