// Verify of a settled payment with an undelivered success: settle gives it once, and records that.
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { Budget } from "../../../kernel/budget/Budget.ts"
import { Limits } from "../../../kernel/config/Limits.ts"
import { Network } from "../../../kernel/config/Network.ts"
import type { Payment } from "../../../kernel/payment/Payment.ts"
import type { Scheme } from "../../../kernel/payment/Scheme.ts"
import { Adoption } from "../../../kernel/payment/settle/Adoption.ts"
import { makeVerifyPayment } from "../../../kernel/payment/verifyPayment.ts"
import { Deliveries } from "../../../kernel/settlement/delivery/Deliveries.ts"
import { Outcomes } from "../../../kernel/settlement/follower/Outcomes.ts"
import { ChannelPool } from "../../../kernel/settlement/channels/ChannelPool.ts"
import { Sponsor } from "../../../kernel/settlement/sponsor/Sponsor.ts"
import { type SettlementRecord, Settlements } from "../../../kernel/settlement/store/Settlements.ts"
import { layerTest } from "../../support/layerTest.ts"

const record = {
  id: "1",
  principal: "key:a",
  fingerprint: "f",
  state: "settled",
  delivery: "undelivered",
  payer: "payer",
  innerHash: "h",
  transaction: Option.some("h")
} as unknown as SettlementRecord
const payment = {
  principal: { owner: "key:a" },
  fingerprint: "f",
  identifier: Option.none(),
  requirements: { network: "ledger:testnet", payTo: "seller" },
  accepted: {}
} as unknown as Payment
const scheme = { scheme: "exact", authorization: () => Option.some({ key: "k", payer: "payer" }) } as unknown as Scheme

const answerWhile = (unrecordable: Option.Option<string>, unable: Option.Option<string>) =>
  Effect.flatMap(makeVerifyPayment, (verify) => verify(payment, scheme)).pipe(
    Effect.provide(
      Layer.mergeAll(
        layerTest(Adoption, {}),
        layerTest(Budget, { fitsAsRead: () => Effect.succeed(true) }),
        layerTest(ChannelPool, {}),
        layerTest(Limits, {}),
        layerTest(Network, {}),
        layerTest(Deliveries, { asOfNow: (found) => found }),
        layerTest(Outcomes, { hasEnded: () => true, complete: () => Effect.void }),
        layerTest(Settlements, { find: () => Effect.succeed([record]) }),
        layerTest(Sponsor, { unrecordable: Effect.succeed(unrecordable), unable: () => Effect.succeed(unable) })
      )
    )
  )

it.effect("is not valid while the database accepts no writes, whatever the sponsor has", () =>
  Effect.gen(function* () {
    const none = Option.none<string>()
    expect(yield* answerWhile(none, none)).toMatchObject({ _tag: "Valid", payer: "payer" })
    expect(yield* answerWhile(none, Option.some("the sponsor is empty"))).toMatchObject({ _tag: "Valid" })
    const readOnly = Option.some("the database is read-only")
    expect(yield* answerWhile(readOnly, readOnly)).toMatchObject({ _tag: "Refusal", reason: "ledger_unavailable" })
  })
)
