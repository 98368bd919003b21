// Implements the embedded ledger's service (`LocalLedger.ts`) over the machine, its RPC and its friendbot.
import { Effect, Ref } from "effect"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { decodeHolder, type PublicKey } from "./engine/xdr/Xdr.ts"
import { combineFaults, type Faults, noFaults } from "./node/Faults.ts"
import { type ForkedEntries, openForkedEntries } from "./node/fork/ForkedEntries.ts"
import { prepareFunding, USDC_UNITS_MAX } from "./node/friendbot.ts"
import type { UpstreamFailed } from "./node/fork/Upstream.ts"
import type { Ledger } from "./node/Ledger.ts"
import { type LedgerMachine, type MachineOptions, openMachine } from "./node/LedgerMachine.ts"
import { answerRequest, type Unanswered } from "./rpc/answerRequest.ts"
import type { RpcResponse } from "./rpc/jsonRpc.ts"
import { RpcError } from "./rpc/RpcError.ts"
import { readAccount } from "./transaction/validate.ts"

export interface LocalLedgerOptions extends MachineOptions {
  /** What getNetwork names as the friendbot. */
  readonly friendbotUrl?: string
}

export interface FundResult {
  /** Hex of the friendbot's transaction. */
  readonly hash: string
  readonly ledger: number
}

export interface FundOptions {
  /** Units of 10^-7; absent sends no USDC, 0 only opens the trustline. */
  readonly usdcUnits?: bigint
}

export interface OpenedLedger {
  /** One JSON-RPC request (the parsed body), answered as the real RPC answers. */
  readonly rpc: (request: unknown) => Effect.Effect<RpcResponse, Unanswered>
  /** A method's result; an RPC error is thrown as a defect. For tests. */
  readonly call: (method: string, params?: unknown) => Effect.Effect<any>
  /** Closes one ledger now; its sequence. */
  readonly close: Effect.Effect<number>
  /** Closes the next ledger for the clock; while close times are ahead of it, every second one of the empty ones. */
  readonly closeDue: Effect.Effect<void>
  /** Closes several, one after the other. */
  readonly closeMany: (ledgers: number) => Effect.Effect<number>
  /** Sets the clock ahead and closes a ledger at the new time; its sequence. */
  readonly advanceSeconds: (seconds: number) => Effect.Effect<number>
  /** Takes a snapshot of the ledger and returns its id; undefined when too many are kept. */
  readonly snapshot: Effect.Effect<string | undefined>
  /** Reverts to a snapshot, which stays available; returns the ledger's sequence, or undefined for an unknown id. */
  readonly revert: (id: string) => Effect.Effect<number | undefined>
  /** Drops a snapshot; false for an unknown id. */
  readonly dropSnapshot: (id: string) => Effect.Effect<boolean>
  /** Sends 10 000 XLM and, when asked, USDC to a `G…` or `C…`, in a separate ledger; `undefined` when it is refused. */
  readonly fund: (address: string, options?: FundOptions) => Effect.Effect<FundResult | undefined, UpstreamFailed>
  /** Replaces the faults in effect; an empty list injects none. */
  readonly setFaults: (faults: ReadonlyArray<Partial<Faults>>) => Effect.Effect<void>
  /** Whether an account exists as of the latest ledger. */
  readonly exists: (id: PublicKey) => Effect.Effect<boolean, UpstreamFailed>
  /** The machine inside, for inspection. */
  readonly ledger: Ledger
  readonly passphrase: string
  /** True when no clock closes ledgers. */
  readonly isClosedByHand: boolean
  /** Sets the friendbot address that getNetwork returns, once the friendbot listens. */
  readonly setFriendbotUrl: (url: string) => Effect.Effect<void>
}

const fund = (machine: LedgerMachine) =>
  Effect.fn("LocalLedger.fund")(function* (address: string, { usdcUnits }: FundOptions = {}) {
    const holder = decodeHolder(address)
    if (holder === undefined || (usdcUnits !== undefined && (usdcUnits < 0n || usdcUnits > USDC_UNITS_MAX)))
      return undefined
    const closed = yield* machine.close((time) => prepareFunding(machine.ledger, holder, usdcUnits, time))
    return closed && { hash: closed.record.transactions[0]!.hash, ledger: closed.record.sequence }
  })

export const openLedger = Effect.fnUntraced(function* (
  options: LocalLedgerOptions,
  folder: string | undefined,
  forked?: ForkedEntries
) {
  const machine = yield* openMachine(options, folder, forked)
  const { ledger, passphrase } = machine
  const friendbotUrl = yield* Ref.make(options.friendbotUrl)
  const rpc: OpenedLedger["rpc"] = (request) =>
    Effect.flatMap(Ref.get(friendbotUrl), (url) => answerRequest(machine, url, request))
  const close = Effect.map(machine.closeNext, ({ record }) => record.sequence)
  const opened: OpenedLedger = {
    rpc,
    call: Effect.fnUntraced(function* (method, params) {
      const response = yield* Effect.orDie(rpc({ jsonrpc: "2.0", id: 1, method, params }))
      if (response.error !== undefined)
        return yield* Effect.die(new RpcError(response.error.code, response.error.message))
      return response.result
    }),
    close,
    closeDue: machine.closeDue,
    closeMany: Effect.fnUntraced(function* (ledgers) {
      for (let i = 0; i < ledgers; i++) yield* close
      return ledger.latest.sequence
    }),
    advanceSeconds: (seconds) => Effect.andThen(machine.setAhead(BigInt(seconds)), close),
    snapshot: Effect.map(machine.snapshot, (kept) => kept?.id),
    revert: (id) => Effect.map(machine.revert(id), (kept) => kept?.image.ledgers.at(-1)?.sequence),
    dropSnapshot: machine.drop,
    fund: fund(machine),
    setFaults: (faults) =>
      Effect.sync(() => {
        ledger.faults = faults.length === 0 ? noFaults : combineFaults(faults)
      }),
    exists: (id) => machine.lookup(() => readAccount(ledger.store, id) !== undefined),
    ledger,
    passphrase,
    isClosedByHand: (options.close ?? "manual") === "manual",
    setFriendbotUrl: (url) => Ref.set(friendbotUrl, url)
  }
  return opened
})

/** Opens a ledger that continues from another network's state. */
export const openFork = Effect.fnUntraced(
  function* (options: LocalLedgerOptions, folder: string | undefined) {
    const forked = yield* openForkedEntries(yield* Crypto, folder)
    return yield* openLedger(options, folder, forked)
  },
  Effect.catchTag("PlatformError", Effect.die)
)
