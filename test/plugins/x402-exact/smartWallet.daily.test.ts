// Contract accounts as payers and as recipients, on the local ledger: the wallet's own `__check_auth` verifies the
// signature, in the enforcing simulation and on the ledger.
import { expect, it } from "@effect/vitest"
import { xdr } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { startFacilitator } from "../../support/facilitator.ts"
import { contractUsdc, makeSmartWallet } from "../../support/smartWallet.ts"

it.live(
  "a smart wallet pays and receives; a signature it rejects pays nothing [S15, S80]",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator()
      const funder = yield* facilitator.account()
      const seller = (yield* facilitator.account(0n)).publicKey()
      const wallet = yield* Effect.promise(() => makeSmartWallet(facilitator.ledgerUrl, funder, 50_000n))
      const payment = yield* facilitator.payment({ payer: wallet, payTo: seller, amount: 20_000n })
      const verified = yield* facilitator.verify(payment.body)
      expect(verified.json, verified.text).toEqual({ isValid: true, payer: wallet.contract })
      const settled = yield* facilitator.settle(payment.body)
      expect(settled.json, settled.text).toMatchObject({ success: true, payer: wallet.contract })
      expect(yield* facilitator.balance(seller)).toBe(20_000n)
      expect(yield* Effect.promise(() => contractUsdc(facilitator.ledgerUrl, wallet.contract))).toBe(30_000n)

      const forged = yield* facilitator.payment({
        payer: wallet,
        payTo: seller,
        amount: 20_000n,
        tamper: { signatureValue: () => xdr.ScVal.scvBytes(new Uint8Array(64).fill(7)) }
      })
      const refused = yield* facilitator.settle(forged.body)
      expect(refused.json).toMatchObject({ success: false, errorReason: "invalid_ledger_enforcing_simulation_failed" })

      const toWallet = yield* facilitator.payment({ payer: funder, payTo: wallet.contract, amount: 5_000n })
      expect((yield* facilitator.settle(toWallet.body)).json).toMatchObject({ success: true })
      expect(yield* Effect.promise(() => contractUsdc(facilitator.ledgerUrl, wallet.contract))).toBe(35_000n)
      expect(yield* facilitator.balance(seller)).toBe(20_000n)
    }).pipe(Effect.scoped),
  240_000
)
