// A node of the network as it may answer a facilitator: behind, frozen, forgetful, with an index of transactions that
// misses some or is older than the rest of its answer, or reporting a ledger far ahead. What it says of accounts and
// nonces is true as of the ledger it names; a hash it does not know proves nothing.
import type { Random } from "./random.ts"
import type { Included, SimulatedLedger } from "./SimulatedLedger.ts"

/** A false ledger number is this far ahead. */
const farAhead = 1_000_000

export class SimulatedNode {
  /** Ledgers behind the network. */
  lag = 0
  /** Ledgers that it retains. */
  readonly retention: number
  /** Ledgers by which the index of transactions is behind the rest of an answer. */
  indexLag = 0
  /** Share of transactions that the index misses. */
  hides = 0
  /** The ledger at which it is frozen. */
  stillAt: number | undefined
  /** Share of answers to "which is the newest ledger" that are far ahead. */
  ahead = 0
  /** Share of transactions that it says have succeeded though none has them. */
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

  /** What it says the newest ledger is. */
  get claimedLedger(): number {
    return this.latestLedger + (this.#random.chance(this.ahead) ? farAhead : 0)
  }

  isHidden(hash: string): boolean {
    if (this.hides === 0) return false
    const hidden = this.#hidden.get(hash) ?? this.#random.chance(this.hides)
    this.#hidden.set(hash, hidden)
    return hidden
  }

  /** Whether it lies about a transaction that is not on the ledger. */
  isForged(hash: string): boolean {
    if (this.forges === 0) return false
    const forged = this.#forged.get(hash) ?? this.#random.chance(this.forges)
    this.#forged.set(hash, forged)
    return forged
  }

  /** Whether its index of transactions has one that was included. */
  knows(included: Pick<Included, "ledger" | "innerHash">): boolean {
    return (
      included.ledger <= this.latestLedger - this.indexLag &&
      included.ledger >= this.oldestLedger &&
      !this.isHidden(included.innerHash)
    )
  }

  /** From now on it is as good as a node can be: a ledger behind at most, its index complete. */
  heal(): void {
    this.lag = Math.min(this.lag, 1)
    this.indexLag = 0
    this.hides = 0
    this.stillAt = undefined
    this.ahead = 0
    this.forges = 0
  }
}
