// `tollkeeper budget`: network fees that the sponsor has spent and reserved, by day and principal. Days are the same as
// in the charges of payments. Within a running facilitator the ledger's clock determines the day. Standalone, the
// database's clock does, unless a later day was already charged. This machine's clock is not used.
import { Context, Effect, Layer, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { SqlClient } from "effect/sql"
import { Budget } from "../../kernel/budget/Budget.ts"
import { Network } from "../../kernel/config/Network.ts"
import { monthTotals } from "../../kernel/settlement/operators/Books.ts"
import { Limits } from "../../kernel/config/Limits.ts"
import {
  answer,
  type CommandTarget,
  defaulting,
  jsonFlag,
  kernelTables,
  placeFlags,
  databaseStatus,
  Within
} from "./CommandTarget.ts"

interface Row {
  readonly day: string
  readonly principal: string
  readonly committed: string
  readonly reserved: string
}

const rowsMax = 1_000

/** The UTC day that a payment is charged to now, `YYYY-MM-DD`. */
const today = Effect.gen(function* () {
  const within = yield* Within
  const budget = within === undefined ? Option.none() : Context.getOption(within.services, Budget)
  if (Option.isSome(budget)) return yield* budget.value.today
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ day: string }>`select greatest((now() at time zone 'utc')::date,
    (select max(day) from kernel_sponsor_budget))::text as day`
  return row!.day
})

const networkAt = (place: CommandTarget) => databaseStatus(Network.layer.pipe(Layer.provideMerge(kernelTables(place))))

const listMonths = Effect.fnUntraced(function* (months: number, json: boolean) {
  const totals = yield* monthTotals((yield* Network).assets, months)
  yield* answer(json, totals, [
    ...totals.map(
      ({ amount, asset, fees_xlm, key, month, settled }) =>
        `${month}  ${key}  ${settled} settled  ${amount} ${asset}  ${fees_xlm} XLM of fees`
    ),
    "statements of single settlements: GET /dashboard/v1/statement?month=YYYY-MM&format=csv"
  ])
})

export const budget = Command.make(
  "budget",
  {
    ...placeFlags(),
    json: jsonFlag,
    days: Flag.Int("days").pipe(defaulting("How many UTC days back", 1)),
    months: Flag.Int("months").pipe(defaulting("Totals of this number of calendar months by key and asset instead", 0))
  },
  ({ days, json, months, ...place }) =>
    Effect.gen(function* () {
      if (months > 0) return yield* Effect.provide(listMonths(months, json), networkAt(place))
      const sql = yield* SqlClient.SqlClient
      const limits = yield* Limits
      const day = yield* today
      const rows = yield* sql<Row>`select day::text as day, principal, committed_stroops::text as committed,
        reserved_stroops::text as reserved from kernel_sponsor_budget
        where day > ${day}::date - ${days}::int
        order by day desc, committed_stroops desc limit ${rowsMax}`
      const perPrincipal = limits.sponsoredPerPrincipalPerDayStroopsMax
      const inAll = limits.sponsoredPerDayStroopsMax
      yield* answer(json, { day, rows, perPrincipalStroopsMax: perPrincipal, inAllStroopsMax: inAll }, [
        ...rows.map(({ committed, day, principal, reserved }) => {
          const max = limits.sponsoredByKeyPerDayStroopsMax?.get(principal) ?? perPrincipal
          const used = BigInt(committed) + BigInt(reserved)
          const share = max === 0n ? 100n : (used * 100n) / max
          return `${day}  ${principal}  ${committed} spent  ${reserved} reserved  ${share} % of ${max}`
        }),
        `a principal may spend ${perPrincipal} stroops a day, all principals together ${inAll}; today is ${day}`
      ])
    }).pipe(Effect.provide(databaseStatus(Limits.layer.pipe(Layer.provideMerge(kernelTables(place))))))
).pipe(Command.withDescription("Fees spent by the sponsor, by UTC day and principal, in stroops"))
