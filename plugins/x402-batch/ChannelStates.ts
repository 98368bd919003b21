// Cache of the channels' states on the ledger, filled by reads of the contract's entries: no simulation and no
// database. A channel is read once. With each new ledger, one call fetches the contract's events for all channels, and
// a channel in an event is read again immediately. So a withdrawal, a claim or a refund by anyone is visible within a
// ledger, a voucher never waits for a read, and a channel is read again only after a call has changed it. If a node
// does not serve events, the channels in use are read with each ledger instead. Channels that this facilitator settles
// are read again immediately.
import { Context, Effect, Layer } from "effect"
import { reconciler } from "../../kernel/actor/Actor.ts"
import { Network } from "../../kernel/config/Network.ts"
import { batched } from "../../kernel/database/batched.ts"
import { LedgerClock, type LedgerTime } from "../../kernel/ledger/LedgerClock.ts"
import { LedgerRpc, LedgerUnavailable } from "../../kernel/ledger/LedgerRpc.ts"
import type { Payment } from "../../kernel/payment/Payment.ts"
import { monotonicMillis } from "../../kernel/time/monotonicMillis.ts"
import { channelKey, channelStateOf, receiverKey, type ReceiverState, receiverStateOf } from "./batchCalls.ts"
import { batchKeys } from "./Config.ts"
import { behind, proveState } from "./proveState.ts"
import { type Known, StateCache, staleLedgersMax } from "./StateCache.ts"

const readMax = 200
/** Minimum time between the starts of two reads, so that unknown channels cause few calls. */
const readIntervalMillis = 20
/**
 * Maximum simulations per second that prove whether a channel exists: in all, for the callers without a key together,
 * and for one caller. Anyone can invent channel ids, and must not use up the proofs of others.
 */
const proofsPerSecondMax = 10
const keylessProofsMax = 5
const callerProofsMax = 3
/** A channel is watched for this many ledgers after its last use. */
const usedLedgers = 24
/**
 * Maximum age of the newest ledger for using its states, because a frozen node does not show newer ones. With a long
 * close interval, three intervals are allowed instead.
 */
const frozenSecondsMax = 15
const frozenLedgersMax = 3
/** Number of ledger close times that are kept. A reading is rarely more than one ledger behind. */
const closesKept = 3
/** Before a refusal because of its state, a channel is read again if the last reading is older than this. */
const doubtMillis = 500

const frozen = new LedgerUnavailable({ operation: "getLatestLedger", message: "the ledger does not advance" })

/** Seconds for which a state may be used without a newer ledger. */
const believedSeconds = ({ secondsPerLedger }: LedgerTime): number =>
  Math.max(frozenSecondsMax, frozenLedgersMax * secondsPerLedger)

/** The ledger's time. Fails if the ledger has not advanced for too long. */
const advancing = (clock: LedgerClock["Service"]) =>
  Effect.flatMap(clock.status, ({ ageSeconds, time }) =>
    time !== undefined && ageSeconds <= believedSeconds(time) ? Effect.succeed(time) : Effect.fail(frozen)
  )

/** Reads states from the ledger into the cache. */
const makeReadings = Effect.fnUntraced(function* (cache: StateCache, contract: string) {
  const rpc = yield* LedgerRpc

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
          message: "an entry that is not a channel of the batch contract"
        })
      found.push(cache.store({ channelId, ledger: latestLedger, state, readMillis }))
    }
    return found
  })

  /** Concurrent reads share one call, with each channel once. The next call starts after the current one has ended. */
  const readOne = yield* batched({
    maxBatchSize: readMax,
    minIntervalMillis: readIntervalMillis,
    runBatch: Effect.fnUntraced(function* (channelIds: ReadonlyArray<string>) {
      const byId = new Map((yield* readSome([...new Set(channelIds)])).map((known) => [known.channelId, known]))
      return channelIds.map((channelId) => byId.get(channelId)!)
    })
  })
  const fresh = (channelIds: ReadonlyArray<string>) => Effect.forEach(channelIds, readOne, { concurrency: "unbounded" })

  return { fresh, readOne }
})

/** The state of a receiver, at the newest ledger or later. */
const readReceiver = Effect.fnUntraced(function* (rpc: LedgerRpc["Service"], key: string, newest: number) {
  const { latestLedger, values } = yield* rpc.contractData([key])
  if (latestLedger < newest) return yield* behind("getLedgerEntries", latestLedger, newest)
  return receiverStateOf(values.get(key))
})

/** The caller on whose behalf a channel is read. */
type Caller = Pick<Payment["principal"], "keyed" | "source">

/** Limits the simulations for unknown channels per second. */
const makeProofs = (cache: StateCache, contract: string) => {
  let begunMillis = -Infinity
  const begun = new Map<string, number>()
  /** Counts a proof, unless a limit of this second is reached. */
  const mayBegin = ({ keyed, source }: Caller, now: number): boolean => {
    if (now - begunMillis >= 1_000) {
      begunMillis = now
      begun.clear()
    }
    const limits: ReadonlyArray<readonly [name: string, most: number]> = [
      ["", proofsPerSecondMax],
      ...(keyed ? [] : [["keyless", keylessProofsMax] as const]),
      [source, callerProofsMax]
    ]
    if (limits.some(([name, most]) => (begun.get(name) ?? 0) >= most)) return false
    for (const [name] of limits) begun.set(name, (begun.get(name) ?? 0) + 1)
    return true
  }
  return Effect.fnUntraced(function* (channelId: string, leastLedger: number, caller: Caller) {
    const known = cache.last(channelId)
    if (known?.isProven === true && (cache.asOf(channelId) ?? 0) >= leastLedger) return known
    const readMillis = yield* monotonicMillis
    if (!mayBegin(caller, readMillis))
      return yield* new LedgerUnavailable({ operation: "simulateTransaction", message: "too many unknown channels" })
    const { ledger, state } = yield* proveState(yield* LedgerRpc, contract, channelId, leastLedger)
    const proven: Known = { channelId, ledger, state, readMillis, isProven: true }
    const kept = cache.store(proven)
    return kept.state === undefined ? proven : kept
  })
}

export class ChannelStates extends Context.Service<
  ChannelStates,
  {
    /** The state of a channel as of the newest ledger or the previous one. */
    readonly read: (channelId: string) => Effect.Effect<Known, LedgerUnavailable>
    /** The same, but reads it now unless the last read was within half a second. Used before a refusal. */
    readonly doubt: (channelId: string) => Effect.Effect<Known, LedgerUnavailable>
    /** The states of channels, read now, in their order. */
    readonly fresh: (channelIds: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Known>, LedgerUnavailable>
    /**
     * The amount claimed for a receiver of a token, read now; undefined if the receiver never claimed any. Fails on a
     * node behind the newest ledger, which may not show the last claim.
     */
    readonly receiver: (receiver: string, token: string) => Effect.Effect<ReceiverState | undefined, LedgerUnavailable>
    /**
     * Like `read`, for a channel without an entry in any read. Uses a simulation, which also finds archived entries.
     * Fails unless the simulation proves that the channel does not exist, and beyond the caller's share of simulations.
     */
    readonly prove: (channelId: string, caller: Caller) => Effect.Effect<Known, LedgerUnavailable>
    /** A ledger's close time, Unix seconds, at or before the close time of the channel's reading. */
    readonly closedAt: (channelId: string) => number | undefined
    /** The state of a channel's last reading, however old. */
    readonly stateOf: (channelId: string) => Known["state"]
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
      const cache = new StateCache(contract)
      const { fresh, readOne } = yield* makeReadings(cache, contract)
      let usedLedger = -Infinity
      let closes: ReadonlyArray<LedgerTime> = []
      const noteClose = (time: LedgerTime) => {
        if (time.sequence !== closes.at(-1)?.sequence) closes = [...closes.slice(-closesKept), time]
        return time.sequence
      }

      const read = Effect.fnUntraced(function* (channelId: string) {
        yield* clock.attend
        yield* clock.caughtUp
        const time = yield* advancing(clock)
        const sequence = noteClose(time)
        usedLedger = sequence
        const current = cache.current(channelId, sequence)
        if (current !== undefined) return current
        const known = yield* readOne(channelId)
        const behindSeconds = (sequence - known.ledger) * time.secondsPerLedger
        return behindSeconds <= believedSeconds(time) ? known : yield* frozen
      })

      const watchEvents = Effect.gen(function* () {
        const sequence = noteClose(yield* clock.now)
        const usedSince = sequence - usedLedgers
        if (usedLedger < usedSince) return
        const from = cache.askFrom(sequence)
        const isSeen =
          from !== undefined &&
          (yield* Effect.match(rpc.contractEvents(contract, from), {
            onFailure: () => false,
            onSuccess: (answer) => {
              cache.apply(answer)
              return true
            }
          }))
        yield* fresh(cache.due(isSeen ? sequence - staleLedgersMax : sequence, usedSince))
      })
      const watch = yield* reconciler({ id: "batch-channels", every: "30 seconds", turn: watchEvents })
      yield* clock.subscribe(watch.wake)

      const proofs = makeProofs(cache, contract)
      return ChannelStates.of({
        read,
        fresh,
        prove: Effect.fnUntraced(function* (channelId: string, caller: Caller) {
          const { sequence } = yield* clock.now
          return yield* Effect.provideService(proofs(channelId, sequence - staleLedgersMax, caller), LedgerRpc, rpc)
        }),
        doubt: Effect.fnUntraced(function* (channelId: string) {
          const known = cache.last(channelId)
          const at = yield* monotonicMillis
          return known !== undefined && at - known.readMillis < doubtMillis ? known : yield* readOne(channelId)
        }),
        receiver: (receiver, token) =>
          Effect.flatMap(clock.now, ({ sequence }) =>
            readReceiver(rpc, receiverKey(contract, receiver, token), sequence)
          ),
        closedAt: (channelId) => {
          const asOf = cache.asOf(channelId)
          return asOf === undefined ? undefined : closes.findLast(({ sequence }) => sequence <= asOf)?.closedAtSeconds
        },
        stateOf: (channelId) => cache.last(channelId)?.state,
        known: () => cache.all()
      })
    })
  )
}
