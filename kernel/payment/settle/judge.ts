// The scheme's judgement of a payment, bounded in time. It stores nothing; verify and settle both ask it.
import { Effect } from "effect"
import { Limits } from "../../config/Limits.ts"
import { LedgerUnavailable } from "../../ledger/LedgerUnavailable.ts"
import type { Payment } from "../Payment.ts"
import type { Scheme, Stage } from "../Scheme.ts"
import { spanned } from "../../spanned.ts"

/** However many endpoints are asked in vain, nobody waits for a judgement longer than for a settlement. */
export const judge = Effect.fnUntraced(function* (payment: Payment, scheme: Scheme, stage: Stage) {
  const limits = yield* Limits
  return yield* scheme.verify(payment, stage).pipe(
    Effect.timeoutOrElse({
      duration: limits.settleTimeout,
      orElse: () =>
        Effect.fail(new LedgerUnavailable({ operation: "verify", message: "the ledger's endpoints took too long" }))
    }),
    spanned("payment.verify", { attributes: { scheme: scheme.scheme } })
  )
})
