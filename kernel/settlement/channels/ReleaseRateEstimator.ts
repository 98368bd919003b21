// How fast channels come free, measured while somebody waits for one, and how many have come free since none was. As
// long as nobody waits, nothing is scarce, and nothing is known of the rate. Pure: the caller tells the time, in
// milliseconds since any moment.

/** Rates are measured over as long as channels are scarce, within these bounds: channels come back in bursts. */
const measuredMillisMin = 3_000
const measuredMillisMax = 10_000
const measuredLedgersMin = 2
const measuredLedgersMax = 6
/** Leases remembered for measuring. */
const leasesMax = 4_096

export class ReleaseRateEstimator {
  #leases: Array<number> = []
  #since: number | undefined
  #returned = 0

  /** Somebody waits who found no free channel. */
  get isScarce(): boolean {
    return this.#since !== undefined
  }

  /** Channels that this process has heard of coming free, and that nobody here has leased since. */
  get returned(): number {
    return this.#returned
  }

  /** A channel has come free. */
  freed(): void {
    this.#returned += 1
  }

  leased(now: number): void {
    this.#returned = Math.max(0, this.#returned - 1)
    this.#leases.push(now)
    if (this.#leases.length > leasesMax) this.#leases = this.#leases.slice(leasesMax / 2)
  }

  /**
   * Somebody found no free channel beyond those that it leased. What had come free when it asked, `returned`, is taken:
   * by itself or by another replica.
   */
  found(now: number, returned: number): void {
    this.#since ??= now
    this.#returned = Math.max(0, this.#returned - returned)
  }

  /** Nobody waits any more. */
  ended(): void {
    this.#since = undefined
    this.#returned = 0
  }

  /**
   * Channels leased in a millisecond; undefined until it has been scarce for long enough to tell. They come back with
   * the ledger's closes, so what a ledger brings is counted as due: a look right before a close finds no slower rate
   * than one right after it. A pause is a slow rate, and only a long one is hopeless.
   */
  ratePerMilli(now: number, ledgerMillis: number): number | undefined {
    const measured = this.#since === undefined ? 0 : now - this.#since
    if (measured < Math.max(measuredMillisMin, measuredLedgersMin * ledgerMillis)) return undefined
    const window = Math.min(measured, Math.max(measuredMillisMax, measuredLedgersMax * ledgerMillis))
    const leases = this.#leases.filter((at) => at > now - window).length
    return (leases + Math.max(1, (leases * ledgerMillis) / window)) / window
  }
}
