import { assert, describe, it } from "@effect/vitest"
import { Effect, Latch } from "effect"
import { eventually } from "../../support/eventually.ts"
import { startFacilitator } from "../../support/facilitator.ts"
import { max, startUpto } from "./world.ts"

describe("an upto payment", () => {
  it.live("an upto payment verifies by its maximum and settles any part [S76, S84]", () =>
    Effect.gen(function* () {
      const facilitator = yield* startUpto()
      for (const actual of [250n, max, 0n]) {
        const { payTo, payer } = yield* facilitator.parties(5_000n)
        const payment = yield* facilitator.upto({ payer, payTo })
        const verified = yield* facilitator.verify(payment.verifyBody)
        assert.deepStrictEqual(verified.json, { isValid: true, payer: payer.publicKey() })
        const settled = yield* facilitator.settle(payment.settleBody(actual))
        assert.strictEqual(settled.json.success, true)
        assert.strictEqual(settled.json.amount, String(actual))
        assert.match(settled.json.transaction, /^[0-9a-f]{64}$/)
        assert.strictEqual(yield* facilitator.balance(payer.publicKey()), 5_000n - actual)
        assert.strictEqual(yield* facilitator.balance(payTo), actual)
      }
    }).pipe(Effect.scoped)
  )

  it.live("an upto payment settles once; another amount is a conflict", () =>
    Effect.gen(function* () {
      const facilitator = yield* startUpto()
      const { payTo, payer } = yield* facilitator.parties(5_000n)
      const payment = yield* facilitator.upto({ payer, payTo })
      const first = yield* facilitator.settle(payment.settleBody(300n))
      assert.strictEqual(first.json.success, true)
      const again = yield* facilitator.settle(payment.settleBody(300n))
      assert.deepStrictEqual(
        [again.json.success, again.json.errorReason, again.json.transaction],
        [false, "settle_ledger_already_settled", first.json.transaction]
      )
      const other = yield* facilitator.settle(payment.settleBody(400n))
      assert.strictEqual(other.json.success, false)
      assert.strictEqual(yield* facilitator.balance(payTo), 300n)
      const verified = yield* facilitator.verify(payment.verifyBody)
      assert.strictEqual(verified.json.isValid, false)
    }).pipe(Effect.scoped)
  )

  it.live("an upto payment verifies until its settlement's success is delivered [S91, S93]", () =>
    Effect.gen(function* () {
      const latch = Latch.makeUnsafe(true)
      const facilitator = yield* startUpto({
        set: ["limits.settle_timeout_ms=3000"],
        atStep: (step) => (step === "beforeResolve" ? latch.await : Effect.void)
      })
      const { payTo, payer } = yield* facilitator.parties(5_000n)
      const payment = yield* facilitator.upto({ payer, payTo })
      yield* latch.close
      const { json: pending } = yield* facilitator.settle(payment.settleBody(300n))
      yield* latch.open
      const states = facilitator.sql<{ state: string }>`select state from kernel_settlements`
      yield* eventually(states, ([row]) => row?.state === "settled")
      assert.deepStrictEqual((yield* facilitator.verify(payment.verifyBody)).json, {
        isValid: true,
        payer: payer.publicKey()
      })
      const conflict = yield* facilitator.settle(payment.settleBody(400n))
      assert.strictEqual(conflict.status, 409)
      assert.match(conflict.json.errorMessage, new RegExp(`is settled by transaction ${pending.transaction}$`))
      const { json: settled } = yield* facilitator.settle(payment.settleBody(300n))
      assert.deepStrictEqual([settled.success, settled.transaction], [true, pending.transaction])
      const { json: refused } = yield* facilitator.verify(payment.verifyBody)
      assert.deepStrictEqual(
        [refused.isValid, refused.invalidReason, refused.transaction],
        [false, "settle_ledger_already_settled", pending.transaction]
      )
    }).pipe(Effect.scoped)
  )

  it.live("upto is not offered without a configured contract [S28, S219]", () =>
    Effect.gen(function* () {
      const offering = yield* startUpto()
      const { payTo, payer } = yield* offering.parties()
      const payment = yield* offering.upto({ payer, payTo })
      const without = yield* startFacilitator({ set: ["networks.ledger:testnet.upto_contract=''"] })
      const supported = yield* without.ask("/supported")
      assert.deepStrictEqual(
        [...new Set(supported.json.kinds.map(({ scheme }: any) => scheme))],
        ["exact", "batch-settlement"]
      )
      const verified = yield* without.verify(payment.verifyBody)
      assert.deepStrictEqual([verified.json.isValid, verified.json.invalidReason], [false, "unsupported_scheme"])
      const settled = yield* without.settle(payment.settleBody(5n))
      assert.deepStrictEqual([settled.json.success, settled.json.errorReason], [false, "unsupported_scheme"])
    }).pipe(Effect.scoped)
  )
})
