// A facilitator as an operator runs it, with parts that can fail: its process, an embedded database or a PostgreSQL
// behind a relay, and two RPC endpoints in front of a ledger process. Each part can be broken and mended.
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { root } from "../../runtime/bootstrap.mjs"
import { usdcBalance } from "../../runtime/redteam/balances.ts"
import { makePayment, type Payment } from "../../runtime/redteam/buyer.ts"
import { askFriendbot, type RpcCall } from "../../runtime/redteam/rpcCall.ts"
import type { Program } from "../conformance/programs.ts"
import { Replica } from "../scenarios/Replica.ts"
import { freePort } from "../support/freePort.ts"
import { type Standby, startStandby } from "../support/failover.ts"
import { startCluster, type TestPostgres } from "../support/postgres.ts"
import { type Relay, startRelay } from "../support/relay.ts"
import { postSettle } from "../support/rig/postSettle.ts"
import { type ProxiedCall, startRpcProxy } from "../support/rig/rpcProxy.ts"
import { overLedger, setting } from "../support/rig/settings.ts"
import { startLedger } from "../support/rig/startLedger.ts"
import { until } from "../support/rig/until.ts"

const price = 10_000n
const fundedUsdc = 100
/** A standby has at least as many as its primary. */
const connectionsMax = 200
/** The default of the setting, and a payment that outlives the wait for a dead ledger. */
const usualSeconds = 300
export const longSeconds = 1_200
/** A busy machine takes a while to notice and to recover. */
const noticeMillisMax = 60_000

/** An endpoint of the ledger; `lie` answers a call itself, or returns false to pass it on. */
export interface Endpoint {
  readonly url: string
  lie: ((call: ProxiedCall) => Promise<boolean>) | undefined
}

export interface PlaceOptions {
  readonly database: "embedded" | "postgres"
  readonly set?: ReadonlyArray<string>
}

export class Place {
  readonly folder = mkdtempSync(join(tmpdir(), "tollkeeper-faults-"))
  readonly state = join(this.folder, "state")
  endpoints: ReadonlyArray<Endpoint> = []
  rpc!: RpcCall
  ledgerUrl = ""
  replica!: Replica
  postgres: TestPostgres | undefined
  relay: Relay | undefined
  /** Success answers so far. */
  paid = 0
  #buyer = Keypair.random()
  #seller = Keypair.random()
  #ends: Array<() => Promise<unknown>> = []

  static readonly open = async (options: PlaceOptions): Promise<Place> => {
    const place = new Place()
    await place.#open(options).catch(async (error) => {
      await place.close()
      throw error
    })
    return place
  }

  async #open({ database, set = [] }: PlaceOptions): Promise<void> {
    await this.newLedger()
    this.endpoints = await Promise.all([0, 1].map(() => this.#endpoint()))
    if (database === "postgres") {
      this.postgres = await startCluster()
      this.#ends.push(() => this.postgres!.stop())
      this.relay = await startRelay(Number(new URL(this.postgres.url).port))
      this.#ends.push(this.relay.close)
    }
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    const databaseUrl = this.postgres === undefined ? "" : this.#throughRelay(this.postgres.url)
    const settings = setting(
      "plugins=[x402-exact]",
      ...overLedger({
        rpcUrl: this.endpoints.map((one) => one.url).join('","'),
        ledgerUrl: this.endpoints[0]!.url,
        channels: 2
      }),
      `networks.ledger:testnet.max_timeout_seconds=${longSeconds}`,
      "limits.settle_timeout_ms=8000",
      ...set
    )
    this.replica = new Replica({
      name: database,
      url,
      folder: root,
      command: () => ["runtime/cli.ts", "start", "--state", this.state, "--port", String(port), ...settings],
      environment: () => (databaseUrl === "" ? {} : { DATABASE_URL: databaseUrl })
    })
    this.#ends.push(this.replica.stop)
    this.replica.start()
    await this.replica.ready()
  }

  #throughRelay(url: string): string {
    const through = new URL(url)
    through.hostname = "127.0.0.1"
    through.port = String(this.relay!.port)
    return through.href
  }

  async #endpoint(): Promise<Endpoint> {
    const endpoint: { url: string; lie: Endpoint["lie"] } = { url: "", lie: undefined }
    const proxy = await startRpcProxy(
      () => this.ledgerUrl,
      async (call) => {
        if (endpoint.lie !== undefined && (await endpoint.lie(call))) return
        const { status, text } = await call.passOn()
        call.answer(status, text)
      }
    )
    this.#ends.push(proxy.close)
    endpoint.url = proxy.url
    return endpoint
  }

  /** Replaces the ledger process by one without history. */
  readonly newLedger = async (): Promise<void> => {
    const { program, rpc, url } = await startLedger("500ms")
    this.ledgerUrl = url
    this.rpc = rpc
    this.#ends.push((program as Program).stop)
    for (const account of [this.#buyer, this.#seller]) await askFriendbot(url, account.publicKey(), fundedUsdc)
  }

  readonly pay = (maxTimeoutSeconds = usualSeconds): Promise<Payment> =>
    makePayment({
      rpc: this.rpc,
      payer: this.#buyer,
      payTo: this.#seller.publicKey(),
      amount: price,
      maxTimeoutSeconds,
      network: "stellar:testnet"
    })

  /** One settle; the same payment has the same key, so that a repetition is answered with its success. */
  readonly settle = async ({ body, nonce }: Payment): Promise<any> =>
    postSettle(this.replica.url, body, { timeoutMillis: 30_000, idempotencyKey: `faults-${nonce}`.padEnd(24, "0") })

  /** Brings the payment until its success; throws on a failed one. */
  readonly bring = async (payment: Payment): Promise<void> => {
    let last: any
    await until(
      "the payment settles",
      async () => {
        last = await this.settle(payment).catch((error) => ({ errorReason: String(error) }))
        return last.success === true
      },
      noticeMillisMax,
      () => JSON.stringify(last)
    )
    this.paid += 1
  }

  /** Readiness, with its HTTP status; 0 without an answer. */
  readonly health = (): Promise<any> =>
    fetch(`${this.replica.url}/health/ready`, { signal: AbortSignal.timeout(5_000) }).then(
      async (answer) => ({ http: answer.status, ...((await answer.json()) as object) }),
      () => ({ http: 0 })
    )

  readonly healthBecomes = async (what: RegExp): Promise<string> => {
    let seen = ""
    await until(
      `health says ${what}`,
      async () => {
        seen = JSON.stringify(await this.health())
        return what.test(seen)
      },
      noticeMillisMax,
      () => seen
    )
    return seen
  }

  /** Atomic units that the seller has received on the current ledger. */
  readonly received = (): Promise<bigint> =>
    usdcBalance(this.rpc, this.#seller.publicKey()).then((held) => (held - BigInt(fundedUsdc) * 10_000_000n) / price)

  /** A standby that follows the server. */
  readonly standby = async (): Promise<Standby> => {
    const standby = await Effect.runPromise(startStandby(this.postgres!.url, connectionsMax))
    this.#ends.push(standby.server.stop)
    return standby
  }

  readonly close = async (): Promise<void> => {
    for (const end of this.#ends.reverse()) await end().catch(() => {})
    rmSync(this.folder, { recursive: true, force: true })
  }
}
