// Batches the reads of a day's spending: a ledger's close starts many settles at the same moment, and each would use a
// connection for the same sums.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { batched } from "../database/batched.ts"
import { Lane } from "../database/Connections.ts"
import type { DaySpent } from "./Reservation.ts"

/** Readers per statement. */
const callsMax = 100

interface SpendQuery {
  /** UTC day, `YYYY-MM-DD`. */
  readonly day: string
  readonly principal: string
}

const nameOf = ({ day, principal }: SpendQuery): string => `${day} ${principal}`

/** The answers to some queries, in their order; a repeated query is read once. */
const readSpent = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, calls: ReadonlyArray<SpendQuery>) {
  const queryByName = new Map(calls.map((call) => [nameOf(call), call]))
  const each = [...queryByName.values()]
  const rows =
    yield* sql<DaySpent>`select coalesce(inall, 0)::int8 as "inAll", coalesce(anonymous, 0)::int8 as anonymous,
    coalesce(own.reserved_stroops + own.committed_stroops, 0)::int8 as own
    from unnest(${each.map(({ day }) => day)}::date[], ${each.map(({ principal }) => principal)}::text[])
      with ordinality as asked (of_day, of_principal, place)
    left join lateral (select sum(reserved_stroops + committed_stroops) as inall,
        sum(reserved_stroops + committed_stroops) filter (where not keyed) as anonymous
      from kernel_sponsor_budget_total where day = of_day) as total on true
    left join kernel_sponsor_budget as own on own.day = of_day and own.principal = of_principal
    order by place`
  const spent = new Map(each.map((one, at) => [nameOf(one), rows[at]!]))
  return calls.map((call) => spent.get(nameOf(call))!)
})

/** Reads the spending of a day: by the principal, in total, and by all keyless callers. */
export const batchSpendReads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const reading = yield* batched({
    maxBatchSize: callsMax,
    runBatch: (queries: ReadonlyArray<SpendQuery>) => Effect.provideService(readSpent(sql, queries), Lane, "payments")
  })
  return (day: string, principal: string) => reading({ day, principal })
})
