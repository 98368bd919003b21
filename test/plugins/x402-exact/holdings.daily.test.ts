// The balance, trustline or limit that refuses a transfer: the asset contract has one code for both ends, and the
// message names the end.
import { expect, it } from "@effect/vitest"
import type { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { startFacilitator } from "../../support/facilitator.ts"
import { trust } from "../../support/trust.ts"

it.live(
  "a refusal of the asset contract names the end that it is about",
  () =>
    Effect.gen(function* () {
      const world = yield* startFacilitator({ set: ["plugins=[ledger-local,x402-exact]"] })
      const [rich, poor] = [yield* world.account(), yield* world.account(9_999n)]
      const seller = yield* world.account(0n)
      const payTo = seller.publicKey()
      const { body } = yield* world.payment({ payer: rich, payTo, amount: 10_000n })
      const contract = body.paymentRequirements.asset
      const refusedBy = (payer: Keypair) =>
        Effect.gen(function* () {
          const { body } = yield* world.payment({ payer, payTo, amount: 10_000n })
          const { isValid, invalidMessage } = (yield* world.verify(body)).json
          expect(isValid).toBe(false)
          return invalidMessage as string
        })
      const ofPayer = yield* refusedBy(poor)
      expect(ofPayer).toContain("the payer's balance does not cover the amount")
      expect(ofPayer).toContain(`${poor.publicKey()} can spend 9999 of 10000`)

      yield* trust(world, seller, contract, "0.0005")
      const ofLimit = yield* refusedBy(rich)
      expect(ofLimit).toContain(`the trustline of ${payTo} has room for 5000 of 10000`)
      expect(ofLimit).not.toContain("the payer's balance does not cover")

      yield* trust(world, seller, contract, "0")
      expect(yield* refusedBy(rich)).toContain(
        `the recipient ${payTo} has no trustline to the asset; the seller must add`
      )
    }).pipe(Effect.scoped),
  240_000
)
