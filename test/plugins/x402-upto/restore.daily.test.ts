// A payee contract with an archived balance is paid by `upto` nevertheless: the settlement restores the balance as long
// as the fee ceilings cover it. Beyond them verify and settle refuse with the cost and the ceiling, and nothing moves.
import { expect, it } from "@effect/vitest"
import { StrKey } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { randomBytes } from "node:crypto"
import { archiveBalance, restoredBy } from "../../support/archive.ts"
import { eventually } from "../../support/eventually.ts"
import type { Answer } from "../../support/facilitator.ts"
import { startUpto, type UptoFacilitator } from "./world.ts"

const used = 400n
const isVerified = ({ status }: { readonly status: number }) => status === 200
const overCeiling =
  /^\d+ archived entries would be restored by the payment; the resource fee is \d+ stroops, the ceiling 100000\. /

it.live(
  "an upto settlement restores its payee's archived balance within the fee ceiling",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startUpto()
      const strict = yield* startUpto({
        ledgerUrl: facilitator.ledgerUrl,
        set: [
          "plugins=[x402-upto]",
          `networks.ledger:testnet.upto_contract=${facilitator.contract}`,
          "networks.ledger:testnet.fees.upto.max_resource_fee_stroops=100000"
        ]
      })
      const payTo = StrKey.encodeContract(randomBytes(32))
      const { payer } = yield* facilitator.parties(5_000n)
      // The embedded ledger is shared with a second facilitator: a payment may have to be repeated.
      const verify = (at: UptoFacilitator) =>
        eventually(
          Effect.flatMap(at.upto({ payer, payTo }), ({ verifyBody }) => at.verify(verifyBody)),
          isVerified
        )
      const settle = (at: UptoFacilitator): Effect.Effect<Answer> =>
        eventually(
          Effect.flatMap(at.upto({ payer, payTo }), ({ settleBody }) => at.settle(settleBody(used))),
          isVerified
        )
      const first = yield* settle(facilitator)
      expect(first.json.success, first.text).toBe(true)
      const second = yield* settle(strict)
      expect(second.json.success, second.text).toBe(true)

      yield* archiveBalance(facilitator, payTo)
      const refused = yield* verify(strict)
      expect(refused.json, refused.text).toMatchObject({
        isValid: false,
        invalidReason: "invalid_upto_ledger_restore_required",
        invalidMessage: expect.stringMatching(overCeiling)
      })
      const unsettled = yield* settle(strict)
      expect(unsettled.json, unsettled.text).toMatchObject({
        success: false,
        transaction: "",
        errorReason: "invalid_upto_ledger_restore_required",
        errorMessage: expect.stringMatching(overCeiling)
      })
      expect(yield* facilitator.balance(payer.publicKey())).toBe(5_000n - 2n * used)

      const verified = yield* verify(facilitator)
      expect(verified.json, verified.text).toMatchObject({ isValid: true })
      const settled = yield* settle(facilitator)
      expect(settled.json, settled.text).toMatchObject({ success: true, amount: String(used) })
      expect((yield* restoredBy(facilitator)).sort()).toEqual([0, 1])
      expect(yield* restoredBy(strict)).toEqual([0])
      expect(yield* facilitator.balance(payer.publicKey())).toBe(5_000n - 3n * used)
    }).pipe(Effect.scoped),
  240_000
)
