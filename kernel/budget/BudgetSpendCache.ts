// A cache of a day's spending plus this process's reservations since the last read. It can confirm that a payment still
// fits without a query for each. Pure. It never confirms that a payment does not fit, since other replicas may have
// released reservations. The record checks every admitted payment exactly.
import type { BudgetPrincipal, DayBounds, DaySpent } from "./Reservation.ts"

/** Time to live of a read, milliseconds: other replicas reserve too. */
const believedMillis = 1_000
/** Maximum number of cached principals; beyond it all are read again. */
export const principalsMax = 1_000

export interface AllSpent extends Omit<DaySpent, "own"> {
  /** By principal. */
  readonly of: ReadonlyMap<string, bigint>
}

/** Whether this much more fits on top of the spending. */
export const fitsWithin = ({ anonymous, inAll, own }: DaySpent, bounds: DayBounds, keyed: boolean, stroops: bigint) =>
  own + stroops <= bounds.own && inAll + stroops <= bounds.inAll && (keyed || anonymous + stroops <= bounds.inAll / 2n)

export class BudgetSpendCache {
  #day = ""
  #readAt = -Infinity
  #inAll = 0n
  #anonymous = 0n
  readonly #own = new Map<string, { readonly at: number; stroops: bigint }>()

  /** True if it fitted by a recent read; false means that the caller must read again. */
  fits({ id, keyed }: BudgetPrincipal, stroops: bigint, bounds: DayBounds, at: { day: string; now: number }): boolean {
    const own = this.#own.get(id)
    if (own === undefined || this.#day !== at.day) return false
    if (at.now - Math.min(own.at, this.#readAt) > believedMillis) return false
    return fitsWithin({ own: own.stroops, inAll: this.#inAll, anonymous: this.#anonymous }, bounds, keyed, stroops)
  }

  /** By the last read, regardless of its age; a principal or a day that was never read counts as unspent. */
  fitted({ id, keyed }: BudgetPrincipal, stroops: bigint, bounds: DayBounds, day: string): boolean {
    const isToday = this.#day === day
    const own = isToday ? (this.#own.get(id)?.stroops ?? 0n) : 0n
    const spent = { own, inAll: isToday ? this.#inAll : 0n, anonymous: isToday ? this.#anonymous : 0n }
    return fitsWithin(spent, bounds, keyed, stroops)
  }

  /** Stores a read of the totals and of the principals that have spent most; all others count as never read. */
  readAll({ anonymous, inAll, of }: AllSpent, at: { day: string; now: number }): void {
    this.#day = at.day
    this.#readAt = at.now
    this.#inAll = inAll
    this.#anonymous = anonymous
    this.#own.clear()
    for (const [id, stroops] of of) this.#own.set(id, { at: at.now, stroops })
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
