// A scheme needs no change outside its folder: it is registered at a running facilitator and used over HTTP.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Context, Effect } from "effect"
import { Schemes } from "../../../../kernel/payment/Scheme.ts"
import { testnetUsdc } from "../../../../runtime/redteam/buyer.ts"
import { startFacilitator } from "../../../support/facilitator.ts"
import { couponScheme } from "./scheme.ts"

it.live("a scheme of another folder is offered, verified and settled", () =>
  Effect.gen(function* () {
    const facilitator = yield* startFacilitator({ set: ["plugins=[ledger-local,x402-exact]"] })
    const { buyer, seller } = { buyer: Keypair.random().publicKey(), seller: Keypair.random().publicKey() }
    const sold = new Map([["A-1", buyer]])
    const schemes = Context.get(facilitator.services as Context.Context<Schemes>, Schemes)
    yield* schemes.register(couponScheme(sold))
    const kinds = (yield* facilitator.ask("/supported")).json.kinds
    const kind = kinds.find(({ scheme }: { scheme: string }) => scheme === "coupon")
    expect(kind.extra).toMatchObject({ couponsLeft: 1 })

    const terms = {
      scheme: "coupon",
      network: kind.network,
      asset: testnetUsdc,
      amount: "1000",
      payTo: seller,
      maxTimeoutSeconds: 0,
      extra: { areFeesSponsored: true }
    }
    const body = (code: string) => ({
      x402Version: 2,
      paymentPayload: { x402Version: 2, accepted: terms, payload: { code } },
      paymentRequirements: terms
    })
    expect((yield* facilitator.verify(body("A-1"))).json).toMatchObject({ isValid: true, payer: buyer })
    expect((yield* facilitator.settle(body("A-1"))).json).toMatchObject({ success: true, payer: buyer })
    const again = yield* facilitator.settle(body("A-1"))
    expect([again.status, again.json]).toMatchObject([
      409,
      { success: false, errorReason: "invalid_coupon_unknown", transaction: "" }
    ])
  }).pipe(Effect.scoped)
)
