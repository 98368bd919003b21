// Admission control for channels, before anything costly is done for a payment. A place counts from its admission until
// its channel is leased or the wait fails. A payment that cannot be served within its wait is refused immediately, with
// an estimate of when to retry. The estimate uses the places before it in the turns of all principals, and the release
// rate of channels: measured while they are scarce, derived from the close interval before that. Pure.
import type { ReleaseRateEstimator } from "./ReleaseRateEstimator.ts"

/**
 * Maximum places in total, and of one principal: they bound memory, since hopeless payments are refused long before.
 */
const placesMax = 2_000
const placesOfOneMax = 250
/** Time from a ledger's close until the channels that it frees are leased again, milliseconds. */
const noticedMillis = 250
/** Ledgers from a lease until its channel is free again, if every released channel is leased immediately. */
const ledgersHeld = 1.2
/** The bounds of an estimate in an answer, in milliseconds. */
const retryMillisMin = 1_000
const retryMillisMax = 60_000

interface LoadConditions {
  /** A reading of `monotonicMillis`. */
  readonly now: number
  /** Milliseconds between two ledgers. */
  readonly ledgerMillis: number
  /** Number of channels, free or not. */
  readonly channels: number
}

export class AdmissionControl {
  readonly #scarcity: ReleaseRateEstimator
  readonly #places = new Map<string, number>()
  #placesInAll = 0

  constructor(scarcity: ReleaseRateEstimator) {
    this.#scarcity = scarcity
  }

  /** Undefined if the place was given; otherwise the milliseconds until a retry. */
  enter(principal: string, waitMillis: number, conditions: LoadConditions): number | undefined {
    const own = this.#places.get(principal) ?? 0
    const excess = this.#estimate(own, conditions) - waitMillis
    if (excess > 0 || own >= placesOfOneMax || this.#placesInAll >= placesMax)
      return Math.min(retryMillisMax, Math.max(retryMillisMin, Math.ceil(excess)))
    this.#places.set(principal, own + 1)
    this.#placesInAll += 1
    return undefined
  }

  leave(principal: string): void {
    const own = this.#places.get(principal)
    if (own === undefined) return
    if (own === 1) this.#places.delete(principal)
    else this.#places.set(principal, own - 1)
    this.#placesInAll -= 1
  }

  get places(): ReadonlyMap<string, number> {
    return this.#places
  }

  /**
   * Milliseconds until a channel for a principal that already has `own` places. Ledger closes release channels. So at
   * worst it takes whole ledgers; if a ledger is long and few wait, it takes twice their share of one.
   */
  #estimate(own: number, { channels, ledgerMillis, now }: LoadConditions): number {
    // Served in turns: before it, each principal is served at most `own` + 1 times, if it has waiters.
    let before = 0
    for (const places of this.#places.values()) before += Math.min(places, own + 1)
    // Right after a close, freed channels are not leased yet, and answered callers may come again immediately.
    const free = this.#scarcity.isScarce ? Math.min(channels, this.#scarcity.returned) : channels
    if (before < free) return 0
    const reckoned = Math.max(1, channels) / (ledgersHeld * ledgerMillis)
    const linear = (before + 1 - free) / (this.#scarcity.ratePerMilli(now, ledgerMillis) ?? reckoned)
    return Math.min(2 * linear, Math.ceil(linear / ledgerMillis) * ledgerMillis + noticedMillis)
  }
}
