// A read with its own time, alone or within a transaction, which continues unchanged.
import { expect } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { readApart } from "../../../plugins/receipts/readApart.ts"
import { describeDatabases, onOneDatabase } from "../../support/databases.ts"

const apart = <A, E, R>(read: Effect.Effect<A, E, R>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => readApart(sql, Duration.millis(100), read))
const timeout = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ value: string }>`select current_setting('statement_timeout') as value`
)

describeDatabases(
  "a read apart",
  (layer) => {
    onOneDatabase((it) => {
      it.effect("leaves the caller's transaction and its statement timeout as they were", () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const before = yield* timeout
          yield* sql.withTransaction(
            Effect.gen(function* () {
              expect((yield* Effect.flip(apart(sql`select 1 from missing`)))._tag).toBe("SqlError")
              expect(yield* timeout).toEqual(before)
              expect(yield* apart(timeout)).toEqual([{ value: "100ms" }])
              expect(yield* timeout).toEqual(before)
            })
          )
          expect(yield* apart(timeout)).toEqual([{ value: "100ms" }])
          expect(yield* timeout).toEqual(before)
        })
      )
    })(layer)
  },
  []
)
