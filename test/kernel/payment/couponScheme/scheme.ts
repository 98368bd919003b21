// A scheme in one folder: coupons that the facilitator sold before, each worth one payment. The ledger is not asked.
import { Effect, Option } from "effect"
import { refusal } from "../../../../kernel/payment/Refusal.ts"
import { cannotPrepare, type ChannelScheme } from "../../../../kernel/payment/Scheme.ts"

const isNotOnLedger = refusal("invalid_coupon_unknown", "a coupon has no transaction")

/** Coupons by code, with their buyers. A coupon that was settled is removed. */
export const couponScheme = (sold: Map<string, string>): ChannelScheme => ({
  kind: "channel",
  scheme: "coupon",
  refusals: [{ reason: "invalid_coupon_unknown", check: "the coupon was sold and is unused", status: 409 }],
  supportedExtra: () => Option.some({ couponsLeft: sold.size }),
  authorization: () => Option.none(),
  formerKeys: () => [],
  isUntimed: () => true,
  cover: ({ payload }, stage) =>
    Effect.sync(() => {
      const code = String(payload["code"])
      const buyer = sold.get(code)
      if (buyer === undefined) return isNotOnLedger
      if (stage === "settle") sold.delete(code)
      return { _tag: "Covered", payer: buyer, extra: { coupon: code } }
    }),
  verify: () => Effect.succeed(isNotOnLedger),
  prepare: () => Effect.succeed(isNotOnLedger),
  unsigned: cannotPrepare,
  answerSettled: () => Effect.succeed({}),
  checkExecuted: () => ({ _tag: "NotMoved", message: isNotOnLedger.message }),
  nonces: { nonceOf: () => undefined, useIn: () => "none" }
})
