// The scheme's verification of a payment. It stores nothing; verify and settle both use it. Before a settlement it has
// a separate timeout, since it holds a place in the queue; the verify operation is bounded as a whole.
import { Effect } from "effect"
import type { Limits } from "../../config/Limits.ts"
import { LedgerUnavailable } from "../../ledger/LedgerRpc.ts"
import type { Payment } from "../Payment.ts"
import type { Scheme, Stage } from "../Scheme.ts"
import { withSpanIfSampled } from "../../effect/withSpanIfSampled.ts"

export const verifyWithScheme = (payment: Payment, scheme: Scheme, stage: Stage) =>
  scheme.verify(payment, stage).pipe(withSpanIfSampled("payment.verify", { attributes: { scheme: scheme.scheme } }))

/** Timeout of the verification while it holds a place, for any number of silent endpoints. */
export const verifyWithinTimeout = (
  payment: Payment,
  scheme: Scheme,
  stage: Stage,
  limits: Pick<Limits["Service"], "settleTimeout">
) =>
  verifyWithScheme(payment, scheme, stage).pipe(
    Effect.timeoutOrElse({
      duration: limits.settleTimeout,
      orElse: () =>
        Effect.fail(new LedgerUnavailable({ operation: "verify", message: "the ledger's endpoints took too long" }))
    })
  )
