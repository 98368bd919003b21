// The walk of one verify: an identifier that belongs to another payment, then the scheme's judgement. It stores
// nothing, and takes no database statement but the one read of an identifier.
import { Effect, Option } from "effect"
import { Settlements } from "../settlement/Settlements.ts"
import type { VerifyAnswer } from "./Answer.ts"
import { conflict } from "./answers.ts"
import type { Payment } from "./Payment.ts"
import { isRefusal } from "./Refusal.ts"
import type { Scheme } from "./Scheme.ts"
import { judge } from "./settle/judge.ts"
import { conflictOf, findQuery } from "./settle/known.ts"

export const verifyPayment = Effect.fnUntraced(function* (payment: Payment, scheme: Scheme) {
  if (Option.isSome(payment.identifier)) {
    const settlements = yield* Settlements
    const records = yield* settlements.find({ ...findQuery(payment, scheme), authorizationKey: Option.none() })
    const other = conflictOf(payment, records)
    if (other !== undefined) return conflict(other)
  }
  const checked = yield* judge(payment, scheme, "verify")
  return isRefusal(checked) ? checked : ({ _tag: "Valid", payer: checked.payer } as VerifyAnswer)
})
