// Two versions of the program over one table of channels: the claim has one name in each (`migrations/kernel/0023`).
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { databaseKinds, databaseLayer } from "../support/databases.ts"

/** A claim as either version writes it, for the next `seconds`. */
const claim = (name: "required" | "wanted", by: string, seconds: number) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [byColumn, untilColumn] = [sql(`${name}_by`), sql(`${name}_until`)]
    yield* sql`insert into kernel_channels as c (address, network, sponsor, number, ${byColumn}, ${untilColumn})
      values ('channel', 'network', 'sponsor', 0, ${by}, clock_timestamp() + make_interval(secs => ${seconds}::float8))
      on conflict (address) do update set
        ${byColumn} = excluded.${byColumn}, ${untilColumn} = excluded.${untilColumn}`
    const [row] = yield* sql<{ wanted: string; required: string; isSame: boolean; isAlive: boolean }>`
      select wanted_by as wanted, required_by as required, wanted_until = required_until as "isSame",
        required_until > clock_timestamp() as "isAlive" from kernel_channels`
    return row
  })

describe.each(databaseKinds)("the claim of a channel on %s", (kind) => {
  it.effect("is read by each of two versions as the other wrote it", () =>
    Effect.gen(function* () {
      expect(yield* claim("wanted", "old", 60)).toEqual({
        wanted: "old",
        required: "old",
        isSame: true,
        isAlive: true
      })
      const turns = [
        ["required", "new", 120],
        ["wanted", "old", -1],
        ["required", "new", 60],
        ["wanted", "old", 60]
      ] as const
      for (const [name, by, seconds] of turns) {
        const row = yield* claim(name, by, seconds)
        expect(row, `${by} wrote`).toEqual({ wanted: by, required: by, isSame: true, isAlive: seconds > 0 })
      }
      const sql = yield* SqlClient.SqlClient
      yield* sql`delete from kernel_channels`
      expect(yield* claim("required", "new", 60)).toMatchObject({ wanted: "new", required: "new", isSame: true })
    }).pipe(Effect.provide(databaseLayer(kind, ["kernel"])))
  )
})
