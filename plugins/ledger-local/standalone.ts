// The embedded ledger without the facilitator, for users that only need a Stellar RPC. The command `tollkeeper ledger`
// runs it. In memory unless a folder is given. With `seedAccounts`, four accounts with XLM and USDC exist from the
// start, with keys that are the same everywhere.
import { Effect, type FileSystem, Layer, type Path, Schema, type Scope } from "effect"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import type { HttpCalls } from "../../kernel/platform/HttpCalls.ts"
import type { ListenFailed, Listeners } from "../../kernel/platform/Listeners.ts"
import type { Supervisor } from "../../kernel/actor/Supervisor.ts"
import { configDefaults, type ConfigValues } from "./Config.ts"
import { LocalLedger, type LocalLedgerOptions } from "./LocalLedger.ts"
import { demoNames, localAccount, USDC_CONTRACT } from "./node/accounts.ts"
import { choiceProblem, type ChosenSettings } from "./node/chosenSettings.ts"
import type { Faults } from "./node/Faults.ts"
import type { ForkRefused } from "./node/fork/ForkedEntries.ts"
import type { JournalRefused } from "./node/LedgerJournal.ts"
import { Upstream, type UpstreamFailed } from "./node/fork/Upstream.ts"
import { parseFault } from "./node/parseFault.ts"
import { runScript, type ScriptRefused } from "./runScript.ts"
import { type Secured, serve, type ServerAddress } from "./serve.ts"

/** A fault that cannot be read. */
class FaultRefused extends Schema.TaggedError<FaultRefused>()("FaultRefused", {
  fault: Schema.String,
  message: Schema.String
}) {}

/** Settings that no network has. */
class ChoiceRefused extends Schema.TaggedError<ChoiceRefused>()("ChoiceRefused", { message: Schema.String }) {}

/** HTTPS was requested but is unavailable. */
class HttpsRefused extends Schema.TaggedError<HttpsRefused>()("HttpsRefused", { message: Schema.String }) {}

interface StandaloneOptions {
  readonly host?: string
  /** Origins of pages that may ask; default none. */
  readonly allowedOrigins?: ReadonlyArray<string>
  /** Default 8 000; 0 picks a free one. */
  readonly port?: number
  /** Absent: no HTTPS. Needs a folder for its certificate. */
  readonly httpsPort?: number
  /** Milliseconds, default 1 000, or "manual": then only `POST /close` and the friendbot make ledgers. */
  readonly close?: number | "manual"
  /**
   * Milliseconds that the contracts of one ledger may take before the rest waits for the next. Defaults to a quarter of
   * the time between two ledgers. Ledgers closed by hand, or with a seed or a time, have no such bound.
   */
  readonly closeMillisMax?: number
  /** In the language of `parseFault.ts`. */
  readonly faults?: ReadonlyArray<string>
  /** Absent: in memory. */
  readonly folder?: string
  /** Address of the RPC of the network whose state the ledger continues from. */
  readonly fork?: string
  readonly seedAccounts?: boolean
  /** A file of accounts and contracts to begin with; see `runScript.ts`. */
  readonly script?: string
  /** Drops everything after a damaged line of the journal. */
  readonly repair?: boolean
  /** Fixed time of the clock, in seconds since 1970; absent: the machine's. */
  readonly startTime?: bigint
  /** Randomness that follows from this word. */
  readonly seed?: string
  /** No two ledgers have the same close time, however far ahead of the clock that is. */
  readonly strictCloseTimes?: boolean
  /** Protocol, limits and lifetimes; absent values are as on the test network. */
  readonly chosen?: ChosenSettings
}

interface SeededAccount {
  readonly name: string
  readonly address: string
  readonly secret: string
}

export interface Standalone extends ServerAddress {
  readonly passphrase: string
  readonly https: Secured | undefined
  readonly usdcContract: string
  readonly accounts: ReadonlyArray<SeededAccount>
  readonly contracts: ReadonlyArray<{ readonly name: string; readonly address: string }>
}

const SEED_USDC_UNITS = 10_000_0000000n

/** Funds the demonstration accounts that do not exist yet; without USDC on a fork of a network without USDC. */
const seed = Effect.gen(function* () {
  const ledger = yield* LocalLedger
  const crypto = yield* Crypto
  const accounts = demoNames.map((name) => localAccount(crypto, name))
  for (const { address, id } of accounts) {
    if (yield* ledger.exists(id)) continue
    const funded = yield* ledger.fund(address, { usdcUnits: SEED_USDC_UNITS })
    if (funded === undefined) yield* ledger.fund(address)
  }
  return accounts.map(({ name, address, secret }): SeededAccount => ({ name, address, secret }))
})

const ledgerLayer = ({ folder, fork }: StandaloneOptions, options: LocalLedgerOptions) => {
  if (fork !== undefined) return LocalLedger.layerFork(options, folder).pipe(Layer.provide(Upstream.layer(fork)))
  return folder === undefined ? LocalLedger.layerTest(options) : LocalLedger.layer(options, folder)
}

export const ledgerOptions = (
  { chosen = {}, repair, seed: word, startTime, strictCloseTimes }: StandaloneOptions,
  { close, closeMillisMax, faults }: ConfigValues
): LocalLedgerOptions => ({
  close,
  faults,
  repair: repair === true,
  chosen,
  ...(closeMillisMax === undefined ? {} : { closeMillisMax }),
  ...(word === undefined ? {} : { seed: word }),
  ...(startTime === undefined ? {} : { startTime }),
  ...(strictCloseTimes === undefined ? {} : { strictCloseTimes })
})

/** A reproducible ledger must not depend on wall time. */
const timeProblem = ({ close, closeMillisMax, seed, startTime }: StandaloneOptions): string | undefined =>
  closeMillisMax !== undefined && (close === "manual" || seed !== undefined || startTime !== undefined)
    ? "contracts have a time only where the clock closes ledgers: not with --close manual, --seed or --time"
    : undefined

/** Starts a ledger that runs until the Scope closes, and returns its addresses. */
export const standalone = Effect.fnUntraced(function* (
  options: StandaloneOptions
): Effect.fn.Return<
  Standalone,
  | ChoiceRefused
  | FaultRefused
  | ForkRefused
  | JournalRefused
  | ScriptRefused
  | HttpsRefused
  | ListenFailed
  | UpstreamFailed,
  Crypto | FileSystem.FileSystem | HttpCalls | Path.Path | Listeners | Supervisor | Scope.Scope
> {
  const faults: Array<Partial<Faults>> = []
  for (const text of options.faults ?? []) {
    const fault = parseFault(text)
    if (typeof fault === "string") return yield* new FaultRefused({ fault: text, message: fault })
    faults.push(fault)
  }
  if (options.httpsPort !== undefined && options.folder === undefined) {
    return yield* new HttpsRefused({ message: "HTTPS needs a folder for its certificate" })
  }
  const config: ConfigValues = {
    ...configDefaults,
    host: options.host ?? configDefaults.host,
    allowedOrigins: (options.allowedOrigins ?? []).map((origin) => origin.toLowerCase()),
    port: options.port ?? configDefaults.port,
    httpsPort: options.httpsPort,
    close: options.close ?? configDefaults.close,
    closeMillisMax: options.closeMillisMax,
    faults
  }
  const problem = timeProblem(options) ?? choiceProblem(options.chosen ?? {})
  if (problem !== undefined) return yield* new ChoiceRefused({ message: problem })
  const context = yield* Layer.build(ledgerLayer(options, ledgerOptions(options, config)))
  return yield* Effect.gen(function* () {
    const serving = yield* serve(config, options.folder ?? "")
    const https = yield* serving.secured
    if (https === undefined && options.httpsPort !== undefined) {
      return yield* new HttpsRefused({ message: `port ${options.httpsPort} cannot be opened for HTTPS` })
    }
    const ledger = yield* LocalLedger
    const { accounts, contracts } =
      options.script === undefined ? { accounts: [], contracts: [] } : yield* runScript(options.script)
    const seeded = options.seedAccounts === true ? yield* seed : []
    const reported = accounts.map(({ address, name, secret }) => ({ name, address, secret }))
    const { passphrase } = ledger
    return { ...serving, https, passphrase, usdcContract: USDC_CONTRACT, accounts: [...seeded, ...reported], contracts }
  }).pipe(Effect.provideContext(context))
})
