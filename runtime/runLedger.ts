// `tollkeeper ledger`: a ledger in memory or in a folder, listening on this machine, with no more of the kernel than it
// needs. It runs until it is stopped.
import { Console, Effect, Layer, Option } from "effect"
import { Supervisor } from "../kernel/actor/Supervisor.ts"
import { type Standalone, standalone } from "../plugins/ledger-local/standalone.ts"
import { lockFolder } from "./platform/folderLock.ts"
import * as NodeCrypto from "./platform/nodeCrypto.ts"
import * as NodeDeadline from "./platform/nodeDeadline.ts"
import * as NodeHttpCalls from "./platform/nodeHttpCalls.ts"
import * as NodeListeners from "./platform/nodeListeners.ts"
import { releaseMemoryNow, scheduleMemoryReducer } from "./platform/nodeMemory.ts"
import { allowSemiSpaceGrowth } from "./platform/startHeap.ts"

/** Milliseconds between two ledgers, as the setting `local_ledger.close_interval_ms` has them. */
const [CLOSE_MIN, CLOSE_MAX] = [50, 60_000]

/** Milliseconds of a time such as `1s` or `250ms`, from `min` to the longest close interval. */
const readMillis = (text: string, min: number): number | undefined => {
  const [, digits, unit] = /^(\d+)(ms|s)$/.exec(text) ?? []
  const millis = Number(digits) * (unit === "s" ? 1_000 : 1)
  return millis >= min && millis <= CLOSE_MAX ? millis : undefined
}

/** `manual`, or an interval. */
const readClose = (text: string): number | "manual" | undefined =>
  text === "manual" ? "manual" : readMillis(text, CLOSE_MIN)

/** The flags of `tollkeeper ledger`, as `commands/ledger.ts` describes them. */
interface LedgerFlags {
  readonly port: number
  readonly https: Option.Option<number>
  readonly close: string
  readonly contractTime: Option.Option<string>
  readonly fault: ReadonlyArray<string>
  readonly allowOrigin: ReadonlyArray<string>
  readonly state: Option.Option<string>
  readonly fork: Option.Option<string>
  readonly seed: Option.Option<string>
  readonly time: Option.Option<string>
  readonly strictCloseTimes: boolean
  readonly protocol: Option.Option<number>
  readonly limits: string
  readonly minTtl: Option.Option<number>
  readonly repair: boolean
  readonly script: Option.Option<string>
  readonly seedAccounts: boolean
}

/** Unix seconds of an ISO time, within the range of a ledger header. */
const readTime = (text: string): bigint | undefined => {
  const millis = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(text) ? Date.parse(text) : Number.NaN
  return millis >= 0 ? BigInt(millis / 1_000) : undefined
}

const isAddress = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)

const refuse = (message: string) => Effect.fail({ _tag: "Usage", message } as const)

/** The flags parsed and validated, or the first error. */
const readFlags = Effect.fnUntraced(function* (flags: LedgerFlags) {
  const close = readClose(flags.close)
  if (close === undefined) return yield* refuse("--close needs a time from 50ms to 60s, such as 1s or 250ms, or manual")
  const closeMillisMax = Option.isSome(flags.contractTime) ? readMillis(flags.contractTime.value, 1) : undefined
  if (Option.isSome(flags.contractTime) && closeMillisMax === undefined)
    return yield* refuse("--contract-time needs a time from 1ms to 60s, such as 250ms")
  if (Option.isSome(flags.https) && Option.isNone(flags.state))
    return yield* refuse("--https needs --state, the folder for its certificate")
  if (Option.isSome(flags.fork) && !isAddress(flags.fork.value))
    return yield* refuse("--fork is the address of a Stellar RPC, such as https://soroban-testnet.stellar.org")
  const startTime = Option.isSome(flags.time) ? readTime(flags.time.value) : undefined
  if (Option.isSome(flags.time) && startTime === undefined)
    return yield* refuse("--time is a time in UTC, such as 2026-01-01T00:00:00Z")
  return {
    close,
    chosen: {
      limits: flags.limits,
      ...Option.match(flags.protocol, { onNone: () => ({}), onSome: (protocol) => ({ protocol }) }),
      ...Option.match(flags.minTtl, { onNone: () => ({}), onSome: (minTtlLedgers) => ({ minTtlLedgers }) })
    },
    ...(closeMillisMax === undefined ? {} : { closeMillisMax }),
    ...(startTime === undefined ? {} : { startTime })
  }
})

/** The message once it listens. */
const greetingOf = ({ accounts, contracts, https, passphrase, port, usdcContract }: Standalone): string =>
  [
    `A Stellar ledger is at http://127.0.0.1:${port}  (RPC, /friendbot?addr=G…&usdc=100, /ledgers)`,
    ...(https === undefined
      ? []
      : [`  over HTTPS  https://127.0.0.1:${https.port}  (clients trust ${https.certificateFile})`]),
    `  passphrase  ${passphrase}`,
    `  USDC        ${usdcContract}`,
    ...accounts.map(({ address, name, secret }) => `  ${name.padEnd(10)}  ${address}  ${secret}`),
    ...contracts.map(({ address, name }) => `  ${name.padEnd(10)}  ${address}`)
  ].join("\n")

/** Runs a ledger by these flags until the process is stopped. */
export const runLedger = Effect.fn(
  function* (flags: LedgerFlags) {
    const chosen = yield* readFlags(flags)
    if (Option.isSome(flags.state)) {
      yield* lockFolder(flags.state.value)
      // A stored ledger may hold a hundred thousand live entries, which no collection could free.
      allowSemiSpaceGrowth()
    }
    const running = yield* standalone({
      port: flags.port,
      ...chosen,
      faults: flags.fault,
      seedAccounts: flags.seedAccounts,
      allowedOrigins: flags.allowOrigin,
      repair: flags.repair,
      strictCloseTimes: flags.strictCloseTimes || Option.isSome(flags.time),
      ...Option.match(flags.fork, { onNone: () => ({}), onSome: (fork) => ({ fork }) }),
      ...Option.match(flags.script, { onNone: () => ({}), onSome: (script) => ({ script }) }),
      ...Option.match(flags.seed, { onNone: () => ({}), onSome: (seed) => ({ seed }) }),
      ...Option.match(flags.state, { onNone: () => ({}), onSome: (folder) => ({ folder }) }),
      ...Option.match(flags.https, { onNone: () => ({}), onSome: (httpsPort) => ({ httpsPort }) })
    })
    yield* Console.log(greetingOf(running))
    allowSemiSpaceGrowth()
    yield* releaseMemoryNow
    yield* scheduleMemoryReducer
    return yield* Effect.never
  },
  Effect.scoped,
  (effect) =>
    Effect.provide(
      effect,
      Layer.mergeAll(NodeCrypto.layer, NodeDeadline.layer, NodeHttpCalls.layer, NodeListeners.layer, Supervisor.layer)
    )
)
