// The embedded ledger as a service: JSON-RPC without sockets, closing by hand, funding, and faults to order. Time comes
// from Effect's Clock, so a test moves it. With a folder the ledger survives the process; without one it lives in
// memory. Requests and closes never interleave within a ledger: a close is written down first and published in one
// step.
import { Clock, Context, Effect, type FileSystem, Layer, type Path, Semaphore } from "effect"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Deadline } from "../../kernel/platform/Deadline.ts"
import { Unsupported } from "./engine/host/HostError.ts"
import { type NetworkSettings, testnet } from "./engine/state/NetworkSettings.ts"
import { WasmRuntime } from "./engine/wasm/WasmRuntime.ts"
import { combineFaults, type Faults, noFaults, type RpcFault } from "./node/Faults.ts"
import { prepareFunding, USDC_UNITS_MAX } from "./node/friendbot.ts"
import { genesis } from "./node/genesis.ts"
import { openJournal } from "./node/Journal.ts"
import { type ClosedLedger, Ledger } from "./node/Ledger.ts"
import { decodeAccount } from "./node/decodeAccount.ts"
import type { PublicKey } from "./engine/xdr/Xdr.ts"
import { readAccount } from "./transaction/validate.ts"
import { callMethod, errorResponse, readRequest, type RpcResponse } from "./rpc/jsonRpc.ts"
import { RpcCode, RpcError } from "./rpc/RpcError.ts"
import { viewOf } from "./rpc/View.ts"

/** The passphrase of the test network, which official clients take for granted. */
export const TESTNET_PASSPHRASE = "Test SDF Network ; September 2015"

export interface LocalLedgerOptions {
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
  readonly faults?: ReadonlyArray<Partial<Faults>>
  /** What getNetwork names as the friendbot. */
  readonly friendbotUrl?: string
}

/** What a request may meet instead of an answer: a status without a body, or the loss of an answer after the work. */
export type Unanswered = { readonly _tag: "Unanswered"; readonly status: number }

export interface Funded {
  /** Hex of the friendbot's transaction. */
  readonly hash: string
  readonly ledger: number
}

export interface FundOptions {
  /** Units of 10^-7; absent leaves USDC alone, 0 only opens the trustline. */
  readonly usdcUnits?: bigint
}

interface Shape {
  /** One JSON-RPC request (the parsed body), answered as the real RPC answers. */
  readonly rpc: (request: unknown) => Effect.Effect<RpcResponse, Unanswered>
  /** A method's result; an RPC error is thrown as a defect. For tests. */
  readonly call: (method: string, params?: unknown) => Effect.Effect<any>
  /** Closes one ledger now; its sequence. */
  readonly close: Effect.Effect<number>
  /** Closes several, one after the other. */
  readonly closeMany: (ledgers: number) => Effect.Effect<number>
  /** 10 000 XLM and, when asked, USDC, in a ledger of its own. An address that is no account is `undefined`. */
  readonly fund: (address: string, options?: FundOptions) => Effect.Effect<Funded | undefined>
  /** Replaces the faults in effect; an empty list is a quiet network. */
  readonly setFaults: (faults: ReadonlyArray<Partial<Faults>>) => Effect.Effect<void>
  /** Whether an account exists as of the latest ledger. */
  readonly exists: (id: PublicKey) => boolean
  /** The machine inside, for looking at. */
  readonly ledger: Ledger
  readonly passphrase: string
  /** True when no clock closes ledgers. */
  readonly isClosedByHand: boolean
  /** Sets what getNetwork names as the friendbot, once it is known where that listens. */
  readonly setFriendbotUrl: (url: string) => Effect.Effect<void>
}

/** Where a ledger's files are; absent means memory. */
interface Storage {
  readonly folder: string | undefined
}

const second = 1_000

/** What the contract transactions of a ledger may declare together: as on the test network, in two clusters. */
const INSTRUCTIONS_PER_LEDGER_MAX = 1_200_000_000
/** Contracts of one call that take longer are stopped; the fuel they are allowed takes a fraction of it. */
const CONTRACT_MILLIS_MAX = 2_000

const make = Effect.fnUntraced(function* (options: LocalLedgerOptions, storage: Storage) {
  const crypto = yield* Crypto
  const runWithin = yield* Deadline
  const passphrase = options.passphrase ?? TESTNET_PASSPHRASE
  const networkId = crypto.sha256(new TextEncoder().encode(passphrase))
  const settings = options.settings ?? testnet
  const now = Effect.map(Clock.currentTimeMillis, (millis) => BigInt(Math.floor(millis / second)))
  const journal =
    storage.folder === undefined ? undefined : yield* openJournal(storage.folder, networkId, options.journalLinesMax)
  const stored = journal === undefined ? undefined : yield* journal.read
  const state =
    stored ??
    genesis({
      crypto,
      networkId,
      settings,
      closeTime: yield* now,
      ...(options.genesisSequence === undefined ? {} : { sequence: options.genesisSequence })
    })
  const close = options.close ?? "manual"
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
    state
  )
  ledger.faults = combineFaults(options.faults ?? [])
  if (journal !== undefined && stored === undefined) yield* journal.begin(ledger)

  const tellDefects = Effect.suspend(() =>
    Effect.forEach(ledger.takeDefects(), ({ during, error }) =>
      error instanceof Unsupported
        ? Effect.logWarning(`the embedded ledger met what it does not execute: ${error.message}`)
        : Effect.logError(`the embedded ledger met a defect of its own while ${during}`, error)
    )
  )
  const closing = yield* Semaphore.make(1)
  /** Computes, records, publishes: nobody sees a ledger that is not on disk. */
  const closeWith = (prepare: (now: bigint) => ClosedLedger): Effect.Effect<ClosedLedger> =>
    Effect.gen(function* () {
      const closed = prepare(yield* now)
      yield* tellDefects
      if (journal !== undefined) yield* journal.append(closed)
      ledger.publish(closed)
      if (journal !== undefined) yield* journal.compact(ledger)
      return closed
    }).pipe(Effect.uninterruptible, closing.withPermits(1))

  let friendbotUrl = options.friendbotUrl

  const answer = Effect.fnUntraced(function* (id: unknown, method: string, params: unknown, behind: number) {
    const time = yield* now
    try {
      const view = viewOf(ledger, { passphrase, friendbotUrl }, time, behind)
      const result = callMethod(view, method, params)
      yield* tellDefects
      return { jsonrpc: "2.0" as const, id, result }
    } catch (error) {
      if (error instanceof RpcError) return errorResponse(id, error.code, error.message)
      yield* Effect.logError(`the embedded ledger failed in ${method}`, error)
      return errorResponse(id, RpcCode.internal, "internal error")
    }
  })

  const withFault = Effect.fnUntraced(function* (
    fault: RpcFault | undefined,
    id: unknown,
    method: string,
    params: unknown
  ): Effect.fn.Return<RpcResponse, Unanswered> {
    if (fault === undefined) return yield* answer(id, method, params, 0)
    switch (fault.kind) {
      case "error":
        return errorResponse(id, fault.code, fault.message)
      case "status":
        return yield* Effect.fail<Unanswered>({ _tag: "Unanswered", status: fault.status })
      case "silent":
        return yield* Effect.never
      case "lost":
        yield* answer(id, method, params, 0)
        return yield* Effect.fail<Unanswered>({ _tag: "Unanswered", status: 504 })
      case "late":
        yield* Effect.sleep(fault.millis)
        return yield* answer(id, method, params, 0)
      case "stale":
        return yield* answer(id, method, params, fault.ledgers)
      case "wrong": {
        const response = yield* answer(id, method, params, 0)
        return "result" in response ? { ...response, result: fault.change(response.result) } : response
      }
    }
  })

  const rpc: Shape["rpc"] = Effect.fn("LocalLedger.rpc")(function* (request: unknown) {
    const read = readRequest(request)
    if (!("method" in read)) return read
    return yield* withFault(ledger.faults.onRpc(read.method, read.params), read.id, read.method, read.params)
  })

  const closeOnce = Effect.map(
    closeWith((time) => ledger.prepareClose(time)),
    ({ record }) => record.sequence
  )

  return LocalLedger.of({
    rpc,
    call: Effect.fnUntraced(function* (method, params) {
      const response = yield* Effect.orDie(rpc({ jsonrpc: "2.0", id: 1, method, params }))
      if (response.error !== undefined)
        return yield* Effect.die(new RpcError(response.error.code, response.error.message))
      return response.result
    }),
    close: closeOnce,
    closeMany: Effect.fnUntraced(function* (ledgers) {
      for (let i = 0; i < ledgers; i++) yield* closeOnce
      return ledger.latest.sequence
    }),
    fund: Effect.fn("LocalLedger.fund")(function* (address, fundOptions = {}) {
      const key = decodeAccount(address)
      const { usdcUnits } = fundOptions
      if (key === undefined || (usdcUnits !== undefined && (usdcUnits < 0n || usdcUnits > USDC_UNITS_MAX)))
        return undefined
      const { record } = yield* closeWith((time) => prepareFunding(ledger, key, usdcUnits, time))
      return { hash: record.transactions[0]!.hash, ledger: record.sequence }
    }),
    setFaults: (faults) =>
      Effect.sync(() => {
        ledger.faults = faults.length === 0 ? noFaults : combineFaults(faults)
      }),
    exists: (id) => readAccount(ledger.store, id) !== undefined,
    ledger,
    passphrase,
    isClosedByHand: close === "manual",
    setFriendbotUrl: (url) =>
      Effect.sync(() => {
        friendbotUrl = url
      })
  })
})

export class LocalLedger extends Context.Service<LocalLedger, Shape>()("tollkeeper/ledger-local/LocalLedger") {
  /** A ledger that keeps its state in `folder`. */
  static readonly layer = (
    options: LocalLedgerOptions,
    folder: string
  ): Layer.Layer<LocalLedger, never, Crypto | FileSystem.FileSystem | Path.Path> =>
    Layer.effect(LocalLedger, Effect.orDie(make(options, { folder })))

  /** A ledger in memory, closed by hand unless told otherwise. */
  static readonly layerTest = (options: LocalLedgerOptions = {}): Layer.Layer<LocalLedger, never, Crypto> =>
    Layer.effect(LocalLedger, Effect.orDie(make(options, { folder: undefined })) as Effect.Effect<Shape, never, Crypto>)
}
