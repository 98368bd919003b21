// The red team's cases as a part of a report: one check for each case that is not skipped.
import type { Part } from "../conformance/report.ts"
import type { Case } from "../../runtime/redteam/cases.ts"
import { playCases } from "../../runtime/redteam/run.ts"

/** Plays the chosen cases against a world's facilitator. */
export const redteamPart = async (
  { facilitator, ledger }: { readonly facilitator: string; readonly ledger: string },
  part: Part,
  accepts: (one: Case) => boolean
): Promise<void> => {
  const { scores } = await playCases({ url: facilitator, kind: "facilitator", ledger }, { accepts })
  for (const { attack, detail, name, result } of scores) {
    if (result === "skipped") continue
    await part.check(`${name} (attack ${attack})`, () => {
      if (result === "failed" || detail !== "") throw new Error(detail)
    })
  }
}
