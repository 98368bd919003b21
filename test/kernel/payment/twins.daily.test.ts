// Concurrent identical requests of one principal, and requests to a facilitator with a database that does not answer,
// on each database of the run: one settles, the others receive its outcome, and none waits forever.
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Latch } from "effect"
import { describe } from "vitest"
import type { Step } from "../../../kernel/settlement/CrashPoints.ts"
import { databaseKinds } from "../../support/databases.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"

const price = 10_000n
const twins = 10

const cast = Effect.fnUntraced(function* (facilitator: Facilitator, usdcUnits?: bigint) {
  const payer = yield* facilitator.account(usdcUnits)
  const payTo = (yield* facilitator.account(0n)).publicKey()
  const pay = (extra: object = {}) =>
    facilitator.payment({ payer, payTo, amount: price, maxTimeoutSeconds: 300, ...extra })
  return { payTo, pay }
})

/** Stops the work at a step until it is opened, and signals when the first request arrives. */
const gateAt = (expected: Step) => {
  const latch = Latch.makeUnsafe(false)
  const come = Deferred.makeUnsafe<void>()
  return {
    atStep: (step: Step) =>
      step === expected ? Effect.andThen(Deferred.succeed(come, undefined), latch.await) : Effect.void,
    come: Deferred.await(come),
    open: latch.open
  }
}

const unknown = "settle_ledger_transaction_status_unknown"

describe.each(databaseKinds)("twins on %s", (database) => {
  it.live(
    "twins before the record receive pending with its hash, one receives success [S91, S96]",
    () =>
      Effect.gen(function* () {
        const [recording, ending] = [gateAt("beforeRecord"), gateAt("beforeResolve")]
        const facilitator = yield* startFacilitator({
          database,
          atStep: (step) => Effect.andThen(recording.atStep(step), ending.atStep(step))
        })
        const { pay, payTo } = yield* cast(facilitator)
        const { body } = yield* pay()
        const first = yield* Effect.forkChild(facilitator.settle(body))
        yield* recording.come
        const others = yield* Effect.forEach(Array.from({ length: twins }), () =>
          Effect.forkChild(facilitator.settle(body))
        )
        yield* recording.open
        const received = yield* Effect.forEach(others, Fiber.join)
        yield* ending.open
        const success = yield* Fiber.join(first)
        expect(success.json.success, success.text).toBe(true)
        for (const { json, status } of received)
          expect([status, json.errorReason, json.transaction]).toEqual([200, unknown, success.json.transaction])
        expect(yield* facilitator.balance(payTo)).toBe(price)
        expect(yield* facilitator.sql`select 1 from kernel_settlements`).toHaveLength(1)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "twins of a refused payment share one refusal and ledger request [S58, S266]",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({ database })
        const { pay } = yield* cast(facilitator, 0n)
        const { body } = yield* pay()
        let simulations = 0
        yield* facilitator.ledger.setFaults([
          {
            onRpc: (method) => {
              if (method !== "simulateTransaction") return undefined
              simulations += 1
              return { kind: "late", millis: 1_500 }
            }
          }
        ])
        const observed = yield* Effect.forEach(Array.from({ length: twins }), () => facilitator.settle(body), {
          concurrency: "unbounded"
        })
        expect(observed[0]!.json.errorReason).toBe("invalid_ledger_enforcing_simulation_failed")
        for (const { json } of observed) expect(json).toEqual(observed[0]!.json)
        expect(simulations).toBeLessThan(twins / 2)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a twin survives its disconnected leader; the payment settles once [S89, S96]",
    () =>
      Effect.gen(function* () {
        const recording = gateAt("beforeRecord")
        const facilitator = yield* startFacilitator({ database, atStep: recording.atStep })
        const { pay, payTo } = yield* cast(facilitator)
        const { body } = yield* pay()
        const first = yield* Effect.forkChild(facilitator.settle(body))
        yield* recording.come
        const twin = yield* Effect.forkChild(facilitator.settle(body))
        yield* Fiber.interrupt(first)
        yield* recording.open
        const twinAnswer = yield* Fiber.join(twin)
        let answer = twinAnswer
        while (answer.json.errorReason === unknown) answer = yield* facilitator.settle(body)
        expect(answer.json.success, answer.text).toBe(true)
        if (twinAnswer.json.success !== true) expect(twinAnswer.json.transaction).toBe(answer.json.transaction)
        expect(yield* facilitator.balance(payTo)).toBe(price)
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "all callers are answered while the database hangs and settle afterwards [S58, S269, S273]",
    () =>
      Effect.gen(function* () {
        const facilitator = yield* startFacilitator({
          database,
          // The database's own bounds would end the wait too, later.
          set: [
            "limits.settle_timeout_ms=1000",
            "database.answer_timeout_ms=600000",
            "database.statement_timeout_ms=600000",
            "database.lock_timeout_ms=600000",
            "database.idle_transaction_timeout_ms=600000"
          ]
        })
        const { pay, payTo } = yield* cast(facilitator)
        const id = "asked-of-a-silent-database"
        const { body } = yield* pay({ extensions: { "payment-identifier": { info: { required: false, id } } } })
        const [locked, unlock] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const { sql } = facilitator
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
        yield* Effect.addFinalizer(() => Deferred.succeed(unlock, undefined))
        const settled = yield* Effect.forEach([1, 2, 3], () => facilitator.settle(body), { concurrency: 3 }).pipe(
          Effect.timeout("100 seconds")
        )
        for (const { json, status } of settled)
          expect([status, json.errorReason]).toEqual([503, "settle_ledger_temporarily_unavailable"])
        const verified = yield* facilitator.verify(body)
        expect([verified.status, verified.json.isValid, verified.json.invalidReason]).toEqual([
          503,
          false,
          "ledger_unavailable"
        ])
        expect((yield* facilitator.ask(`/settlements?identifier=${id}`)).status).toBe(503)
        yield* Deferred.succeed(unlock, undefined)
        yield* Fiber.join(holder)
        let answer = yield* facilitator.settle(body)
        while (answer.json.success !== true) answer = yield* facilitator.settle(body)
        expect(yield* facilitator.balance(payTo)).toBe(price)
      }).pipe(Effect.scoped),
    240_000
  )
})
