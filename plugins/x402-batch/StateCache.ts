// Readings of channels, and the contract's events since then. A reading is valid as long as all events of the later
// ledgers were received and none concerns its channel. Pure of I/O: `ChannelStates.ts` reads the ledger and fetches
// events. A reading never replaces a newer one, and an unreadable event invalidates every channel's reading.
import { LruCache } from "../../kernel/cache/LruCache.ts"
import type { EventsAnswer } from "../../kernel/ledger/LedgerRpc.ts"
import { batchEventOf, channelsOfEvent } from "./batchCalls.ts"
import type { ChannelState } from "./batchCodec.ts"

const statesMax = 20_000
/** Maximum age of a cached channel state, in ledgers. */
export const staleLedgersMax = 1
/**
 * Maximum number of ledgers that a node may be ahead of the clock's reading. A state further ahead comes from a ledger
 * that was reset.
 */
const aheadLedgersMax = 20
/** Maximum number of ledgers to fetch events for after an idle period. Beyond it we read the channels again. */
const gapLedgersMax = 1_000

export interface Known {
  readonly channelId: string
  readonly ledger: number
  /** Undefined if the contract does not have the channel, or the node no longer shows its archived entry. */
  readonly state: ChannelState | undefined
  readonly readMillis: number
  /** True if a simulation showed it. Only then does a missing state prove that the channel does not exist. */
  readonly isProven?: boolean
}

interface Entry {
  known: Known
  usedLedger: number
  /** True if all events since the reading were received. */
  isWatched: boolean
}

/** Marks a channel with an event as unread, so that it is due again. */
const drop = (entry: Entry, ledger: number): void => {
  if (entry.known.ledger >= ledger) return
  entry.isWatched = false
  entry.known = { ...entry.known, ledger: 0 }
}

export class StateCache {
  readonly #contract: string
  readonly #entries = new LruCache<string, Entry>({ name: "batch-channel-states", capacity: statesMax })
  /** All events of the contract up to this ledger were received, since the watch began. */
  #seenTo: number | undefined

  constructor(contract: string) {
    this.#contract = contract
  }

  /** The channel's state as of the newest ledger or the previous one. Marks the entry as used. */
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

  /** The ledger for which a channel's state is valid. */
  asOf(channelId: string): number | undefined {
    const entry = this.#entries.peek(channelId)
    return entry === undefined ? undefined : this.#asOf(entry)
  }

  all(): ReadonlyArray<Known> {
    return [...this.#entries.entries()].map(([, { known }]) => known)
  }

  /** Stores a reading unless a newer one is cached; returns the newer of the two. */
  store(known: Known): Known {
    this.#seenTo ??= known.ledger
    const before = this.#entries.peek(known.channelId)
    if (before !== undefined && before.known.ledger > known.ledger) return before.known
    const isWatched = known.ledger >= this.#seenTo
    if (before === undefined) this.#entries.set(known.channelId, { known, usedLedger: known.ledger, isWatched })
    else Object.assign(before, { known, isWatched })
    return known
  }

  /** The first ledger to fetch events from; undefined if no channel needs events. */
  askFrom(sequence: number): number | undefined {
    if (this.#seenTo !== undefined && this.#seenTo > sequence + aheadLedgersMax) this.#forgetAll()
    if (this.#seenTo !== undefined && sequence - this.#seenTo > gapLedgersMax) this.#restart()
    const from = this.#seenTo
    return from === undefined || sequence <= from || sequence - from > gapLedgersMax ? undefined : from
  }

  /** Applies the events of all ledgers from the requested one to `latestLedger`. */
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

  /** Channels that were used since `usedSince` and have no valid state as of `knownSince`. */
  due(knownSince: number, usedSince: number): ReadonlyArray<string> {
    return [...this.#entries.entries()].flatMap(([id, entry]) =>
      // A nonexistent channel is read when a request contains it, not with each ledger: anyone can invent channel ids.
      entry.known.state !== undefined && entry.usedLedger >= usedSince && this.#asOf(entry) < knownSince ? [id] : []
    )
  }

  /** The ledger for which an entry's state is valid. */
  #asOf({ isWatched, known }: Entry): number {
    return isWatched && this.#seenTo !== undefined ? Math.max(this.#seenTo, known.ledger) : known.ledger
  }

  /** After a reset of the network, all readings belong to the old ledger. */
  #forgetAll(): void {
    this.#entries.clear()
    this.#seenTo = undefined
  }

  /** Restarts the watch from the newest readings. */
  #restart(): void {
    const newest = this.all().reduce((most, { ledger }) => Math.max(most, ledger), 0)
    this.#seenTo = newest === 0 ? undefined : newest
    for (const [, entry] of this.#entries.entries()) entry.isWatched = entry.known.ledger === newest
  }
}
