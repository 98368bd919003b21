// Readings of channels, and what the contract's events say of them since: a reading counts for as long as every event
// of the ledgers after it was seen and none is of its channel. Pure of I/O: who reads the ledger and asks for events is
// `ChannelStates.ts`. A reading never replaces a newer one, and an event that cannot be read counts against every
// channel.
import { LruCache } from "../../kernel/cache/LruCache.ts"
import type { EventsAnswer } from "../../kernel/ledger/LedgerRpc.ts"
import { batchEventOf, channelsOfEvent } from "./batchCalls.ts"
import type { ChannelState } from "./batchCodec.ts"

/** Channels whose state is kept. */
const statesMax = 20_000
/** Ledgers that what is known of a channel may be behind the newest one. */
export const staleLedgersMax = 1
/** How many ledgers a node may be ahead of the clock's reading; one further ahead is of a ledger that is no more. */
const aheadLedgersMax = 20
/** Ledgers whose events are asked for after a rest; beyond it channels are read anew. */
const gapLedgersMax = 1_000

/** A channel as of a ledger. */
export interface Known {
  readonly channelId: string
  readonly ledger: number
  /** Undefined when the contract does not know the channel, or the node shows its archived entry no more. */
  readonly state: ChannelState | undefined
  readonly readMillis: number
  /** Whether a simulation showed it: only then is a channel without a state known to be none. */
  readonly isProven?: boolean
}

interface Entry {
  known: Known
  usedLedger: number
  /** Whether the events since its reading are those that were seen. */
  isWatched: boolean
}

/** A channel that an event names is as good as unread; it is still due. */
const drop = (entry: Entry, ledger: number): void => {
  if (entry.known.ledger >= ledger) return
  entry.isWatched = false
  entry.known = { ...entry.known, ledger: 0 }
}

export class StateCache {
  readonly #contract: string
  readonly #entries = new LruCache<string, Entry>({ name: "batch-channel-states", capacity: statesMax })
  /** Every event of the contract up to this ledger was seen, since the watch began. */
  #seenTo: number | undefined

  constructor(contract: string) {
    this.#contract = contract
  }

  /** What is known of a channel as of the newest ledger or the one before; counts as a use of it. */
  current(channelId: string, sequence: number): Known | undefined {
    const before = this.#entries.peek(channelId)
    if (before !== undefined && before.known.ledger > sequence + aheadLedgersMax) this.#forgetAll()
    const entry = this.#entries.get(channelId, (one) => this.#asOf(one) >= sequence - staleLedgersMax)
    if (entry === undefined) return undefined
    entry.usedLedger = sequence
    return entry.known
  }

  /** The last reading, however old. */
  last(channelId: string): Known | undefined {
    return this.#entries.peek(channelId)?.known
  }

  /** The ledger as of which a channel is known. */
  asOf(channelId: string): number | undefined {
    const entry = this.#entries.peek(channelId)
    return entry === undefined ? undefined : this.#asOf(entry)
  }

  all(): ReadonlyArray<Known> {
    return [...this.#entries.entries()].map(([, { known }]) => known)
  }

  /** Keeps a reading unless a newer one is kept; returns the one that is. */
  store(known: Known): Known {
    this.#seenTo ??= known.ledger
    const before = this.#entries.peek(known.channelId)
    if (before !== undefined && before.known.ledger > known.ledger) return before.known
    const isWatched = known.ledger >= this.#seenTo
    if (before === undefined) this.#entries.set(known.channelId, { known, usedLedger: known.ledger, isWatched })
    else Object.assign(before, { known, isWatched })
    return known
  }

  /** The ledger from which events are to be asked for; undefined while there is nothing to ask for. */
  askFrom(sequence: number): number | undefined {
    if (this.#seenTo !== undefined && this.#seenTo > sequence + aheadLedgersMax) this.#forgetAll()
    if (this.#seenTo !== undefined && sequence - this.#seenTo > gapLedgersMax) this.#restart()
    const from = this.#seenTo
    return from === undefined || sequence <= from || sequence - from > gapLedgersMax ? undefined : from
  }

  /** Takes the events of all ledgers from the one asked for to `latestLedger`. */
  apply({ events, latestLedger }: EventsAnswer): void {
    for (const { event, ledger } of events) {
      const read = batchEventOf(this.#contract, event)
      const named = read === undefined ? this.#entries.entries() : undefined
      for (const [, entry] of named ?? []) drop(entry, ledger)
      for (const id of read === undefined ? [] : channelsOfEvent(read)) {
        const entry = this.#entries.peek(id)
        if (entry !== undefined) drop(entry, ledger)
      }
    }
    this.#seenTo = Math.max(this.#seenTo ?? 0, latestLedger)
  }

  /** Channels that were used since `usedSince` and are not known as of `knownSince`. */
  due(knownSince: number, usedSince: number): ReadonlyArray<string> {
    return [...this.#entries.entries()].flatMap(([id, entry]) =>
      // A channel that is not there is read when it is named, and not with each ledger: names are free.
      entry.known.state !== undefined && entry.usedLedger >= usedSince && this.#asOf(entry) < knownSince ? [id] : []
    )
  }

  /** The ledger as of which an entry is known. */
  #asOf({ isWatched, known }: Entry): number {
    return isWatched && this.#seenTo !== undefined ? Math.max(this.#seenTo, known.ledger) : known.ledger
  }

  /** After a reset of the network no reading is of its ledger. */
  #forgetAll(): void {
    this.#entries.clear()
    this.#seenTo = undefined
  }

  /** Begins the watch anew, with the newest readings. */
  #restart(): void {
    const newest = this.all().reduce((most, { ledger }) => Math.max(most, ledger), 0)
    this.#seenTo = newest === 0 ? undefined : newest
    for (const [, entry] of this.#entries.entries()) entry.isWatched = entry.known.ledger === newest
  }
}
