// The ledger with its clock and its files: what an earlier run left or a new beginning, closed one ledger at a time. A
// close is computed, written down and published in one step that nothing interrupts, so that nobody sees a ledger that
// is not on disk. Its clock is Effect's, which a test moves, and may be set ahead of it.
import { Clock, Effect, Ref, Semaphore } from "effect"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { Deadline } from "../../../kernel/platform/Deadline.ts"
import { Unsupported } from "../engine/host/HostError.ts"
import { type NetworkSettings, testnet } from "../engine/state/NetworkSettings.ts"
import { WasmRuntime } from "../engine/wasm/WasmRuntime.ts"
import { combineFaults, type Faults } from "./Faults.ts"
import { genesis } from "./genesis.ts"
import { openJournal } from "./LedgerJournal.ts"
import { type ClosedLedger, Ledger } from "./Ledger.ts"

/** The passphrase of the test network, which official clients take for granted. */
export const TESTNET_PASSPHRASE = "Test SDF Network ; September 2015"

export interface MachineOptions {
  readonly passphrase?: string
  readonly settings?: NetworkSettings
  /** Milliseconds between two ledgers; "manual" (the default) closes only when asked to. */
  readonly close?: number | "manual"
  /** Ledgers that stay known, default 17 280, and transactions, default 20 000. */
  readonly retentionLedgers?: number
  readonly retentionTransactions?: number
  /** Default 1 000. */
  readonly transactionsPerLedgerMax?: number
  /** Wall time that the contracts of one call may take, default 2 000. */
  readonly contractMillisMax?: number
  readonly genesisSequence?: number
  /** Ledgers in the journal before it is folded into a snapshot; default 20 000. */
  readonly journalLinesMax?: number
  /** Gives up what follows a damaged line of the journal; otherwise it is a defect. */
  readonly repair?: boolean
  readonly faults?: ReadonlyArray<Partial<Faults>>
}

export interface LedgerMachine {
  readonly ledger: Ledger
  readonly passphrase: string
  /** The present, in seconds. */
  readonly now: Effect.Effect<bigint>
  /** Sets the clock ahead. */
  readonly setAhead: (seconds: bigint) => Effect.Effect<void>
  readonly close: (prepare: (now: bigint) => ClosedLedger) => Effect.Effect<ClosedLedger>
  /** Tells what the ledger met that it did not expect. */
  readonly tellDefects: Effect.Effect<void>
}

const second = 1_000
/** What the contract transactions of a ledger may declare together: as on the test network, in two clusters. */
const INSTRUCTIONS_PER_LEDGER_MAX = 1_200_000_000
/** Contracts of one call that take longer are stopped; the fuel they are allowed takes a fraction of it. */
const CONTRACT_MILLIS_MAX = 2_000

const tell = (ledger: Ledger): Effect.Effect<void> =>
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

/** Opens the ledger in `folder`, or one in memory. */
export const openMachine = Effect.fnUntraced(function* (options: MachineOptions, folder: string | undefined) {
  const crypto = yield* Crypto
  const runWithin = yield* Deadline
  const passphrase = options.passphrase ?? TESTNET_PASSPHRASE
  const networkId = crypto.sha256(new TextEncoder().encode(passphrase))
  const settings = options.settings ?? testnet
  const ahead = yield* Ref.make(0n)
  const now = Effect.zipWith(Clock.currentTimeMillis, Ref.get(ahead), (millis, seconds) => {
    return BigInt(Math.floor(millis / second)) + seconds
  })
  const journal =
    folder === undefined
      ? undefined
      : yield* openJournal(folder, networkId, { linesMax: options.journalLinesMax, repair: options.repair })
  const stored = journal === undefined ? undefined : yield* journal.read
  const { genesisSequence: sequence, close = "manual" } = options
  const fresh = { crypto, networkId, settings, closeTime: yield* now, ...(sequence === undefined ? {} : { sequence }) }
  const ledger = new Ledger(
    {
      crypto,
      networkId,
      settings,
      retention: {
        ledgersMax: options.retentionLedgers ?? 17_280,
        transactionsMax: options.retentionTransactions ?? 20_000
      },
      transactionsPerLedgerMax: options.transactionsPerLedgerMax ?? 1_000,
      instructionsPerLedgerMax: INSTRUCTIONS_PER_LEDGER_MAX,
      closeIntervalSeconds: close === "manual" ? 0 : Math.ceil(close / second),
      contracts: new WasmRuntime({ millis: options.contractMillisMax ?? CONTRACT_MILLIS_MAX, runWithin })
    },
    stored ?? genesis(fresh)
  )
  ledger.faults = combineFaults(options.faults ?? [])
  if (journal !== undefined && stored === undefined) yield* journal.begin(ledger)
  const closing = yield* Semaphore.make(1)
  const machine: LedgerMachine = {
    ledger,
    passphrase,
    now,
    setAhead: (seconds) => Ref.update(ahead, (before) => before + seconds),
    tellDefects: tell(ledger),
    close: (prepare) =>
      Effect.gen(function* () {
        const closed = prepare(yield* now)
        yield* tell(ledger)
        if (journal !== undefined) yield* journal.append(closed)
        ledger.publish(closed)
        if (journal !== undefined) yield* journal.compact(ledger)
        return closed
      }).pipe(Effect.uninterruptible, closing.withPermits(1))
  }
  return machine
})
