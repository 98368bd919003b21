// Admission of a new payment before its costly work: whether its channel would come in time, and whether the sponsor's
// budget covers it. Its place in the queue is a resource of the Scope: it is released when the Scope ends, unless it
// was kept for the work.
import { Duration, Effect, Option } from "effect"
import { Budget } from "../../budget/Budget.ts"
import { Limits } from "../../config/Limits.ts"
import { Network } from "../../config/Network.ts"
import { acquireReleaseDetached } from "../../effect/acquireReleaseDetached.ts"
import { counted } from "../../http/Principal.ts"
import { ChannelPool, type QueueTicket } from "../../settlement/channels/ChannelPool.ts"
import { busy, overBudget, refuse } from "../answers.ts"
import type { Payment } from "../Payment.ts"
import type { Scheme } from "../Scheme.ts"
import { type RequestStart, timeLeft } from "./waitForOutcome.ts"

export interface Admitted {
  readonly _tag: "Taken"
  readonly ticket: QueueTicket
  /** Leaves the place to the work: the end of the Scope leaves it alone. */
  readonly keep: () => void
}

/** The place, or the answer instead of it. */
export const makeAdmit = Effect.gen(function* () {
  const budget = yield* Budget
  const channels = yield* ChannelPool
  const limits = yield* Limits
  const network = yield* Network

  return Effect.fnUntraced(function* (payment: Payment, scheme: Scheme, began: RequestStart) {
    const within = Duration.millis(yield* timeLeft(began, limits))
    let kept = false
    const place = yield* acquireReleaseDetached(channels.enter(payment.principal.source, within), (place) =>
      kept || place._tag === "Full" ? Effect.void : place.leave
    )
    if (place._tag === "Full") return { _tag: "Refused", answer: busy(undefined, place.retryAfterMillis) } as const
    const { inclusionStroopsMax } = network.feeCeilings(scheme.scheme)
    if (!(yield* budget.fits(counted(payment.principal), inclusionStroopsMax)))
      return { _tag: "Refused", answer: refuse(overBudget(Option.none())) } as const
    const taken: Admitted = { _tag: "Taken", ticket: place, keep: () => void (kept = true) }
    return taken
  })
})
