// A passkey wallet with a spending policy as the payer of both schemes: the wallet verifies the authenticator's
// signature and counts its permitted amounts, in the enforcing simulation and on the ledger.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { passkeyWallet } from "../../support/passkeyWallet.ts"
import { contractUsdc, makeSmartWallet } from "../../support/smartWallet.ts"
import { startUpto } from "./world.ts"

const refused = {
  exact: "invalid_ledger_enforcing_simulation_failed",
  upto: "invalid_upto_ledger_simulation_failed"
}

it.live(
  "a passkey wallet pays by exact and upto within its policy's limit [S15, S76, S80]",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startUpto()
      const funder = yield* facilitator.account()
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const passkey = passkeyWallet(50_000n)
      const payer = yield* Effect.promise(() => makeSmartWallet(facilitator.ledgerUrl, funder, 100_000n, passkey))
      const left = Effect.promise(() => contractUsdc(facilitator.ledgerUrl, payer.contract))

      const exact = Effect.fnUntraced(function* (amount: bigint, sign = payer.sign) {
        const payment = yield* facilitator.payment({ payer: { ...payer, sign }, payTo, amount })
        const verified = yield* facilitator.verify(payment.body)
        const { json } = yield* facilitator.settle(payment.body)
        return [verified.json.isValid, json.success, json.errorReason]
      })
      const upto = Effect.fnUntraced(function* (max: bigint, used: bigint) {
        const payment = yield* facilitator.upto({ payer, payTo, max })
        const verified = yield* facilitator.verify(payment.verifyBody)
        const { json } = yield* facilitator.settle(payment.settleBody(used))
        return [verified.json.isValid, json.success, json.errorReason]
      })

      expect(yield* exact(30_000n)).toEqual([true, true, undefined])
      expect(yield* exact(20_001n)).toEqual([false, false, refused.exact])
      expect(yield* exact(1n, passkey.signAnother)).toEqual([false, false, refused.exact])
      expect(yield* exact(1n, passkeyWallet(50_000n).sign)).toEqual([false, false, refused.exact])
      expect(yield* left).toBe(70_000n)

      expect(yield* upto(20_001n, 1n)).toEqual([false, false, refused.upto])
      expect(yield* upto(15_000n, 250n)).toEqual([true, true, undefined])
      expect(yield* left).toBe(69_750n)
      expect(yield* upto(5_001n, 1n)).toEqual([false, false, refused.upto])
      expect(yield* exact(5_000n)).toEqual([true, true, undefined])
      expect(yield* exact(1n)).toEqual([false, false, refused.exact])
      expect(yield* left).toBe(64_750n)
      expect(yield* facilitator.balance(payTo)).toBe(35_250n)
    }).pipe(Effect.scoped),
  240_000
)
