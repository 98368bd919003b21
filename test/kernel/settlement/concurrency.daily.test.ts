// Many requests for one payment, on one replica and on two over one database: one payment, one success, and no false
// answer. And clients that disconnect: a recorded payment is finished without them.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Deferred, Effect, Fiber, Latch, Layer } from "effect"
import { describe } from "vitest"
import { DatabaseSource } from "../../../kernel/database/DatabaseSource.ts"
import type { Step } from "../../../kernel/settlement/CrashPoints.ts"
import { databaseKinds, sourceLayer } from "../../support/databases.ts"
import { type Answer, type Facilitator, startFacilitator } from "../../support/facilitator.ts"

const price = 10_000n
const twins = 40

const kindOf = ({ json, status }: Answer): string =>
  json.success === true ? "success" : `${status} ${json.errorReason}`

/** Of two replicas the other one may be busy until the payment is recorded. */
const expectOneSuccess = (answers: ReadonlyArray<Answer>, pendingReason: string, replicas = 1) => {
  const successes = answers.filter(({ json }) => json.success === true)
  expect(successes.map(kindOf)).toEqual(["success"])
  const hash = successes[0]!.json.transaction
  for (const answer of answers) {
    if (answer === successes[0]) continue
    const busy = replicas === 1 ? [] : ["503 settle_ledger_temporarily_unavailable"]
    expect(["200 " + pendingReason, ...busy]).toContain(kindOf(answer))
    if (answer.status === 200) expect(answer.json.transaction).toBe(hash)
    else expect(answer.headers.get("retry-after")).toBe("1")
  }
  return hash
}

const payment = (facilitator: Facilitator, id: string) =>
  Effect.gen(function* () {
    const payer = yield* facilitator.account()
    const seller = yield* facilitator.account(0n)
    const { body } = yield* facilitator.payment({
      payer,
      payTo: seller.publicKey(),
      amount: price,
      extensions: { "payment-identifier": { info: { required: true, id } } }
    })
    return { body, seller: seller.publicKey() }
  })

/**
 * Delays the outcome of a payment until all of its callers except the waiting ones were answered, so that they are
 * concurrent.
 */
const makeGate = Effect.fnUntraced(function* (waiting: number) {
  const open = yield* Latch.make()
  let answered = 0
  return {
    atStep: (step: Step) => (step === "beforeResolve" ? open.await : Effect.void),
    close: Effect.suspend(() => {
      answered = 0
      return open.close
    }),
    count: <A>(answer: Effect.Effect<A>) =>
      Effect.tap(answer, () => Effect.suspend(() => (++answered === twins - waiting ? open.open : Effect.void)))
  }
})

describe.each(databaseKinds)("one payment asked for many times on %s", (database) => {
  it.live(
    "40 identical settles give one success, and a retry its hash [S85, S86, S91, S93, S96]",
    () =>
      Effect.gen(function* () {
        const gate = yield* makeGate(1)
        const facilitator = yield* startFacilitator({ database, atStep: gate.atStep })
        const { body, seller } = yield* payment(facilitator, "forty-twins-of-one-payment")
        const answers = yield* Effect.forEach(
          Array.from({ length: twins }),
          () => gate.count(facilitator.settle(body)),
          { concurrency: "unbounded" }
        )
        const hash = expectOneSuccess(answers, "settle_ledger_transaction_status_unknown")
        expect(yield* facilitator.balance(seller)).toBe(price)
        const retry = yield* facilitator.settle(body)
        expect(retry.json).toMatchObject({
          success: false,
          errorReason: "settle_ledger_already_settled",
          transaction: hash
        })
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "finishes a recorded payment of a disconnected client and answers its retry [S89, S90]",
    () =>
      Effect.gen(function* () {
        const recorded = yield* Deferred.make<void>()
        const proceed = yield* Deferred.make<void>()
        let submitted = 0
        const facilitator = yield* startFacilitator({
          database,
          atStep: (step) =>
            step === "afterRecord"
              ? Effect.andThen(Deferred.succeed(recorded, undefined), Deferred.await(proceed))
              : step === "afterSubmit"
                ? Effect.sync(() => void submitted++)
                : Effect.void
        })
        const { body, seller } = yield* payment(facilitator, "a-client-that-hangs-up")
        const asking = yield* Effect.forkChild(facilitator.settle(body))
        yield* Deferred.await(recorded)
        yield* Fiber.interrupt(asking)
        yield* Deferred.succeed(proceed, undefined)
        const retry = yield* facilitator.settle(body)
        expect(retry.json, retry.text).toMatchObject({ success: true })
        expect(yield* facilitator.balance(seller)).toBe(price)
        expect(submitted).toBe(1)
      }).pipe(Effect.scoped),
    240_000
  )
})

describe.runIf(databaseKinds.includes("postgres"))("two replicas over one database", () => {
  it.live(
    "two replicas give one success between them [S85, S96, S340]",
    () =>
      Effect.gen(function* () {
        const source = yield* Layer.build(sourceLayer("postgres"))
        const opened = yield* Context.get(source, DatabaseSource).open
        const database = Layer.succeed(DatabaseSource, { open: Effect.succeed(opened) })
        // One in each replica waits for the end.
        const gate = yield* makeGate(2)
        const shared = { database, environment: { SPONSOR_SECRET: Keypair.random().secret() }, atStep: gate.atStep }
        const first = yield* startFacilitator(shared)
        const second = yield* startFacilitator({ ...shared, ledgerUrl: first.ledgerUrl })
        for (let round = 0; round < 3; round++) {
          const { body, seller } = yield* payment(first, `two-replicas-and-twins-${round}`)
          yield* gate.close
          const answers = yield* Effect.forEach(
            Array.from({ length: twins }),
            (_, index) => gate.count((index % 2 === 0 ? first : second).settle(body)),
            {
              concurrency: "unbounded"
            }
          )
          const hash = expectOneSuccess(answers, "settle_ledger_transaction_status_unknown", 2)
          expect(yield* first.balance(seller)).toBe(price)
          for (const replica of [first, second]) {
            expect((yield* replica.settle(body)).json).toMatchObject({ success: false, transaction: hash })
          }
        }
        expect(yield* first.sql`select 1 from kernel_settlements`).toHaveLength(3)
      }).pipe(Effect.scoped),
    240_000
  )
})
