// The deployment under test: two replicas of the shipped profile over one PostgreSQL, each with two RPC endpoints in
// front of one ledger process, secrets in files as in the compose file, Prometheus, and buyers that pay all the time. A
// scene changes something here and checks the effect.
import { Keypair } from "@stellar/stellar-sdk"
import { execFile } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { makeRandom } from "../simulation/random.ts"
import { startCluster } from "../support/postgres.ts"
import { freePort } from "../support/freePort.ts"
import { setting } from "../support/rig/settings.ts"
import { startLedger } from "../support/rig/startLedger.ts"
import { askFriendbot, type RpcCall } from "../../runtime/redteam/rpcCall.ts"
import { type Monitor, startMonitor } from "./Monitor.ts"
import { payXlm } from "./payXlm.ts"
import { Replica } from "./Replica.ts"
import { type RpcEndpoint, startEndpoint } from "./Rpc.ts"
import { Traffic } from "./Traffic.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const cli = join(root, "runtime/cli.ts")
const testnet = "networks.ledger:testnet"
const channelsCount = 12
/** Daily limit of one key's sponsored fees in the scene of an exhausted budget. */
const smallStroopsMax = 300_000

export interface WorldOptions {
  readonly seed: number
  readonly clients: number
  /** The program of Prometheus; without it alerts are not checked. */
  readonly prometheus: string | undefined
  readonly pace: number
  /** Maximum time for a replica to stop. */
  readonly stopMillisMax: number
}

/** The source of the seeds, which a rotation changes. */
export interface Signing {
  readonly environment: Readonly<Record<string, string>>
  readonly set: ReadonlyArray<string>
}

export class World {
  readonly folder = mkdtempSync(join(tmpdir(), "tollkeeper-operate-"))
  readonly secrets = join(this.folder, "secrets")
  readonly operatorKey = "operator-key-0123456789"
  readonly smallKey = "small-key-0123456789"
  shopKey = "shop-key-0123456789"
  sponsor = Keypair.random()
  channels = Array.from({ length: channelsCount }, () => Keypair.random())
  signing: Signing = {
    environment: { SPONSOR_SECRET_FILE: this.file("sponsor"), CHANNELS_FILE: this.file("channels") },
    set: [`${testnet}.channel_secrets_env=CHANNELS`]
  }
  databaseUrl = ""
  ledgerUrl = ""
  rpc!: RpcCall
  postgres!: Awaited<ReturnType<typeof startCluster>>
  replicas: ReadonlyArray<Replica> = []
  /** By replica. */
  endpoints: ReadonlyArray<ReadonlyArray<RpcEndpoint>> = []
  traffic!: Traffic
  monitor: Monitor | undefined
  #stopMillisMax = 0
  #ends: Array<() => Promise<unknown>> = []
  /** Hashes of transfers from the sponsor. */
  readonly #drains: Array<string> = []

  /** The path of a secret. */
  file(name: string): string {
    return join(this.secrets, name)
  }

  readonly write = (name: string, text: string): void => writeFileSync(this.file(name), text, { mode: 0o600 })

  readonly writeKeys = (shop: ReadonlyArray<string>): void =>
    this.write("api_keys", [...shop.map((key) => `shop:${key}`), `small:${this.smallKey}`].join())

  readonly fund = (address: string): Promise<void> => askFriendbot(this.ledgerUrl, address)

  /** Starts everything, and returns after the first payments have settled. */
  static readonly open = async (options: WorldOptions): Promise<World> => {
    const world = new World()
    try {
      await world.#open(options)
      return world
    } catch (error) {
      await world.close()
      throw error
    }
  }

  async #open({ clients, pace, prometheus, seed, stopMillisMax }: WorldOptions): Promise<void> {
    this.#stopMillisMax = stopMillisMax
    chmodSync(this.folder, 0o755)
    mkdirSync(this.secrets)
    this.postgres = await startCluster()
    this.#ends.push(() => this.postgres.stop())
    this.databaseUrl = this.postgres.url
    await this.#startLedger()
    this.write("database_url", this.databaseUrl)
    this.write("operator_keys", `ops:${this.operatorKey}`)
    this.write("sponsor", this.sponsor.secret())
    this.write("channels", this.channels.map((one) => one.secret()).join())
    this.writeKeys([this.shopKey])
    await this.fund(this.sponsor.publicKey())
    const names = ["one", "two"]
    this.endpoints = await Promise.all(
      names.map(() => Promise.all([startEndpoint(this.ledgerUrl), startEndpoint(this.ledgerUrl)]))
    )
    for (const endpoint of this.endpoints.flat()) this.#ends.push(endpoint.close)
    const ports = await Promise.all(names.map(() => freePort()))
    this.replicas = names.map((name, at) => this.#replica(name, ports[at]!, this.endpoints[at]!))
    for (const replica of this.replicas) {
      this.#ends.push(replica.stop)
      replica.start()
      await replica.ready()
    }
    await this.#startTraffic(seed, clients)
    if (prometheus === undefined) return
    this.monitor = await startMonitor({
      program: prometheus,
      folder: this.folder,
      rules: join(root, "runtime/deploy/observability/alerts.yml"),
      pace,
      targets: ports.map((port) => `127.0.0.1:${port}`),
      operatorKey: this.operatorKey
    })
    this.#ends.push(this.monitor.stop)
  }

  async #startLedger(): Promise<void> {
    const { program, rpc, url } = await startLedger("2s")
    this.#ends.push(program.stop)
    this.ledgerUrl = url
    this.rpc = rpc
  }

  #replica(name: string, port: number, endpoints: ReadonlyArray<RpcEndpoint>): Replica {
    this.write(`rpc_urls_${name}`, endpoints.map(({ url }) => url).join())
    const set = [
      `server.host=127.0.0.1`,
      `server.port=${port}`,
      `server.instance=${name}`,
      `${testnet}.channel_count=${channelsCount}`,
      `${testnet}.max_timeout_seconds=900`,
      "limits.settle_timeout_ms=6000",
      "limits.rpc_timeout_ms=3000",
      `limits.max_sponsored_stroops_per_key_per_day=100000000`,
      `limits.max_sponsored_stroops_per_day_by_key={small: ${smallStroopsMax}}`
    ]
    return new Replica({
      name,
      url: `http://127.0.0.1:${port}`,
      folder: root,
      command: () => [
        cli,
        "start",
        "--profile",
        join(root, "runtime/deploy/kubernetes/profile.yaml"),
        "--state",
        this.state(name),
        ...setting(...set, ...this.signing.set)
      ],
      environment: () => ({
        DATABASE_URL_FILE: this.file("database_url"),
        FACILITATOR_API_KEYS_FILE: this.file("api_keys"),
        OPERATOR_API_KEYS_FILE: this.file("operator_keys"),
        RPC_URLS_FILE: this.file(`rpc_urls_${name}`),
        ...this.signing.environment
      })
    })
  }

  async #startTraffic(seed: number, clients: number): Promise<void> {
    const { ledgerUrl, replicas, rpc } = this
    const urls = replicas.map(({ url }) => url)
    this.traffic = new Traffic({ rpc, ledgerUrl, urls, random: makeRandom(seed), key: () => this.shopKey })
    await this.traffic.fund()
    this.traffic.start(clients)
    await this.traffic.more(clients)
  }

  readonly state = (name: string): string => join(this.folder, `state-${name}`)

  /** Runs an operator's command; returns its answer. It is executed in replica one. */
  readonly operatorText = async (
    words: ReadonlyArray<string>,
    environment: Record<string, string> = {}
  ): Promise<string> => {
    const { stdout } = await promisify(execFile)(process.execPath, [cli, ...words, "--json"], {
      cwd: this.folder,
      env: { PATH: process.env["PATH"] ?? "", HOME: this.folder, NO_COLOR: "1", ...environment },
      maxBuffer: 1 << 26
    })
    return stdout
  }

  /** The same, with an answer of one JSON value. */
  readonly operator = async (words: ReadonlyArray<string>, environment: Record<string, string> = {}): Promise<any> =>
    JSON.parse(await this.operatorText(words, environment))

  readonly besideOne = (...words: ReadonlyArray<string>) => this.operator([...words, "--state", this.state("one")])

  /** Makes the RPC refuse or accept both replicas' submissions. */
  readonly hold = (holds: boolean): void => {
    for (const endpoint of this.endpoints.flat()) endpoint.holds = holds
  }

  /** GET with the shop's key, or another. */
  readonly ask = async (replica: Replica, path: string, key = this.shopKey): Promise<any> => {
    const answer = await fetch(`${replica.url}${path}`, {
      headers: { authorization: `Bearer ${key}` },
      signal: AbortSignal.timeout(10_000)
    })
    const text = await answer.text()
    return { status: answer.status, text, ...(text.startsWith("{") ? JSON.parse(text) : {}) }
  }

  /** The value of a metric without labels; undefined while it is not reported. */
  readonly metric = async (replica: Replica, name: string): Promise<number | undefined> => {
    const { text } = await this.ask(replica, "/metrics", this.operatorKey)
    const line = (text as string).split("\n").find((one) => one.startsWith(`${name} `))
    return line === undefined ? undefined : Number(line.slice(name.length))
  }

  /**
   * Stops a replica, starts it with the current settings and variables, and waits for it. Returns the milliseconds
   * until it stopped; throws if it exited with an error or too late.
   */
  readonly recreate = async (replica: Replica): Promise<number> => {
    const { code, millis } = await replica.stop()
    if (code !== 0) throw new Error(`${replica.name} ended with ${code}`)
    if (millis > this.#stopMillisMax) throw new Error(`${replica.name} took ${(millis / 1_000).toFixed(1)} s to stop`)
    replica.start()
    await replica.ready()
    return millis
  }

  /** A backup was restored: bids that were raised after it have no record, and the audit reports them. */
  isRestored = false

  /** The replicas' next start uses this database with a restored backup. */
  readonly useRestored = (url: string): void => {
    this.isRestored = true
    this.databaseUrl = url
    this.write("database_url", url)
  }

  /** Transfers stroops from the sponsor outside the facilitator; the audit must report it. Returns the amount. */
  readonly drain = async (to: string, stroops: bigint): Promise<bigint> => {
    const { hash, hasSucceeded } = await payXlm(this.rpc, this.sponsor, to, stroops)
    this.#drains.push(hash)
    // Fees of payments may have been charged between reading the balance and this.
    return hasSucceeded ? stroops : 0n
  }

  /** Differences between database and ledger once everything has ended; empty if they agree. */
  readonly issues = async (): Promise<ReadonlyArray<string>> => {
    // A mismatch sets the exit code as well.
    const report = await this.besideOne("audit").catch(({ stderr, stdout }) => {
      if (stdout === "") throw new Error(`the audit says nothing: ${stderr}`)
      return JSON.parse(stdout)
    })
    const reported = report.mismatches as ReadonlyArray<{ readonly rule: string; readonly subject: string }>
    const named = reported.filter(({ subject }) => this.#drains.includes(subject))
    const isExpected = (one: (typeof reported)[number]) =>
      named.includes(one) || (this.isRestored && one.rule === "bid recorded before sent")
    const others = reported.filter((one) => !isExpected(one)).map((one) => `audit: ${JSON.stringify(one)}`)
    if (named.length < this.#drains.length) others.push("the audit does not name what was taken from the sponsor")
    if (report.open > 0) others.push(`${report.open} settlements are open`)
    if (report.unresolved > 0) others.push(`${report.unresolved} settlements are unresolved`)
    return others
  }

  /** A single replica with an embedded database, its own settings and its own sponsor; not started yet. */
  readonly lone = async (name: string, sponsor: Keypair, set: ReadonlyArray<string>): Promise<Replica> => {
    this.write(`sponsor_${name}`, sponsor.secret())
    this.write(`rpc_urls_${name}`, this.ledgerUrl)
    const port = await freePort()
    const own = ["server.host=127.0.0.1", `server.port=${port}`, "plugins=[x402-exact]"]
    const bounds = [`${testnet}.channel_count=2`, `${testnet}.max_timeout_seconds=900`]
    const profile = join(root, "runtime/deploy/kubernetes/profile.yaml")
    const replica = new Replica({
      name,
      url: `http://127.0.0.1:${port}`,
      folder: root,
      command: () => [
        ...[cli, "start", "--profile", profile, "--state", this.state(name)],
        ...setting(...own, ...bounds, "database.embedded_folder=database", ...set)
      ],
      environment: () => ({
        FACILITATOR_API_KEYS_FILE: this.file("api_keys"),
        OPERATOR_API_KEYS_FILE: this.file("operator_keys"),
        RPC_URLS_FILE: this.file(`rpc_urls_${name}`),
        SPONSOR_SECRET_FILE: this.file(`sponsor_${name}`)
      })
    })
    this.#ends.push(replica.stop)
    return replica
  }

  readonly onClose = (end: () => Promise<unknown>): void => void this.#ends.push(end)

  readonly close = async (): Promise<void> => {
    for (const end of this.#ends.reverse()) await end().catch(() => {})
    rmSync(this.folder, { recursive: true, force: true })
  }
}
