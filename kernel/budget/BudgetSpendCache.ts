// A cache of a day's spending, at most one second old, plus what this process has reserved since: enough to say that a
// payment still fits without a query for each. Pure. It never says that one does not fit: what other replicas have
// released since is not known here. What it admits is checked exactly when it is recorded.
import type { BudgetPrincipal, DayBounds, DaySpent } from "./Reservation.ts"

/** Time to live of a read, milliseconds: other replicas reserve too. */
const believedMillis = 1_000
/** Maximum number of cached principals; beyond it all are read anew. */
const principalsMax = 1_000

/** Whether this much more fits what is spent. */
export const fitsWithin = ({ anonymous, inAll, own }: DaySpent, bounds: DayBounds, keyed: boolean, stroops: bigint) =>
  own + stroops <= bounds.own && inAll + stroops <= bounds.inAll && (keyed || anonymous + stroops <= bounds.inAll / 2n)

export class BudgetSpendCache {
  #day = ""
  #readAt = -Infinity
  #inAll = 0n
  #anonymous = 0n
  readonly #own = new Map<string, { readonly at: number; stroops: bigint }>()

  /** True when it surely did a moment ago; false says that it must be read. */
  fits({ id, keyed }: BudgetPrincipal, stroops: bigint, bounds: DayBounds, at: { day: string; now: number }): boolean {
    const own = this.#own.get(id)
    if (own === undefined || this.#day !== at.day) return false
    if (at.now - Math.min(own.at, this.#readAt) > believedMillis) return false
    return fitsWithin({ own: own.stroops, inAll: this.#inAll, anonymous: this.#anonymous }, bounds, keyed, stroops)
  }

  read({ id }: BudgetPrincipal, { anonymous, inAll, own }: DaySpent, at: { day: string; now: number }): void {
    if (this.#day !== at.day || this.#own.size >= principalsMax) this.#own.clear()
    this.#day = at.day
    this.#readAt = at.now
    this.#inAll = inAll
    this.#anonymous = anonymous
    this.#own.set(id, { at: at.now, stroops: own })
  }

  reserving({ id, keyed }: BudgetPrincipal, stroops: bigint): void {
    const own = this.#own.get(id)
    if (own !== undefined) own.stroops += stroops
    this.#inAll += stroops
    if (!keyed) this.#anonymous += stroops
  }
}
