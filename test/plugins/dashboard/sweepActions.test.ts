// Operator actions are pruned by age; those with an unknown outcome stay.
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { sweepActions } from "../../../plugins/dashboard/sweepActions.ts"
import { describeDatabases } from "../../support/databases.ts"

const day = 86_400_000

describeDatabases(
  "an audited action",
  (database) =>
    layer(database, { timeout: "240 seconds", excludeTestServices: true })((it) => {
      it.effect("operator actions are pruned by age unless their outcome is unknown", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          for (const [days, outcome] of [
            [31, "done"],
            [31, "refused: no such settlement"],
            [31, "asked"],
            [29, "done"],
            [29, "asked"]
          ] as const)
            yield* sql`insert into dashboard_moves (at, by, move, subject, note, outcome) values
              (now() - make_interval(days => ${days}), 'key:ops', 'give_up', 's', 'n', ${outcome})`
          expect(yield* sweepActions(30 * day)).toBe(false)
          const kept = yield* sql<{ days: number; outcome: string }>`select
            extract(day from now() - at)::int as days, outcome from dashboard_moves order by id`
          expect(kept.map(({ days, outcome }) => `${days} ${outcome}`)).toEqual(["31 asked", "29 done", "29 asked"])
        })
      )
    }),
  ["dashboard"]
)
