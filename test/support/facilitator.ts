// A whole facilitator in this process: the program as a profile starts it, on its own ports, over a fresh database and
// its own embedded ledger (or another facilitator's). Nothing in it is replaced. A test uses it over HTTP and may also
// read its services. It stops with the Scope.
import { NodeServices } from "@effect/platform-node"
import { Keypair } from "@stellar/stellar-sdk"
import {
  Context,
  Deferred,
  Effect,
  Fiber,
  FileSystem,
  type Layer,
  Metric,
  Option,
  References,
  type Scope
} from "effect"
import { SqlClient } from "effect/sql"
import process from "node:process"
import { DatabaseSource } from "../../kernel/database/DatabaseSource.ts"
import { Facts } from "../../kernel/facts/Facts.ts"
import { Sponsor } from "../../kernel/settlement/sponsor/Sponsor.ts"
import { ChannelPool } from "../../kernel/settlement/channels/ChannelPool.ts"
import { CrashPoints, type Step } from "../../kernel/settlement/CrashPoints.ts"
import { LocalLedger } from "../../plugins/ledger-local/LocalLedger.ts"
import { loadProfile } from "../../runtime/profile.ts"
import { NameServers } from "../../runtime/platform/nodeNames.ts"
import { serve } from "../../runtime/serve.ts"
import { usdcBalance } from "../../runtime/redteam/balances.ts"
import { makePayment, type Payment, type PaymentOptions } from "../../runtime/redteam/buyer.ts"
import { type DatabaseKind, migratedSourceLayer, usualKind } from "./databases.ts"
import { freePort } from "./freePort.ts"
import { type RpcCall, rpcCall } from "../../runtime/redteam/rpcCall.ts"

export interface FacilitatorOptions {
  /** Default: `usualKind`. Pass a layer for a database that outlives this facilitator. */
  readonly database?: DatabaseKind | Layer.Layer<DatabaseSource>
  /** Settings that override those of the local profile, each `path=value`. */
  readonly set?: ReadonlyArray<string>
  /** State folder; default a new one, deleted with the Scope. */
  readonly stateFolder?: string
  /** Secrets and variables that the profile's settings name. */
  readonly environment?: Readonly<Record<string, string>>
  /** The RPC of a ledger that is already running; absent starts one in the process. */
  readonly ledgerUrl?: string
  /** Milliseconds between two ledgers of its own ledger; default 200. */
  readonly closeMillis?: number
  /**
   * Its own ledger also closes when a transaction waits. With a long interval, payments stay valid as long as on a
   * public network, however slow the machine is, and still settle immediately.
   */
  readonly closesOnSubmit?: boolean
  /** Channels made at first boot; default 3. */
  readonly channels?: number
  /** Asked for strangers' names, in place of the machine's name servers. */
  readonly nameServers?: ReadonlyArray<string>
  /** Runs at each named step of the money path. */
  readonly atStep?: (step: Step) => Effect.Effect<void>
}

/** An answer with its body as text and, for JSON, as a value. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: any
}

export interface Facilitator {
  /** Without a slash at the end. */
  readonly url: string
  readonly ledgerUrl: string
  readonly rpc: RpcCall
  readonly services: Context.Context<never>
  readonly sql: SqlClient.SqlClient
  /** The embedded ledger, if this facilitator has its own. */
  readonly ledger: LocalLedger["Service"]
  readonly ask: (path: string, init?: RequestInit) => Effect.Effect<Answer>
  readonly verify: (body: unknown, headers?: Record<string, string>) => Effect.Effect<Answer>
  readonly settle: (body: unknown, headers?: Record<string, string>) => Effect.Effect<Answer>
  /** A new account with XLM and the given atomic units of USDC; default 100 USDC. */
  readonly account: (usdcUnits?: bigint) => Effect.Effect<Keypair>
  /** A signed payment of USDC; the default one is valid for half a minute or longer. */
  readonly payment: (options: Omit<PaymentOptions, "rpc">) => Effect.Effect<Payment>
  /** Atomic units of USDC, by the ledger's own entries. */
  readonly balance: (address: string) => Effect.Effect<bigint>
  /** Runs a test's SQL that writes facts, and wakes their readers, which otherwise poll twice a minute. */
  readonly publishedBy: <A, E, R>(statement: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Stops it like a signal does. */
  readonly stop: Effect.Effect<void>
}

const ask = (url: string, init?: RequestInit): Effect.Effect<Answer> =>
  Effect.promise(async (signal) => {
    const response = await fetch(url, { signal, ...init })
    const text = await response.text()
    let json: unknown
    try {
      json = JSON.parse(text)
    } catch {
      json = undefined
    }
    return { status: response.status, headers: response.headers, text, json }
  })

/**
 * A payment without an explicit timeout is valid as long as the settings allow. On a ledger that closes five times a
 * second, a minute counted in ledgers of five seconds would expire before a loaded machine has verified the payment.
 */
const lasting = <A extends Omit<PaymentOptions, "rpc">>(payment: A, { closeMillis = 200 }: FacilitatorOptions): A => {
  const { maxTimeoutSeconds = 300, secondsPerLedger, tamper } = payment
  const isAsked = maxTimeoutSeconds !== 300 || secondsPerLedger !== undefined || tamper?.expiryOffset !== undefined
  if (isAsked) return payment
  return { ...payment, maxTimeoutSeconds, ...(closeMillis > 1_000 ? {} : { secondsPerLedger: 2 }) }
}

/** Closes the facilitator's own ledger whenever a transaction waits. */
const closeOnSubmit = (services: Context.Context<never>) => {
  const own = Context.getUnsafe(services, LocalLedger as never) as LocalLedger["Service"]
  const closeIfBusy = Effect.suspend(() => (own.ledger.queue.size > 0 ? own.close : Effect.void))
  return Effect.forever(Effect.delay(closeIfBusy, "100 millis"))
}

/** Starts it and waits until it is ready and has its channels. Its log is dropped unless TOLLKEEPER_TEST_LOG is set. */
export const startFacilitator = (options: FacilitatorOptions = {}): Effect.Effect<Facilitator, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const stateFolder = options.stateFolder ?? (yield* files.makeTempDirectoryScoped({ prefix: "tollkeeper-" }))
    const ledgerUrl = options.ledgerUrl ?? `http://127.0.0.1:${yield* Effect.promise(freePort)}`
    const profile = yield* loadProfile(
      "local",
      [
        "server.port=0",
        `networks.ledger:testnet.rpc_urls=["${ledgerUrl}"]`,
        `networks.ledger:testnet.friendbot_url=${ledgerUrl}/friendbot`,
        `networks.ledger:testnet.channel_count=${options.channels ?? 3}`,
        // Keys are derived for each channel at a start, and tests start often.
        "networks.ledger:testnet.channel_count_max=20",
        `local_ledger.port=${new URL(ledgerUrl).port}`,
        "local_ledger.https=false",
        `local_ledger.close_interval_ms=${options.closeMillis ?? 200}`,
        ...(options.ledgerUrl === undefined ? [] : ["plugins=[x402-exact]"]),
        ...(options.set ?? [])
      ],
      options.environment ?? {}
    )
    const ready = yield* Deferred.make<{ readonly port: number; readonly services: Context.Context<never> }, unknown>()
    const database = options.database ?? usualKind
    const running = yield* serve({
      profile,
      stateFolder,
      database: typeof database === "string" ? migratedSourceLayer(database, profile.plugins) : database,
      onReady: (address, services) => Effect.asVoid(Deferred.succeed(ready, { port: address!.port, services }))
    }).pipe(
      Effect.provideService(CrashPoints, options.atStep ?? (() => Effect.void)),
      Effect.provideService(NameServers, options.nameServers),
      Effect.tapCause((cause) => Deferred.failCause(ready, cause)),
      Effect.provideService(
        References.MinimumLogLevel,
        process.env["TOLLKEEPER_TEST_LOG"] === undefined ? "None" : "Debug"
      ),
      // Each facilitator has its own metrics, like a process.
      Effect.provideService(Metric.MetricRegistry, new Map()),
      Effect.forkScoped
    )
    const { port, services } = yield* Deferred.await(ready)
    if (options.closesOnSubmit === true) yield* Effect.forkScoped(closeOnSubmit(services))
    const pool = Context.getUnsafe(services, ChannelPool as never) as ChannelPool["Service"]
    while ((yield* pool.counts).ready < (options.channels ?? 3)) yield* Effect.sleep("20 millis")
    // A sponsor status read before the channels existed would report that no payment is possible.
    const sponsor = Context.getUnsafe(services, Sponsor as never) as Sponsor["Service"]
    const isWaiting = Effect.all([sponsor.problem("exact"), sponsor.unfunded]).pipe(
      Effect.map(([problem, unfunded]) => Option.isSome(problem) && Option.isNone(unfunded))
    )
    for (let reads = 0; reads < 300 && (yield* isWaiting); reads++) yield* Effect.sleep("100 millis")
    const url = `http://127.0.0.1:${port}`
    const rpc = rpcCall(ledgerUrl)
    const post =
      (path: string) =>
      (body: unknown, headers: Record<string, string> = {}) =>
        ask(`${url}${path}`, {
          method: "POST",
          headers: { "content-type": "application/json", ...headers },
          body:
            typeof body === "string" ? body : body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body)
        })
    const fund = (address: string, usdcUnits: bigint) =>
      Effect.promise(async () => {
        const friendbot = new URL("/friendbot", ledgerUrl)
        friendbot.searchParams.set("addr", address)
        friendbot.searchParams.set("usdc", String(Number(usdcUnits) / 1e7))
        const answer = await fetch(friendbot)
        if (!answer.ok) throw new Error(`friendbot: ${answer.status} ${await answer.text()}`)
      })
    const facilitator: Facilitator = {
      url,
      ledgerUrl,
      rpc,
      services,
      sql: Context.getUnsafe(services, SqlClient.SqlClient as never) as SqlClient.SqlClient,
      get ledger() {
        return Context.getUnsafe(services, LocalLedger as never) as LocalLedger["Service"]
      },
      ask: (path, init) => ask(`${url}${path}`, init),
      verify: post("/verify"),
      settle: post("/settle"),
      account: Effect.fnUntraced(function* (usdcUnits = 1_000_000_000n) {
        const pair = Keypair.random()
        yield* fund(pair.publicKey(), usdcUnits)
        return pair
      }),
      payment: (payment) => Effect.promise(() => makePayment({ ...lasting(payment, options), rpc })),
      balance: (address) => Effect.promise(() => usdcBalance(rpc, address)),
      publishedBy: (statement) =>
        (Context.getUnsafe(services, Facts as never) as Facts["Service"]).publishedBy(statement),
      stop: Effect.asVoid(Fiber.interrupt(running))
    }
    return facilitator
  }).pipe(Effect.provide(NodeServices.layer))
