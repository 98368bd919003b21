// `tollkeeper acts`: the audit trail of operators' acts, newest first. As JSON, one line per act, and the complete
// trail.
import { Console, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { SqlClient } from "effect/sql"
import { type Act, makeAuditLog } from "../../kernel/settlement/operators/OperatorAuditLog.ts"
import { jsonFlag, kernelTables, placeFlags } from "./CommandTarget.ts"

const pageMax = 500

const lineOf = ({ action, after, at, before, outcome, person, reason, subject, via }: Act): string =>
  [
    at.toISOString(),
    `${person} (${via})`,
    `${action} ${subject}`,
    ...(before === null && after === null ? [] : [`${before ?? "none"} → ${after ?? "none"}`]),
    outcome,
    `reason: ${reason}`
  ].join("  ")

const jsonOf = (act: Act): string => JSON.stringify({ ...act, id: act.id.toString(), at: act.at.toISOString() })

export const acts = Command.make(
  "acts",
  {
    ...placeFlags(),
    json: jsonFlag,
    limit: Flag.Int("limit").pipe(Flag.withDescription("Maximum number, newest first; 0 for all"), Flag.withDefault(50))
  },
  ({ json, limit, ...place }) =>
    Effect.gen(function* () {
      const log = makeAuditLog(yield* SqlClient.SqlClient)
      let [before, left] = [undefined as bigint | undefined, limit === 0 ? Infinity : limit]
      while (left > 0) {
        const page: ReadonlyArray<Act> = yield* log.list({ before, limit: Math.min(pageMax, left) })
        for (const act of page) yield* Console.log(json ? jsonOf(act) : lineOf(act))
        if (page.length < pageMax) return
        left -= page.length
        before = page.at(-1)!.id
      }
    }).pipe(Effect.provide(kernelTables(place)))
).pipe(Command.withDescription("List operator actions: who, when, why, and what changed"))
