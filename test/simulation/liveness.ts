// Checks that payments settle: a facilitator that lets everything expire breaks no rule of safety. It counts a run's
// storm payments that were recorded and not touched by a stranger, and all calm payments.
import type { Payment } from "../../kernel/payment/Payment.ts"
import { isUntouched } from "./Scenario.ts"
import { authorizationOf } from "./simulatedScheme.ts"
import type { World } from "./World.ts"

export interface Liveness {
  /** Recorded in the storm, not used by others, and not failed by the ledger itself. */
  readonly alive: number
  readonly aliveSettled: number
  readonly calmAsked: number
  readonly calmSettled: number
}

/** Minimum share of such payments that settle, over many runs. */
export const aliveShareMin = 0.8

export const none: Liveness = { alive: 0, aliveSettled: 0, calmAsked: 0, calmSettled: 0 }

export const sum = (a: Liveness, b: Liveness): Liveness => ({
  alive: a.alive + b.alive,
  aliveSettled: a.aliveSettled + b.aliveSettled,
  calmAsked: a.calmAsked + b.calmAsked,
  calmSettled: a.calmSettled + b.calmSettled
})

export const livenessOf = (world: World, calm: ReadonlySet<Payment>, payments: ReadonlyArray<Payment>): Liveness => {
  const numbers = (ones: Iterable<Payment>) => [...ones].map((payment) => authorizationOf(payment).number)
  const failed = new Set(world.ledger.log.filter((one) => !one.succeeded).map((one) => one.authorization?.number))
  const storm = payments.filter((payment) => !calm.has(payment) && isUntouched(world, payment))
  const recorded = new Set([...world.store.rows.values()].map(({ born }) => born.authorizationKey))
  const alive = storm.filter((payment) => {
    const { key, number } = authorizationOf(payment)
    return recorded.has(key) && !failed.has(number)
  })
  const settled = (ones: Iterable<Payment>) => numbers(ones).filter((one) => world.ledger.movedBy.has(one)).length
  return { alive: alive.length, aliveSettled: settled(alive), calmAsked: calm.size, calmSettled: settled(calm) }
}

/** Shares below their minimum. */
export const tooFew = ({ alive, aliveSettled, calmAsked, calmSettled }: Liveness): ReadonlyArray<string> => [
  ...(calmSettled < calmAsked ? [`only ${calmSettled} of ${calmAsked} payments under calm conditions settled`] : []),
  ...(aliveSettled < alive * aliveShareMin
    ? [`only ${aliveSettled} of ${alive} that were alive in a storm settled`]
    : [])
]

export const describe = ({ alive, aliveSettled, calmAsked, calmSettled }: Liveness): string =>
  `${aliveSettled} of ${alive} alive in storms settled ` +
  `(${((100 * aliveSettled) / Math.max(1, alive)).toFixed(1)} %), ` +
  `${calmSettled} of ${calmAsked} under calm conditions`
