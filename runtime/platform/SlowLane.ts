// Some addresses are read later. A refused request that is repeated immediately costs more than an answer. An address
// waits for a second once it exceeds the rate of refused requests. Open connections of the address continue.
import { BoundedMap } from "../../kernel/cache/BoundedMap.ts"

/** Refused requests of an address in a second, with bursts of twice that. */
const refusalsPerSecond = 10
const refusalsBurst = 2 * refusalsPerSecond

/** Less than the time that a new connection has for its first head. */
const waitMillis = 1_000

const addressesMax = 10_000

interface Entry {
  refusals: number
  at: number
  /** End of the current wait. */
  until: number
}

export class SlowLane {
  readonly #entries = new BoundedMap<string, Entry>(addressesMax)

  /** Milliseconds until an address is read again; 0 if it need not wait. */
  waitOf(address: string, now: number): number {
    return Math.max(0, (this.#entries.peek(address)?.until ?? 0) - now)
  }

  /** Counts a refused request. */
  refused(address: string, now: number): void {
    const entry = this.#entries.get(address) ?? { refusals: 0, at: now, until: -Infinity }
    this.#entries.set(address, entry)
    entry.refusals = Math.max(0, entry.refusals - ((now - entry.at) / 1_000) * refusalsPerSecond) + 1
    entry.at = now
    if (entry.refusals > refusalsBurst) entry.until = now + waitMillis
  }
}
