// Settle on a database that answers queries and accepts no writes, on each database of the run: an answer that failed
// or is late names the cause, as verify's does, and the payment is given once writes are accepted again.
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { describe } from "vitest"
import { databaseKinds } from "../../support/databases.ts"
import { eventually } from "../../support/eventually.ts"
import { startFacilitator } from "../../support/facilitator.ts"

const cause = "the database is read-only"

describe.each(databaseKinds)("a database without writes on %s", (database) => {
  it.live(
    "is named by settle where recording fails and where settle is late",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({
          database,
          // The database's own bounds would end the wait too.
          set: ["limits.settle_timeout_ms=1500", "database.answer_timeout_ms=600000", "database.lock_timeout_ms=600000"]
        })
        const { sql } = facilitator
        const payer = yield* facilitator.account()
        const payTo = (yield* facilitator.account(0n)).publicKey()
        const { body } = yield* facilitator.payment({ payer, payTo, amount: 10n, maxTimeoutSeconds: 300 })
        yield* eventually(facilitator.settle(body), ({ json }) => json.success === true)
        yield* sql`update kernel_settlements set delivered_at = null`
        yield* sql`create function refuse_writes() returns trigger language plpgsql as
          'begin raise exception ''read-only'' using errcode = ''25006''; end'`
        for (const table of ["kernel_settlements", "kernel_write_probes"])
          yield* sql.unsafe(
            `create trigger refused before insert or update on ${table} execute function refuse_writes()`
          )
        const busy = [503, "settle_ledger_temporarily_unavailable", `${cause}; try the same payment again`]
        const settle = Effect.map(facilitator.settle(body), ({ json, status }) => [
          status,
          json.errorReason,
          json.errorMessage
        ])
        // The claim of the success fails.
        expect(yield* settle).toEqual(busy)
        const { json } = yield* facilitator.verify(body)
        expect([json.invalidReason, json.invalidMessage]).toEqual([
          "ledger_unavailable",
          `${cause}; nothing was decided, try the same payment again`
        ])
        const [locked, unlock] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        yield* Effect.addFinalizer(() => Deferred.succeed(unlock, undefined))
        const holder = yield* Effect.forkChild(
          sql.withTransaction(
            Effect.gen(function* () {
              yield* sql`lock table kernel_settlements in access exclusive mode`
              yield* Deferred.succeed(locked, undefined)
              yield* Deferred.await(unlock)
            })
          )
        )
        yield* Deferred.await(locked)
        // The one session of an embedded database is locked for the probe of writes as well.
        const late = /^the database (is read-only|did not finish a write within 1200 ms); try the same payment again$/
        expect(yield* settle).toEqual([...busy.slice(0, 2), expect.stringMatching(late)])
        expect((yield* facilitator.verify(body)).json.invalidMessage).toMatch(
          /^the database (is read-only|did not finish a write within 1200 ms); nothing was decided/
        )
        yield* Deferred.succeed(unlock, undefined)
        yield* Fiber.join(holder)
        yield* sql`drop function refuse_writes() cascade`
        yield* eventually(facilitator.settle(body), (answer) => answer.json.success === true)
        expect(yield* facilitator.balance(payTo)).toBe(10n)
      }).pipe(Effect.scoped),
    240_000
  )
})
