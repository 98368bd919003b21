// Estimates the rate of channel releases, measured while a waiter exists, and counts the releases since the last waiter
// left. Without waiters channels are not scarce, and the rate is unknown. Pure: the caller passes the time, in
// milliseconds since any moment.

/** Rates are measured over the time that channels are scarce, within these bounds: releases come in bursts. */
const measuredMillisMin = 3_000
const measuredMillisMax = 10_000
const measuredLedgersMin = 2
const measuredLedgersMax = 6
/** Maximum number of leases in the measurement. */
const leasesMax = 4_096

export class ReleaseRateEstimator {
  #leases: Array<number> = []
  #since: number | undefined
  #returned = 0

  /** A waiter found no free channel. */
  get isScarce(): boolean {
    return this.#since !== undefined
  }

  /** Channels released since this process last leased them. */
  get returned(): number {
    return this.#returned
  }

  freed(): void {
    this.#returned += 1
  }

  leased(now: number): void {
    this.#returned = Math.max(0, this.#returned - 1)
    this.#leases.push(now)
    if (this.#leases.length > leasesMax) this.#leases = this.#leases.slice(leasesMax / 2)
  }

  /**
   * A waiter found no free channel in addition to those that it leased. The releases observed at that time, `returned`,
   * count as leased: by this or another replica.
   */
  found(now: number, returned: number): void {
    this.#since ??= now
    this.#returned = Math.max(0, this.#returned - returned)
  }

  /** The last waiter has left. */
  ended(): void {
    this.#since = undefined
    this.#returned = 0
  }

  /**
   * Channels leased per millisecond; undefined until channels have been scarce for long enough. Ledger closes release
   * channels, so the releases of a ledger count as due: a reading right before a close must not find a slower rate than
   * one right after it. A pause means a slow rate; only a long pause means no releases.
   */
  ratePerMilli(now: number, ledgerMillis: number): number | undefined {
    const measured = this.#since === undefined ? 0 : now - this.#since
    if (measured < Math.max(measuredMillisMin, measuredLedgersMin * ledgerMillis)) return undefined
    const window = Math.min(measured, Math.max(measuredMillisMax, measuredLedgersMax * ledgerMillis))
    const leases = this.#leases.filter((at) => at > now - window).length
    return (leases + Math.max(1, (leases * ledgerMillis) / window)) / window
  }
}
