// `tollkeeper acts`: the audit log of operator actions, newest first. As JSON, one line per action, with all its
// members.
import { Console, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { SqlClient } from "effect/sql"
import { readKeptActs } from "../../kernel/settlement/operators/keptActs.ts"
import { type Act, makeAuditLog } from "../../kernel/settlement/operators/OperatorAuditLog.ts"
import { visibleLine } from "../visibleText.ts"
import { jsonFlag, kernelTables, placeFlags } from "./CommandTarget.ts"

const pageMax = 500

/** An action from the database, or from a state folder's file. */
type Shown = Omit<Act, "id" | "at"> & { readonly id: unknown; readonly at: Date | string }

const lineOf = ({ action, after, at, before, outcome, person, reason, subject, via }: Shown): string =>
  [
    new Date(at).toISOString(),
    `${person} (${via})`,
    `${action} ${subject}`,
    ...(before === null && after === null ? [] : [`${before ?? "none"} → ${after ?? "none"}`]),
    outcome,
    `reason: ${reason}`
  ].join("  ")

const print = (json: boolean, act: Shown) =>
  Console.log(
    visibleLine(json ? JSON.stringify({ ...act, id: String(act.id), at: new Date(act.at).toISOString() }) : lineOf(act))
  )

export const acts = Command.make(
  "acts",
  {
    ...placeFlags(),
    json: jsonFlag,
    reads: Flag.Boolean("reads").pipe(
      Flag.withDescription("Also the routes that operators read, and sign-ins with a key"),
      Flag.withDefault(false)
    ),
    limit: Flag.Int("limit").pipe(Flag.withDescription("Maximum number, newest first; 0 for all"), Flag.withDefault(50))
  },
  ({ json, limit, reads, ...place }) =>
    Effect.gen(function* () {
      const waiting = yield* readKeptActs(place.state)
      for (const act of waiting) yield* print(json, act)
      const recorded = Effect.gen(function* () {
        const log = makeAuditLog(yield* SqlClient.SqlClient)
        let [before, left] = [undefined as bigint | undefined, limit === 0 ? Infinity : limit]
        while (left > 0) {
          const page: ReadonlyArray<Act> = yield* log.list({ before, limit: Math.min(pageMax, left), withReads: reads })
          for (const act of page) yield* print(json, act)
          if (page.length < pageMax) return
          left -= page.length
          before = page.at(-1)!.id
        }
      }).pipe(Effect.provide(kernelTables(place)))
      // Actions before the first start, or of a tool server, which does not use such a database.
      yield* waiting.length === 0
        ? recorded
        : Effect.catchTag(recorded, ["NeverStarted", "DatabaseRefused"], () => Effect.void)
    })
).pipe(Command.withDescription("List operator actions: who, when, why, and what changed"))
