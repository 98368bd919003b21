// The state of channels as the ledger has it, by reads of the contract's entries: no simulation and no database. A
// reading is used while it is of the current ledger or the one before; the channels in use are read again, many a call,
// with each new ledger, so that a withdrawal, a claim or a refund by anyone is known within a ledger and a voucher
// waits for no read. What this facilitator settles itself is read again immediately. A reading never replaces a newer
// one.
import { Context, Deferred, Effect, Layer } from "effect"
import { reconciler } from "../../kernel/actor/Actor.ts"
import { LruCache } from "../../kernel/cache/LruCache.ts"
import { Network } from "../../kernel/config/Network.ts"
import { LedgerClock } from "../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc } from "../../kernel/ledger/LedgerRpc.ts"
import { LedgerUnavailable } from "../../kernel/ledger/LedgerUnavailable.ts"
import { monotonicMillis } from "../../kernel/time/monotonicMillis.ts"
import { channelKey, channelStateOf, receiverKey, type ReceiverState, receiverStateOf } from "./batchCalls.ts"
import type { ChannelState } from "./batchCodec.ts"
import { batchKeys } from "./Config.ts"

/** Channels whose state is kept. */
const statesMax = 20_000
/** Channels of one read. */
const readMax = 200
/** Ledgers that a reading may be behind the newest one. */
export const staleLedgersMax = 1
/** Ledgers since its last use for which a channel is read with each new one. */
const usedLedgers = 24
/** A refusal for its state reads a channel again when the last reading is older than this. */
const doubtMillis = 500

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
}

/** Reads states from the ledger into the cache. */
const makeReadings = Effect.fnUntraced(function* (entries: LruCache<string, Entry>, contract: string) {
  const rpc = yield* LedgerRpc
  const reading = new Map<string, Deferred.Deferred<Known, LedgerUnavailable>>()

  const store = (known: Known, usedLedger: number): Known => {
    const before = entries.peek(known.channelId)
    if (before === undefined) entries.set(known.channelId, { known, usedLedger })
    else if (before.known.ledger <= known.ledger) before.known = known
    return entries.peek(known.channelId)?.known ?? known
  }

  const readSome = Effect.fnUntraced(function* (channelIds: ReadonlyArray<string>) {
    const { latestLedger, values } = yield* rpc.contractData(channelIds.map((id) => channelKey(contract, id)))
    const readMillis = yield* monotonicMillis
    const found: Array<Known> = []
    for (const channelId of channelIds) {
      const value = values.get(channelKey(contract, channelId))
      const state = channelStateOf(value)
      if (value !== undefined && state === undefined)
        return yield* new LedgerUnavailable({
          operation: "getLedgerEntries",
          message: "an entry that is no channel of the batch contract"
        })
      found.push(store({ channelId, ledger: latestLedger, state, readMillis }, latestLedger))
    }
    return found
  })

  const fresh = Effect.fnUntraced(function* (channelIds: ReadonlyArray<string>) {
    const found: Array<Known> = []
    for (let at = 0; at < channelIds.length; at += readMax)
      found.push(...(yield* readSome(channelIds.slice(at, at + readMax))))
    return found
  })

  /** Single flight: one read of a channel at a time, shared by its waiters. */
  const readOne = Effect.fnUntraced(function* (channelId: string) {
    const running = reading.get(channelId)
    if (running !== undefined) return yield* Deferred.await(running)
    const deferred = Deferred.makeUnsafe<Known, LedgerUnavailable>()
    reading.set(channelId, deferred)
    return yield* Effect.map(readSome([channelId]), ([known]) => known!).pipe(
      Effect.onExit((exit) => {
        reading.delete(channelId)
        return Deferred.done(deferred, exit)
      })
    )
  })

  return { fresh, readOne }
})

export class ChannelStates extends Context.Service<
  ChannelStates,
  {
    /** The state of a channel, at most `staleLedgersMax` ledgers old. */
    readonly read: (channelId: string) => Effect.Effect<Known, LedgerUnavailable>
    /** The same, read now unless that was done within the last half second: before a refusal. */
    readonly doubt: (channelId: string) => Effect.Effect<Known, LedgerUnavailable>
    /** The states of channels, read now, in their order. */
    readonly fresh: (channelIds: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Known>, LedgerUnavailable>
    /** What was claimed for a receiver of a token, read now; undefined when nothing ever was. */
    readonly receiver: (receiver: string, token: string) => Effect.Effect<ReceiverState | undefined, LedgerUnavailable>
    /** The channels in use, most recently used last. */
    readonly known: () => ReadonlyArray<Known>
  }
>()("tollkeeper/x402-batch/ChannelStates") {
  static readonly layer = Layer.effect(
    ChannelStates,
    Effect.gen(function* () {
      const rpc = yield* LedgerRpc
      const clock = yield* LedgerClock
      const contract = (yield* Network).keys(batchKeys).batch_contract ?? ""
      const entries = new LruCache<string, Entry>({ name: "batch-channel-states", capacity: statesMax })
      const { fresh, readOne } = yield* makeReadings(entries, contract)

      const read = Effect.fnUntraced(function* (channelId: string) {
        yield* clock.attend
        yield* clock.caughtUp
        const { sequence } = yield* clock.now
        const entry = entries.get(channelId, ({ known }) => known.ledger >= sequence - staleLedgersMax)
        if (entry === undefined) return yield* readOne(channelId)
        entry.usedLedger = sequence
        return entry.known
      })

      const refresh = Effect.gen(function* () {
        const { sequence } = yield* clock.now
        // A channel that is not there is read when it is named, and not with each ledger: names are free.
        const isDue = ({ known, usedLedger }: Entry) =>
          known.state !== undefined && usedLedger >= sequence - usedLedgers && known.ledger < sequence
        yield* fresh([...entries.entries()].flatMap(([id, entry]) => (isDue(entry) ? [id] : [])))
      })
      const watch = yield* reconciler({ id: "batch-channels", every: "30 seconds", turn: refresh })
      yield* clock.subscribe(watch.wake)

      return ChannelStates.of({
        read,
        fresh,
        doubt: Effect.fnUntraced(function* (channelId: string) {
          const known = entries.peek(channelId)?.known
          const at = yield* monotonicMillis
          return known !== undefined && at - known.readMillis < doubtMillis ? known : yield* readOne(channelId)
        }),
        receiver: Effect.fnUntraced(function* (receiver: string, token: string) {
          const key = receiverKey(contract, receiver, token)
          const { values } = yield* rpc.contractData([key])
          return receiverStateOf(values.get(key))
        }),
        known: () => [...entries.entries()].map(([, { known }]) => known)
      })
    })
  )
}
