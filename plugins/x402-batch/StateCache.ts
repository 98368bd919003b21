// Readings of channels, and what the contract's events say of them since: a reading counts for as long as every event
// of the ledgers after it was seen and none is of its channel. Pure of I/O: who reads the ledger and asks for events is
// `ChannelStates.ts`. A reading never replaces a newer one, and an event that cannot be read counts against every
// channel.
import { LruCache } from "../../kernel/cache/LruCache.ts"
import type { ContractEvent } from "../../kernel/stellar/TransferEvents.ts"
import { batchEventOf, channelsOfEvent } from "./batchCalls.ts"
import type { ChannelState } from "./batchCodec.ts"

/** Channels whose state is kept. */
const statesMax = 20_000
/** Ledgers that what is known of a channel may be behind the newest one. */
export const staleLedgersMax = 1
/** A node may be so many ledgers ahead of the clock's reading; one further ahead is of a ledger that is no more. */
const aheadLedgersMax = 20
/** Ledgers whose events are asked for after a rest; beyond it channels are read anew. */
const gapLedgersMax = 1_000

/** A channel as of a ledger. */
export interface Known {
  readonly channelId: string
  readonly ledger: number
  /** Undefined when the contract does not know the channel, or its entry is archived. */
  readonly state: ChannelState | undefined
  readonly readMillis: number
}

interface Entry {
  known: Known
  usedLedger: number
  /** Whether the events since its reading are those that were seen. */
  isWatched: boolean
}

export interface StateCache {
  /** What is known of a channel as of the newest ledger or the one before; counts as a use of it. */
  readonly current: (channelId: string, sequence: number) => Known | undefined
  /** The last reading, however old. */
  readonly last: (channelId: string) => Known | undefined
  readonly all: () => ReadonlyArray<Known>
  /** Keeps a reading unless a newer one is kept; returns the one that is. */
  readonly store: (known: Known) => Known
  /** The ledger from which events are to be asked for; undefined while there is nothing to ask for. */
  readonly askFrom: (sequence: number) => number | undefined
  /** Takes the events of all ledgers from the one asked for to `latestLedger`. */
  readonly apply: (
    events: ReadonlyArray<{ readonly ledger: number; readonly event: ContractEvent }>,
    latestLedger: number
  ) => void
  /** Channels that were used since `usedSince` and are not known as of `knownSince`. */
  readonly due: (knownSince: number, usedSince: number) => ReadonlyArray<string>
}

export const makeStateCache = (contract: string): StateCache => {
  const entries = new LruCache<string, Entry>({ name: "batch-channel-states", capacity: statesMax })
  /** Every event of the contract up to this ledger was seen, since the watch began. */
  let seenTo: number | undefined

  /** After a reset of the network no reading is of its ledger. */
  const forgetAll = () => {
    entries.clear()
    seenTo = undefined
  }

  /** Begins the watch anew, with the newest readings. */
  const restart = () => {
    seenTo = undefined
    for (const [, { known }] of entries.entries())
      if (seenTo === undefined || known.ledger > seenTo) seenTo = known.ledger
    for (const [, entry] of entries.entries()) entry.isWatched = entry.known.ledger === seenTo
  }

  const asOf = ({ isWatched, known }: Entry): number =>
    isWatched && seenTo !== undefined ? Math.max(seenTo, known.ledger) : known.ledger

  /** A channel that an event names is as good as unread; it is still due. */
  const drop = (entry: Entry, ledger: number) => {
    if (entry.known.ledger >= ledger) return
    entry.isWatched = false
    entry.known = { ...entry.known, ledger: 0 }
  }

  return {
    current: (channelId, sequence) => {
      const before = entries.peek(channelId)
      if (before !== undefined && before.known.ledger > sequence + aheadLedgersMax) forgetAll()
      const entry = entries.get(channelId, (one) => asOf(one) >= sequence - staleLedgersMax)
      if (entry === undefined) return undefined
      entry.usedLedger = sequence
      return entry.known
    },
    last: (channelId) => entries.peek(channelId)?.known,
    all: () => [...entries.entries()].map(([, { known }]) => known),
    store: (known) => {
      seenTo ??= known.ledger
      const before = entries.peek(known.channelId)
      if (before !== undefined && before.known.ledger > known.ledger) return before.known
      const isWatched = known.ledger >= seenTo
      if (before === undefined) entries.set(known.channelId, { known, usedLedger: known.ledger, isWatched })
      else Object.assign(before, { known, isWatched })
      return known
    },
    askFrom: (sequence) => {
      if (seenTo !== undefined && seenTo > sequence + aheadLedgersMax) forgetAll()
      else if (seenTo !== undefined && sequence - seenTo > gapLedgersMax) restart()
      return seenTo === undefined || sequence <= seenTo || sequence - seenTo > gapLedgersMax ? undefined : seenTo
    },
    apply: (events, latestLedger) => {
      for (const { event, ledger } of events) {
        const read = batchEventOf(contract, event)
        if (read === undefined) for (const [, entry] of entries.entries()) drop(entry, ledger)
        else
          for (const id of channelsOfEvent(read)) {
            const entry = entries.peek(id)
            if (entry !== undefined) drop(entry, ledger)
          }
      }
      seenTo = Math.max(seenTo ?? 0, latestLedger)
    },
    due: (knownSince, usedSince) =>
      [...entries.entries()].flatMap(([id, entry]) =>
        // A channel that is not there is read when it is named, and not with each ledger: names are free.
        entry.known.state !== undefined && entry.usedLedger >= usedSince && asOf(entry) < knownSince ? [id] : []
      )
  }
}
