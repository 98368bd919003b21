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
            yield* sql`with a as (insert into kernel_operator_acts (at, person, via, action, subject, reason, outcome)
                values (now() - make_interval(days => ${days}), 'ops', 'api', 'give_up', 's', 'n', 'asked')
                returning id, at)
              insert into kernel_operator_acts (at, asked, person, via, action, subject, reason, outcome)
                select at, id, 'ops', 'api', 'give_up', 's', 'n', ${outcome} from a where ${outcome}::text <> 'asked'`
          expect(yield* sweepActions(30 * day)).toBe(false)
          const kept = yield* sql<{ days: number; outcome: string }>`select
            extract(day from now() - a.at)::int as days, coalesce(e.outcome, a.outcome) as outcome
            from kernel_operator_acts a left join kernel_operator_acts e on e.asked = a.id
            where a.asked is null order by a.id`
          expect(kept.map(({ days, outcome }) => `${days} ${outcome}`)).toEqual(["31 asked", "29 done", "29 asked"])
        })
      )
    }),
  ["dashboard"]
)
