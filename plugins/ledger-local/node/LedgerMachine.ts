// The ledger with its clock and its files: an earlier run's ledger or a new one, closed one ledger at a time. A close
// is computed, written and published in one uninterruptible step, so that no reader sees a ledger that is not on disk.
// Its clock is Effect's, which a test controls, and may be set ahead of it. A fork computes until it needs an entry
// that is not fetched yet, fetches it, and computes again; a due ledger closes without entries that cannot be fetched.
import { Clock, Effect, Ref, Semaphore } from "effect"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Deadline } from "../../../kernel/platform/Deadline.ts"
import { Unsupported } from "../engine/host/HostError.ts"
import { type NetworkSettings, testnet } from "../engine/state/NetworkSettings.ts"
import { WasmRuntime } from "../engine/wasm/WasmRuntime.ts"
import { type ChosenSettings, PROTOCOL_MAX, PROTOCOL_MIN, withChoices } from "./chosenSettings.ts"
import { combineFaults, type Faults } from "./Faults.ts"
import { beginFork } from "./fork/beginFork.ts"
import { type ForkedEntries, ForkRefused, keepsFork } from "./fork/ForkedEntries.ts"
import { settingsOf } from "./fork/readOrigin.ts"
import { type UpstreamFailed, upstreamFailed } from "./fork/Upstream.ts"
import { genesis } from "./genesis.ts"
import { type LedgerJournal, openJournal } from "./LedgerJournal.ts"
import { type ClosedLedger, Ledger, type LedgerOptions } from "./Ledger.ts"
import { missingIn } from "./Offender.ts"
import { type Snapshot, Snapshots } from "./Snapshots.ts"
import type { EngineCrypto } from "../engine/host/Random.ts"

/**
 * Randomness that is the same in every run: the nonces and seeds that simulations take, from a word. Each reading is
 * the HMAC of its number under the word, so that the same requests in the same order get the same answers. Not secret,
 * and for nothing but tests.
 */
const BLOCK_BYTES = 32

const seededCrypto = (crypto: EngineCrypto, word: string): EngineCrypto => {
  const utf8 = new TextEncoder()
  const key = crypto.sha256(utf8.encode(`tollkeeper local ledger seed: ${word}`))
  let readings = 0
  const randomBytes = (length: number): Uint8Array => {
    const bytes = new Uint8Array(length)
    for (let at = 0; at < length; at += BLOCK_BYTES)
      bytes.set(crypto.hmacSha256(key, utf8.encode(String(readings++))).subarray(0, length - at), at)
    return bytes
  }
  return { ...crypto, randomBytes }
}

/** The passphrase of the test network, which official clients take for granted. */
export const TESTNET_PASSPHRASE = "Test SDF Network ; September 2015"

export interface MachineOptions {
  readonly passphrase?: string
  /** Default the test network's, and of a fork its network's. */
  readonly settings?: NetworkSettings
  /** What of the settings is otherwise. */
  readonly chosen?: ChosenSettings
  /** Milliseconds between two ledgers; "manual" (the default) closes only when asked to. */
  readonly close?: number | "manual"
  /** Ledgers that stay known, default 17 280, and transactions, default 20 000. */
  readonly retentionLedgers?: number
  readonly retentionTransactions?: number
  /** Default 1 000. */
  readonly transactionsPerLedgerMax?: number
  /** Wall time that the contracts of one call may take, default 2 000. */
  readonly contractMillisMax?: number
  /**
   * Wall time that the contracts of one ledger may take before the rest waits for the next. Defaults to a quarter of
   * the time between two ledgers; unlimited when closed by hand, or with a seed or a start time.
   */
  readonly closeMillisMax?: number
  readonly genesisSequence?: number
  /** Ledgers in the journal before it is folded into a snapshot; default 20 000. */
  readonly journalLinesMax?: number
  /** Drops everything after a damaged line of the journal; otherwise it is a defect. */
  readonly repair?: boolean
  readonly faults?: ReadonlyArray<Partial<Faults>>
  /** Fixed time of the clock, in seconds since 1970: it advances only with ledgers and when it is set. */
  readonly startTime?: bigint
  /** Randomness that follows from this word. */
  readonly seed?: string
  /** No two ledgers close in the same second, however far ahead of the clock that is; so with `startTime` too. */
  readonly strictCloseTimes?: boolean
}

export interface LedgerMachine {
  readonly ledger: Ledger
  readonly passphrase: string
  /** The present, in seconds. */
  readonly now: Effect.Effect<bigint>
  readonly setAhead: (seconds: bigint) => Effect.Effect<void>
  /** Takes a snapshot of the ledger; undefined when too many are kept. */
  readonly snapshot: Effect.Effect<Snapshot | undefined>
  /** Reverts to a snapshot, which stays available; undefined for an unknown id. */
  readonly revert: (id: string) => Effect.Effect<Snapshot | undefined>
  /** Drops a snapshot; false for an unknown id. */
  readonly drop: (id: string) => Effect.Effect<boolean>
  /** Reads the ledger, or computes something that changes nothing; repeated when a fork had to fetch entries for it. */
  readonly lookup: <A>(find: () => A) => Effect.Effect<A, UpstreamFailed>
  /**
   * Runs computations that take long one at a time, and lets everything else that is due go before each: a ledger
   * closes after one of them at most, however many wait.
   */
  readonly inTurn: <A, E>(work: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** Closes the prepared ledger, if there is one. */
  readonly close: <Closed extends ClosedLedger | undefined>(
    prepare: (now: bigint) => Closed
  ) => Effect.Effect<Closed, UpstreamFailed>
  readonly closeNext: Effect.Effect<ClosedLedger>
  /** Closes the next ledger for the clock; while close times are ahead of it, every second one of the empty ones. */
  readonly closeDue: Effect.Effect<void>
  readonly reportDefects: Effect.Effect<void>
}

const second = 1_000
/**
 * Maximum instructions that the contract transactions of a ledger declare together: as on the test network, in two
 * clusters.
 */
const INSTRUCTIONS_PER_LEDGER_MAX = 1_200_000_000
/** Contracts of one call that take longer are stopped; the fuel they are allowed takes a fraction of it. */
const CONTRACT_MILLIS_MAX = 2_000

/** The contracts' share of the time between two ledgers: they may have to be computed a second time. */
const CLOSE_SHARE = 1 / 4

/** Time limit for the contracts of a ledger. A reproducible ledger has none. */
const closeMillisMax = ({ close, closeMillisMax: chosen, seed, startTime }: MachineOptions): number | undefined =>
  chosen ??
  (typeof close === "number" && seed === undefined && startTime === undefined ? close * CLOSE_SHARE : undefined)

/** Fetches that a fork makes for one computation at most; a contract cannot read as many entries. */
const ROUNDS_MAX = 500

const report = (ledger: Ledger): Effect.Effect<void> =>
  Effect.suspend(() =>
    Effect.forEach(
      ledger.takeDefects(),
      ({ during, error }) =>
        error instanceof Unsupported
          ? Effect.logWarning(`the embedded ledger met what it does not execute: ${error.message}`)
          : Effect.logError(`the embedded ledger met a defect of its own while ${during}`, error),
      { discard: true }
    )
  )

interface Parts {
  readonly ledger: Ledger
  readonly passphrase: string
  readonly clock: LedgerClock
  /** Absent: in memory. */
  readonly journal: LedgerJournal | undefined
  /** Absent: the ledger is not a fork. */
  readonly forked: ForkedEntries | undefined
}

/** Computes, and fetches entries that a fork still needs, until the computation succeeds. */
const readingAt =
  (forked: ForkedEntries | undefined): LedgerMachine["lookup"] =>
  <A>(find: () => A) => {
    if (forked === undefined) return Effect.sync(find)
    const attempt = (round: number): Effect.Effect<A, UpstreamFailed> => {
      try {
        return Effect.succeed(find())
      } catch (error) {
        const missing = missingIn(error)
        if (missing === undefined) throw error
        if (round > ROUNDS_MAX) return Effect.fail(upstreamFailed(`it was asked ${ROUNDS_MAX} times for one answer`))
        return Effect.flatMap(forked.learn(missing.keys), () => attempt(round + 1))
      }
    }
    return Effect.suspend(() => attempt(1))
  }

/** One change at a time, each whole or without effect, and on disk before it is seen. */
const machineOf = (parts: Parts): LedgerMachine => {
  const { clock, forked, journal, ledger, passphrase } = parts
  const closing = Semaphore.makeUnsafe(1)
  const computing = Semaphore.makeUnsafe(1)
  const snapshots = new Snapshots()
  const whole = <A>(change: Effect.Effect<A>): Effect.Effect<A> =>
    change.pipe(Effect.uninterruptible, closing.withPermits(1))
  const find = readingAt(forked)
  const take = Effect.fnUntraced(function* <Closed extends ClosedLedger | undefined>(closed: Closed) {
    yield* report(ledger)
    if (closed === undefined) return closed
    if (journal !== undefined) yield* journal.append(closed)
    ledger.publish(closed)
    if (journal !== undefined) yield* journal.compact(ledger)
    return closed
  }, Effect.uninterruptible)
  const prepareNext = Effect.flatMap(clock.now, (now) =>
    find(() => ledger.prepareClose(now)).pipe(
      Effect.catch(({ message }) =>
        Effect.as(
          Effect.logWarning(
            `a ledger closes without the transactions that need more of the forked network: ${message}`
          ),
          ledger.prepareClose(now, true)
        )
      )
    )
  )
  const closeNext = prepareNext.pipe(Effect.flatMap(take), closing.withPermits(1))
  const { aheadSecondsMax } = ledger.options
  let isLeftOut = false
  const closeDue = Effect.flatMap(clock.now, (now) => {
    const ahead = Number(ledger.latest.closeTime - now)
    const isToRest = ledger.queue.size === 0 && ahead > 0 && ahead <= aheadSecondsMax && aheadSecondsMax < Infinity
    isLeftOut = isToRest && !isLeftOut
    return isLeftOut ? Effect.void : Effect.asVoid(closeNext)
  })
  return {
    ledger,
    passphrase,
    now: clock.now,
    // Ledgers may have run ahead of the clock; then it is their time that is set ahead.
    setAhead: (seconds) =>
      Effect.flatMap(clock.now, (present) => {
        const run = ledger.latest.closeTime - present
        return Ref.update(clock.ahead, (before) => before + seconds + (run > 0n ? run : 0n))
      }),
    snapshot: Effect.map(Ref.get(clock.ahead), (seconds) => snapshots.keep(ledger.capture(), seconds)),
    revert: (id) =>
      whole(
        Effect.gen(function* () {
          const snapshot = snapshots.find(id)
          if (snapshot === undefined) return undefined
          if (journal !== undefined) yield* journal.begin(snapshot.image)
          yield* Ref.set(clock.ahead, snapshot.aheadSeconds)
          ledger.revert(snapshot.image)
          return snapshot
        })
      ),
    drop: (id) => Effect.sync(() => snapshots.drop(id)),
    reportDefects: report(ledger),
    lookup: find,
    inTurn: (work) => Effect.yieldNow.pipe(Effect.andThen(work), computing.withPermits(1)),
    close: (prepare) =>
      Effect.flatMap(clock.now, (now) => find(() => prepare(now))).pipe(Effect.flatMap(take), closing.withPermits(1)),
    closeNext,
    closeDue
  }
}

interface LedgerClock {
  readonly now: Effect.Effect<bigint>
  /** Seconds that it was set ahead. */
  readonly ahead: Ref.Ref<bigint>
}

const clockOf = (startTime: bigint | undefined): LedgerClock => {
  const ahead = Ref.makeUnsafe(0n)
  const clock =
    startTime === undefined
      ? Effect.map(Clock.currentTimeMillis, (millis) => BigInt(Math.floor(millis / second)))
      : Effect.succeed(startTime)
  return { ahead, now: Effect.zipWith(clock, Ref.get(ahead), (seconds, more) => seconds + more) }
}

/** A facilitator that watches the clock's ledgers warns of more, and a client's transaction lives for 30 s. */
const AHEAD_SECONDS_MAX = { byClock: 5, byHand: 20 }

/** How far close times may run ahead. A clock that closes several ledgers a second could not be kept to otherwise. */
const aheadSecondsMax = ({ close, startTime, strictCloseTimes }: MachineOptions): number => {
  if (strictCloseTimes ?? startTime !== undefined) return Infinity
  if (typeof close !== "number") return AHEAD_SECONDS_MAX.byHand
  return close < second ? 0 : AHEAD_SECONDS_MAX.byClock
}

const optionsOf = (
  options: MachineOptions,
  own: Pick<LedgerOptions, "crypto" | "networkId" | "settings" | "closeTime">,
  contracts: WasmRuntime
): LedgerOptions => ({
  ...own,
  retention: {
    ledgersMax: options.retentionLedgers ?? 17_280,
    transactionsMax: options.retentionTransactions ?? 20_000
  },
  transactionsPerLedgerMax: options.transactionsPerLedgerMax ?? 1_000,
  instructionsPerLedgerMax: INSTRUCTIONS_PER_LEDGER_MAX,
  aheadSecondsMax: aheadSecondsMax(options),
  closeIntervalSeconds: typeof options.close === "number" ? Math.ceil(options.close / second) : 0,
  contracts
})

/** The network's settings with the chosen values. Refuses a fork of a protocol that the engine does not support. */
const settingsFor = Effect.fnUntraced(function* (options: MachineOptions, forked: ForkedEntries | undefined) {
  const network = options.settings ?? (forked === undefined ? testnet : settingsOf(forked.origin))
  const settings = withChoices(network, options.chosen ?? {})
  const { protocolVersion } = settings
  if (protocolVersion >= PROTOCOL_MIN && protocolVersion <= PROTOCOL_MAX) return settings
  return yield* new ForkRefused({
    message:
      `the network runs protocol ${protocolVersion}, and this ledger has the rules of ${PROTOCOL_MIN} to ` +
      `${PROTOCOL_MAX}; --protocol N forks it by the rules of another one`
  })
})

/**
 * Opens the ledger in `folder`, or one in memory; with `forked`, a ledger that continues from another network's state.
 */
export const openMachine = Effect.fnUntraced(function* (
  options: MachineOptions,
  folder: string | undefined,
  forked?: ForkedEntries
) {
  const platformCrypto = yield* Crypto
  const crypto = options.seed === undefined ? platformCrypto : seededCrypto(platformCrypto, options.seed)
  const runWithin = yield* Deadline
  const passphrase = forked?.origin.passphrase ?? options.passphrase ?? TESTNET_PASSPHRASE
  const networkId = crypto.sha256(new TextEncoder().encode(passphrase))
  const { genesisSequence: sequence, startTime } = options
  const settings = yield* settingsFor(options, forked)
  const clock = clockOf(startTime)
  if (folder !== undefined && forked === undefined && (yield* keepsFork(folder)))
    return yield* new ForkRefused({ message: `${folder} holds a fork: --fork URL continues it` })
  const journal =
    folder === undefined
      ? undefined
      : yield* openJournal(folder, networkId, { linesMax: options.journalLinesMax, repair: options.repair })
  const stored = journal === undefined ? undefined : yield* journal.read(forked?.root)
  const now = yield* clock.now
  const begin =
    forked === undefined
      ? Effect.sync(() =>
          genesis({ crypto, networkId, settings, closeTime: now, ...(sequence === undefined ? {} : { sequence }) })
        )
      : beginFork({ crypto, settings, now }, forked)
  const contracts = new WasmRuntime({ millis: options.contractMillisMax ?? CONTRACT_MILLIS_MAX, runWithin })
  const platformClock = yield* Clock.Clock
  const millis = closeMillisMax(options)
  const elapsed = (): number => Number(platformClock.monotonicTimeNanosUnsafe() / 1_000n) / 1_000
  const closeTime = millis === undefined ? {} : { closeTime: { millis, now: elapsed } }
  const own = { crypto, networkId, settings, ...closeTime }
  const ledger = new Ledger(optionsOf(options, own, contracts), stored ?? (yield* begin))
  ledger.faults = combineFaults(options.faults ?? [])
  if (journal !== undefined && stored === undefined) yield* journal.begin(ledger.capture())
  return machineOf({ ledger, passphrase, clock, journal, forked })
})
