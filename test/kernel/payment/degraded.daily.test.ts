// The payment routes while something is missing: no channel, no budget, a silent ledger, a ledger that is slow or loses
// transactions. Unknown is never failed, busy is never stored, and an answer stays true.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import { parseFault } from "../../../plugins/ledger-local/node/parseFault.ts"
import { databaseKinds } from "../../support/databases.ts"
import { type Facilitator, type FacilitatorOptions, startFacilitator } from "../../support/facilitator.ts"
import { eventually } from "../../support/eventually.ts"

const price = 10_000n

const withFacilitator =
  (options: FacilitatorOptions, use: (facilitator: Facilitator) => Effect.Effect<void, unknown>) => () =>
    Effect.scoped(Effect.flatMap(startFacilitator(options), use))

const errors = (facilitator: Facilitator, ...texts: ReadonlyArray<string>) =>
  facilitator.ledger.setFaults(
    texts.map((text) => {
      const error = parseFault(text)
      if (typeof error === "string") throw new Error(`${text}: ${error}`)
      return error
    })
  )

const identified = (id: string) => ({ extensions: { "payment-identifier": { info: { required: false, id } } } })

/** A machine that is busy for the whole settle timeout answers busy, and has stored nothing. */
const isTaken = ({ status }: { readonly status: number }) => status !== 503

describe.each(databaseKinds)("on %s", (database) => {
  it.live(
    "is busy while every channel is held; the payment settles later [S84, S85, S86, S269, S340]",
    withFacilitator({ database, channels: 1, closeMillis: 1_500, set: ["limits.channel_wait_ms=100"] }, (facilitator) =>
      Effect.gen(function* () {
        const payer = yield* facilitator.account()
        const seller = (yield* facilitator.account(0n)).publicKey()
        const payment = (id: string) => facilitator.payment({ payer, payTo: seller, amount: price, ...identified(id) })
        const [one, two] = [yield* payment("first-to-get-the-channel"), yield* payment("second-finds-it-taken-x")]
        // The channel is held for two ledgers at least, however soon the next one closes.
        yield* errors(facilitator, "delay=2")
        const answers = yield* Effect.all([facilitator.settle(one.body), facilitator.settle(two.body)], {
          concurrency: 2
        })
        const busy = answers.find(({ status }) => status === 503)!
        expect(busy.headers.get("retry-after")).toBe("1")
        expect(busy.json).toMatchObject({
          success: false,
          errorReason: "settle_ledger_temporarily_unavailable",
          transaction: "",
          payer: payer.publicKey()
        })
        yield* errors(facilitator)
        const late = answers[0] === busy ? one : two
        expect((yield* facilitator.settle(late.body)).json).toMatchObject({ success: true })
        expect(yield* facilitator.balance(seller)).toBe(2n * price)
      })
    ),
    240_000
  )

  it.live(
    "past its deadline, a payment is pending, then settled in one record [S57, S90, S91, S92, S93, S94, S97, S272, S318]",
    withFacilitator({ database, closeMillis: 5_000, set: ["limits.settle_timeout_ms=1000"] }, (facilitator) =>
      Effect.gen(function* () {
        const payer = yield* facilitator.account()
        const seller = (yield* facilitator.account(0n)).publicKey()
        // Core drops a transaction that waits longer than four ledgers.
        yield* errors(facilitator, "delay=3")
        const payment = yield* facilitator.payment({
          payer,
          payTo: seller,
          amount: price,
          maxTimeoutSeconds: 300,
          ...identified("an-unknown-settlement")
        })
        const first = yield* eventually(facilitator.settle(payment.body), isTaken)
        expect([first.status, first.json.errorReason]).toEqual([200, "settle_ledger_transaction_status_unknown"])
        expect(first.json.transaction).toMatch(/^[0-9a-f]{64}$/)
        const lookup = facilitator.ask("/settlements?identifier=an-unknown-settlement")
        const shown = yield* eventually(lookup, ({ json }) => json?.items?.length === 1)
        expect(shown.json.items[0]).toMatchObject({ status: "unknown", transaction: first.json.transaction })
        const again = yield* facilitator.settle(payment.body)
        expect(again.json).toMatchObject({
          errorReason: "settle_ledger_transaction_status_unknown",
          transaction: first.json.transaction
        })
        const settled = yield* eventually(facilitator.settle(payment.body), ({ json }) => json.success === true)
        expect(settled.json).toMatchObject({ success: true, transaction: first.json.transaction })
        const items = (yield* lookup).json.items
        expect(items).toHaveLength(1)
        expect(items[0]).toMatchObject({ status: "success", transaction: first.json.transaction })
        expect(yield* facilitator.balance(seller)).toBe(price)
      })
    ),
    240_000
  )

  it.live(
    "a transaction that never lands expires by the ledger and frees its channel [S90, S97]",
    withFacilitator({ database, channels: 1, set: ["limits.settle_timeout_ms=1000"] }, (facilitator) =>
      Effect.gen(function* () {
        const payer = yield* facilitator.account()
        const seller = (yield* facilitator.account(0n)).publicKey()
        yield* errors(facilitator, "drop=1")
        const payment = yield* facilitator.payment({
          payer,
          payTo: seller,
          amount: price,
          maxTimeoutSeconds: 100,
          ...identified("it-never-lands-anywhere")
        })
        const first = yield* eventually(facilitator.settle(payment.body), isTaken)
        expect(first.json.errorReason).toBe("settle_ledger_transaction_status_unknown")
        yield* eventually(
          facilitator.ask("/settlements?identifier=it-never-lands-anywhere"),
          ({ json }) => json.items?.[0]?.status === "failed"
        )
        const answer = yield* facilitator.settle(payment.body)
        expect(answer.json).toMatchObject({
          success: false,
          errorReason: "settle_ledger_transaction_expired",
          transaction: first.json.transaction
        })
        yield* errors(facilitator)
        const next = yield* facilitator.payment({ payer, payTo: seller, amount: price })
        yield* eventually(facilitator.settle(next.body), ({ json }) => json.success === true)
        expect(yield* facilitator.balance(seller)).toBe(price)
      })
    ),
    240_000
  )

  it.live(
    "refuses payments beyond the budget, which counts failed transactions exactly once [S245, S270, S271]",
    withFacilitator(
      {
        database,
        set: [
          "limits.max_sponsored_stroops_per_key_per_day=120000",
          "limits.max_global_sponsored_stroops_per_day=1000000000"
        ]
      },
      (facilitator) =>
        Effect.gen(function* () {
          const payer = yield* facilitator.account()
          const seller = (yield* facilitator.account(0n)).publicKey()
          let settled = 0
          let refused
          while (refused === undefined && settled < 20) {
            const payment = yield* facilitator.payment({ payer, payTo: seller, amount: price })
            const { json } = yield* facilitator.settle(payment.body)
            if (json.success === true) settled++
            else refused = json
          }
          expect(refused).toMatchObject({ errorReason: "settle_ledger_sponsor_budget_exceeded", transaction: "" })
          expect(settled).toBeGreaterThan(0)
          expect(yield* facilitator.balance(seller)).toBe(BigInt(settled) * price)
          const [spent] = yield* Effect.orDie(
            facilitator.sql<{
              charged: bigint
            }>`select sum(fee_charged_stroops)::int8 as charged from kernel_settlements`
          )
          const [budget] = yield* Effect.orDie(facilitator.sql<{
            used: bigint
            reserved: bigint
          }>`select sum(committed_stroops)::int8 as used, sum(reserved_stroops)::int8 as reserved
          from kernel_sponsor_budget`)
          expect(budget).toEqual({ used: spent!.charged, reserved: 0n })
        })
    ),
    240_000
  )

  it.live(
    "verifies and stores nothing while the ledger does not answer",
    withFacilitator({ database }, (facilitator) =>
      Effect.gen(function* () {
        const payer = yield* facilitator.account()
        const seller = (yield* facilitator.account(0n)).publicKey()
        const payment = yield* facilitator.payment({ payer, payTo: seller, amount: price })
        yield* errors(facilitator, "rpc=simulateTransaction:503")
        const verified = yield* facilitator.verify(payment.body)
        expect([verified.status, verified.json]).toEqual([
          503,
          { isValid: false, invalidReason: "ledger_unavailable", invalidMessage: expect.any(String) }
        ])
        expect(verified.headers.get("retry-after")).not.toBeNull()
        const settled = yield* facilitator.settle(payment.body)
        expect([settled.status, settled.json.errorReason, settled.json.transaction]).toEqual([
          503,
          "settle_ledger_temporarily_unavailable",
          ""
        ])
        expect(yield* Effect.orDie(facilitator.sql`select 1 from kernel_settlements`)).toHaveLength(0)
        yield* errors(facilitator)
        expect((yield* facilitator.settle(payment.body)).json).toMatchObject({ success: true })
      })
    ),
    240_000
  )

  it.live(
    "finishes a payment whose submission was lost, deferred or failed [S83, S87, S89]",
    withFacilitator({ database }, (facilitator) =>
      Effect.gen(function* () {
        const payer = yield* facilitator.account()
        const seller = (yield* facilitator.account(0n)).publicKey()
        let paid = 0n
        for (const error of [
          "lost=sendTransaction:0.6",
          "try-again=0.6",
          "send-error=txBadSeq:0.6",
          "rpc=getTransaction:503:0.6",
          "silent=sendTransaction:0.5"
        ]) {
          yield* errors(facilitator, error)
          const payment = yield* facilitator.payment({
            payer,
            payTo: seller,
            amount: price,
            ...identified(`under-${error.replace(/[^a-z]/gi, "-")}-0123`)
          })
          const first = yield* facilitator.settle(payment.body)
          yield* errors(facilitator)
          const answer =
            first.json.success === true
              ? first
              : yield* eventually(facilitator.settle(payment.body), ({ json }) => json.success === true)
          expect(answer.json).toMatchObject({ success: true })
          paid += price
          expect(yield* facilitator.balance(seller)).toBe(paid)
        }
      })
    ),
    240_000
  )
})
