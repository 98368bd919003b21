// The walk of one verify: an authorization whose settlement has ended as far as this process remembers, an identifier
// that belongs to a payment already, then the scheme's judgement. It stores nothing, and takes no database statement
// but the one read of an identifier.
import { Effect, Option } from "effect"
import { Outcomes } from "../settlement/Outcomes.ts"
import { Settlements } from "../settlement/Settlements.ts"
import { Sponsor } from "../settlement/Sponsor.ts"
import type { VerifyAnswer } from "./Answer.ts"
import { conflict, over } from "./answers.ts"
import { cannotSettle } from "./faults.ts"
import type { Payment } from "./Payment.ts"
import { isRefusal } from "./Refusal.ts"
import type { Scheme } from "./Scheme.ts"
import { judge } from "./settle/judge.ts"
import { conflictOf, findQuery } from "./settle/known.ts"

/** The walk, with what it needs taken once. */
export const makeVerifyPayment = Effect.gen(function* () {
  const outcomes = yield* Outcomes
  const settlements = yield* Settlements
  const sponsor = yield* Sponsor
  return Effect.fnUntraced(function* (payment: Payment, scheme: Scheme) {
    const query = findQuery(payment, scheme)
    if (Option.isSome(payment.identifier)) {
      const records = yield* settlements.find({ ...query, authorizationKey: Option.none() })
      yield* outcomes.complete(records)
      const other = conflictOf(payment, records)
      if (other !== undefined) return conflict(other)
    }
    const ended = outcomes.ended(query)
    if (Option.isSome(ended)) return over(ended.value)
    const unable = yield* sponsor.unable(scheme.scheme)
    if (Option.isSome(unable)) return cannotSettle(unable.value)
    const checked = yield* judge(payment, scheme, "verify")
    return isRefusal(checked) ? checked : ({ _tag: "Valid", payer: checked.payer } as VerifyAnswer)
  })
})
