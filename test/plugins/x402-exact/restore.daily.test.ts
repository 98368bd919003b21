// A contract with an archived balance can still be paid: the payment's own transaction restores the required entries,
// as the network has done since protocol 23, if the fee ceilings cover it; otherwise the payment is refused with the
// cost.
import { expect, it } from "@effect/vitest"
import { StrKey } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { randomBytes } from "node:crypto"
import { archiveBalance, restoredBy } from "../../support/archive.ts"
import { eventually } from "../../support/eventually.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"

const price = 10n

const isVerified = ({ status }: { readonly status: number }) => status === 200

it.live(
  "a payment restores an archived contract balance within the fee ceiling",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator()
      const strict = yield* startFacilitator({
        ledgerUrl: facilitator.ledgerUrl,
        set: ["networks.ledger:testnet.fees.exact.max_resource_fee_stroops=60000"]
      })
      const payTo = StrKey.encodeContract(randomBytes(32))
      const payer = yield* facilitator.account()
      const pay = Effect.map(facilitator.payment({ payer, payTo, amount: price }), ({ body }) => body)
      const ask = (route: Facilitator["verify"]) => eventually(Effect.flatMap(pay, route), isVerified)
      const first = yield* ask(facilitator.settle)
      expect(first.json.success, first.text).toBe(true)
      const living = yield* ask(strict.verify)
      expect(living.json, living.text).toMatchObject({ isValid: true })
      yield* archiveBalance(facilitator, payTo)
      const refused = yield* ask(strict.verify)
      expect(refused.json, refused.text).toMatchObject({
        isValid: false,
        invalidReason: "invalid_ledger_restore_required"
      })
      expect(refused.json.invalidMessage).toMatch(
        /^\d+ archived entries would be restored by the payment; the resource fee is \d+ stroops, the ceiling 60000\. /
      )
      const verified = yield* ask(facilitator.verify)
      expect(verified.json, verified.text).toMatchObject({ isValid: true })
      const settled = yield* ask(facilitator.settle)
      expect(settled.json.success, settled.text).toBe(true)
      const counts = yield* restoredBy(facilitator)
      expect(counts.sort()).toEqual([0, 1])
    }).pipe(Effect.scoped),
  240_000
)
