// A node of the network and its possible answers to a facilitator: it may lag, freeze or lose data, its index of
// transactions may be incomplete or older than the rest of its answer, or it may report a ledger far ahead. Its
// statements about accounts and nonces are true as of the ledger in the answer; an unknown hash proves nothing.
import type { Random } from "./random.ts"
import type { Included, SimulatedLedger } from "./SimulatedLedger.ts"

/** A false ledger number is this far ahead. */
const farAhead = 1_000_000

export class SimulatedNode {
  /** Ledgers behind the network. */
  lag = 0
  /** Number of ledgers that it retains. */
  readonly retention: number
  /** Ledgers that the transaction index lags behind the rest of an answer. */
  indexLag = 0
  /** Share of transactions missing in the index. */
  hides = 0
  /** The ledger where this node froze. */
  stillAt: number | undefined
  /** Share of answers about the newest ledger that are far ahead. */
  ahead = 0
  /** Share of transactions that it falsely reports as successful although no ledger has them. */
  forges = 0
  readonly #forged = new Map<string, boolean>()
  readonly #ledger: SimulatedLedger
  readonly #random: Random
  readonly #hidden = new Map<string, boolean>()

  constructor(ledger: SimulatedLedger, random: Random, retention: number) {
    this.#ledger = ledger
    this.#random = random
    this.retention = retention
  }

  get latestLedger(): number {
    return Math.min(this.stillAt ?? Infinity, this.#ledger.sequence - this.lag)
  }

  get oldestLedger(): number {
    return Math.max(1, this.latestLedger - this.retention)
  }

  /** The newest ledger in its answers. */
  get claimedLedger(): number {
    return this.latestLedger + (this.#random.chance(this.ahead) ? farAhead : 0)
  }

  isHidden(hash: string): boolean {
    if (this.hides === 0) return false
    const hidden = this.#hidden.get(hash) ?? this.#random.chance(this.hides)
    this.#hidden.set(hash, hidden)
    return hidden
  }

  /** True if it lies about a transaction that the ledger does not have. */
  isForged(hash: string): boolean {
    if (this.forges === 0) return false
    const forged = this.#forged.get(hash) ?? this.#random.chance(this.forges)
    this.#forged.set(hash, forged)
    return forged
  }

  /** True if its index has a transaction that was included. */
  knows(included: Pick<Included, "ledger" | "innerHash">): boolean {
    return (
      included.ledger <= this.latestLedger - this.indexLag &&
      included.ledger >= this.oldestLedger &&
      !this.isHidden(included.innerHash)
    )
  }

  /** From now on it is as good as a node can be: at most one ledger behind, with a complete index. */
  heal(): void {
    this.lag = Math.min(this.lag, 1)
    this.indexLag = 0
    this.hides = 0
    this.stillAt = undefined
    this.ahead = 0
    this.forges = 0
  }
}
