// A second read target, such as a replica, through which a test counts the queries.
import { Deferred, Effect, Exit, Latch } from "effect"
import { SqlClient, type SqlConnection } from "effect/sql"
import { ReadTarget } from "../../../kernel/database/ReadReplica.ts"

/** Counts its statements and delays their results while its gate is shut. */
export const makePlace = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const gate = yield* Latch.make(true)
  let answered = Deferred.makeUnsafe<void>()
  const counter = { statements: 0, prepared: 0 }
  const watched = (connection: SqlConnection.Connection): SqlConnection.Connection =>
    Object.assign(Object.create(connection) as SqlConnection.Connection, {
      execute: ((...args) => {
        counter.statements += 1
        counter.prepared += 1
        return connection.execute(...args).pipe(
          Effect.tap(() => Effect.sync(() => Deferred.doneUnsafe(answered, Exit.void))),
          Effect.tap(() => gate.await)
        )
      }) satisfies SqlConnection.Connection["execute"],
      executeUnprepared: ((...args) => {
        counter.statements += 1
        return connection.executeUnprepared(...args)
      }) satisfies SqlConnection.Connection["executeUnprepared"]
    })
  const acquirer = Effect.map(Effect.provideService(sql.reserve, ReadTarget, undefined), watched)
  const from = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provideService(effect, ReadTarget, acquirer)
  /** Shuts the gate; completes when the database has returned the next result. */
  const shut = Effect.map(gate.close, () => {
    answered = Deferred.makeUnsafe<void>()
    return Deferred.await(answered)
  })
  return { counter, shut, open: gate.open, from }
})
