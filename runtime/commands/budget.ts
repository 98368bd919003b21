// `tollkeeper budget`: what the sponsor has spent and reserved on network fees, by day and principal.
import { Effect, Layer } from "effect"
import { Command, Flag } from "effect/cli"
import { SqlClient } from "effect/sql"
import { Limits } from "../../kernel/config/Limits.ts"
import { answer, defaulting, jsonFlag, kernelTables, placeFlags, standing } from "./place.ts"

interface Row {
  readonly day: string
  readonly principal: string
  readonly committed: string
  readonly reserved: string
}

const rowsMax = 1_000

export const budget = Command.make(
  "budget",
  { ...placeFlags(), json: jsonFlag, days: Flag.Int("days").pipe(defaulting("How many UTC days back", 1)) },
  ({ days, json, ...place }) =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const limits = yield* Limits
      const rows = yield* sql<Row>`select day::text as day, principal, committed_stroops::text as committed,
        reserved_stroops::text as reserved from kernel_sponsor_budget
        where day > (now() at time zone 'utc')::date - ${days}::int
        order by day desc, committed_stroops desc limit ${rowsMax}`
      const perPrincipal = limits.sponsoredPerPrincipalPerDayStroopsMax
      const inAll = limits.sponsoredPerDayStroopsMax
      yield* answer(json, { rows, perPrincipalStroopsMax: perPrincipal, inAllStroopsMax: inAll }, [
        ...rows.map(({ committed, day, principal, reserved }) => {
          const max = limits.sponsoredByKeyPerDayStroopsMax?.get(principal) ?? perPrincipal
          const used = BigInt(committed) + BigInt(reserved)
          const share = max === 0n ? 100n : (used * 100n) / max
          return `${day}  ${principal}  ${committed} spent  ${reserved} reserved  ${share} % of ${max}`
        }),
        `a principal may spend ${perPrincipal} stroops a day, all together ${inAll}`
      ])
    }).pipe(Effect.provide(standing(Limits.layer.pipe(Layer.provideMerge(kernelTables(place))))))
).pipe(Command.withDescription("What the sponsor has spent on fees, by UTC day and principal, in stroops"))
