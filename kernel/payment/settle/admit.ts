// Admission of a new payment before its costly work: whether we can record and pay for a settlement, whether a channel
// would be available in time, and whether the budget covers it. Verify calls the same function and releases its place
// immediately, so that it does not approve a payment that settle would refuse. A place in the queue is a resource of
// the Scope: the end of the Scope releases it, unless it was kept for the work.
import { Duration, Effect, Option } from "effect"
import { Budget, type BudgetReset } from "../../budget/Budget.ts"
import { bidCeiling, Network } from "../../config/Network.ts"
import { acquireReleaseDetached } from "../../effect/acquireReleaseDetached.ts"
import { counted } from "../../http/Authentication.ts"
import { ChannelPool, type QueueTicket } from "../../settlement/channels/ChannelPool.ts"
import { Sponsor } from "../../settlement/sponsor/Sponsor.ts"
import type { Payment } from "../Payment.ts"
import type { Scheme, Stage } from "../Scheme.ts"

interface Admitted {
  readonly _tag: "Admitted"
  readonly ticket: QueueTicket
  /** Hands the place to the work: the end of the Scope no longer releases it. */
  readonly keep: () => void
}

/** The reason why no settlement of a payment can begin now. */
export type Objection =
  | { readonly _tag: "Busy"; readonly why: string; readonly retryAfterMillis?: number }
  | { readonly _tag: "OverBudget"; readonly reset: BudgetReset }

export const makeAdmission = Effect.gen(function* () {
  const budget = yield* Budget
  const channels = yield* ChannelPool
  const network = yield* Network
  const sponsor = yield* Sponsor
  const overBudget = Effect.map(budget.resets, (reset): Objection => ({ _tag: "OverBudget", reset }))

  const admit = Effect.fnUntraced(function* (
    payment: Payment,
    scheme: Scheme,
    stage: Stage,
    within: Duration.Duration
  ) {
    // Checked before any request or lease: a payment with unpayable fees would hold a channel until it expires.
    const unable = yield* sponsor.unable(scheme.scheme)
    if (Option.isSome(unable)) return { _tag: "Busy", why: unable.value } as Objection
    let isKept = false
    const ticket = yield* acquireReleaseDetached(channels.enter(payment.principal.source, within), (ticket) =>
      isKept || ticket._tag === "Full" ? Effect.void : ticket.leave
    )
    if (ticket._tag === "Full")
      return { _tag: "Busy", why: "no capacity at the moment", retryAfterMillis: ticket.retryAfterMillis } as Objection
    const { inclusionStroopsMax } = network.feeCeilings(scheme.scheme)
    // Verify runs no statement while the budget has room.
    const fits = stage === "verify" ? budget.fitsAsRead : budget.fits
    if (!(yield* fits(counted(payment.principal), inclusionStroopsMax))) return yield* overBudget
    return { _tag: "Admitted", ticket, keep: () => void (isKept = true) } as Admitted
  })

  return {
    admit,
    /** Whether the budget covers all that the record will reserve, once the scheme has found the resource fee. */
    objectToCost: Effect.fnUntraced(function* ({ principal }: Payment, { scheme }: Scheme, resourceStroops: bigint) {
      const stroops = resourceStroops + bidCeiling(network.feeCeilings(scheme), resourceStroops)
      return (yield* budget.fitsAsRead(counted(principal), stroops)) ? undefined : yield* overBudget
    })
  }
})
