// The world of the payments bench: one ledger, one PostgreSQL, the clients, and the measured programs, each a separate
// process and started as its users start it. Each of our facilitators has a database and a sponsor; the official class
// has twenty accounts that settle in turns and an account that pays fee bumps.
import { Keypair } from "@stellar/stellar-sdk"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { installSet } from "../../conformance/officialSet.ts"
import { freePort } from "../../support/freePort.ts"
import { startPostgres } from "../../support/postgres.ts"
import { askFriendbot, type RpcCall, rpcCall } from "../../../runtime/redteam/rpcCall.ts"
import { type BenchDatabase, connectTo, createDatabase, serverPid } from "../rig/database.ts"
import { type Service, startService, until } from "../rig/processes.ts"
import { denoArgs, denoProgram, programArgs, root } from "../rig/program.ts"
import { type Clients, startClients } from "./startClients.ts"

/** Number of settling accounts of the official class, and of our channels compared with it. */
export const channelsBeside = 20

/** A measured facilitator. */
export interface Subject {
  readonly name: string
  readonly pid: number
  readonly port: number
  /** The facilitator's database; absent for the official class. */
  readonly databaseUrl?: string
  readonly sponsorSecret?: string
  readonly stateFolder?: string
  readonly settings?: ReadonlyArray<string>
  readonly tail: () => string
  readonly stop: () => Promise<void>
}

export interface OursOptions {
  readonly name: string
  readonly channels: number
  /** Starts the program of another checkout; absent: of this one. */
  readonly checkout?: string
  readonly plugins?: ReadonlyArray<string>
  readonly set?: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
  /** A proxy in front of the ledger, or of the database. */
  readonly rpcUrl?: string
  readonly throughSql?: (databaseUrl: string) => Promise<string>
  /** Shares the database and the sponsor of another facilitator: its replica. */
  readonly beside?: { readonly databaseUrl: string; readonly sponsorSecret: string }
}

export interface World {
  readonly ledgerUrl: string
  readonly ledgerPid: number
  readonly rpc: RpcCall
  readonly databasePid: number
  readonly database: string
  readonly clients: Clients
  readonly payers: ReadonlyArray<string>
  readonly payTo: string
  readonly startOurs: (options: OursOptions) => Promise<Subject>
  readonly startPeer: (rpcUrl?: string) => Promise<Subject>
  /** A server that only answers (`floor.ts`). */
  readonly startFloor: () => Promise<Subject>
  readonly stop: () => Promise<void>
}

export interface WorldOptions {
  readonly deno: boolean
  readonly say: (line: string) => void
}

/** Shared by the facilitators of a world. */
export interface Base {
  readonly folder: string
  readonly ledgerUrl: string
  readonly admin: BenchDatabase
  readonly serverUrl: string
  readonly running: Array<{ readonly stop: () => Promise<void> }>
}

const startLedger = async (folder: string, running: Base["running"]): Promise<Service & { readonly url: string }> => {
  const port = await freePort()
  const ledger = startService(process.execPath, [...programArgs, "ledger", "--port", String(port), "--close", "1s"], {
    cwd: root,
    log: join(folder, "ledger.log")
  })
  running.push(ledger)
  const rpc = rpcCall(`http://127.0.0.1:${port}`)
  await until("the ledger answers", async () => (await rpc("getHealth")).status === "healthy", ledger)
  return { ...ledger, url: `http://127.0.0.1:${port}` }
}

/** A facilitator of ours, ready when its channels are. */
export const startOurs = async (base: Base, deno: boolean, options: OursOptions): Promise<Subject> => {
  const { channels, name } = options
  const port = await freePort()
  const fresh = () => createDatabase(base.admin, base.serverUrl, `bench_${name.replaceAll(/\W/g, "_")}`)
  const own = options.beside?.databaseUrl ?? (await fresh())
  const sponsorSecret = options.beside?.sponsorSecret ?? Keypair.random().secret()
  const testnet = "networks.ledger:testnet"
  const settings = [
    `plugins=[${(options.plugins ?? ["x402-exact"]).join(", ")}]`,
    `${testnet}.rpc_urls=["${options.rpcUrl ?? base.ledgerUrl}"]`,
    `${testnet}.friendbot_url=${base.ledgerUrl}/friendbot`,
    `${testnet}.channel_count=${channels}`,
    ...(options.set ?? [])
  ]
  const args = [
    ...["start", "--state", join(base.folder, name), "--port", String(port)],
    ...settings.flatMap((setting) => ["--set", setting])
  ]
  const service = startService(deno ? denoProgram() : process.execPath, [...(deno ? denoArgs : programArgs), ...args], {
    cwd: options.checkout ?? root,
    log: join(base.folder, `${name}.log`),
    env: {
      DATABASE_URL: (await options.throughSql?.(own)) ?? own,
      SPONSOR_SECRET: sponsorSecret,
      ...options.env
    }
  })
  base.running.push(service)
  const metrics = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  await until(
    `the ${channels} channels of ${name} are ready`,
    async () => (await metrics()).includes(`tollkeeper_channels_ready ${channels}\n`),
    service
  )
  return { ...service, name, port, databaseUrl: own, sponsorSecret, stateFolder: join(base.folder, name), settings }
}

const startPeer = async (base: Base, secrets: ReadonlyArray<string>, feeSecret: string, rpcUrl: string) => {
  const port = await freePort()
  const folder = join(root, "test", "official")
  const settings = { rpc: rpcUrl, secrets, feeSecret, network: "stellar:testnet", port }
  const service = startService(
    process.execPath,
    ["--import", join(folder, "horizon.mjs"), join(folder, "a", "peer.mjs"), JSON.stringify(settings)],
    {
      cwd: join(folder, "a"),
      log: join(base.folder, "peer.log"),
      // Horizon refuses immediately, on a port without a listener: the cheapest case for the class to learn the close
      // interval.
      env: { NODE_ENV: "production", LOCAL_HORIZON_PORT: "1" }
    }
  )
  base.running.push(service)
  await until("the class answers", async () => (await fetch(`http://127.0.0.1:${port}/health`)).ok, service)
  return { ...service, name: "class", port }
}

export const startFloor = async (base: Base): Promise<Subject> => {
  const port = await freePort()
  const program = join(root, "test", "bench", "payments", "floor.ts")
  const service = startService(process.execPath, [program, String(port)], {
    cwd: root,
    log: join(base.folder, "floor.log")
  })
  base.running.push(service)
  const isThere = () =>
    fetch(`http://127.0.0.1:${port}`, { method: "POST", body: "{}" }).then(({ status }) => status === 400)
  await until("the server that answers alone is there", isThere, service)
  return { ...service, name: "answering alone", port }
}

const startBase = async (folder: string, running: Base["running"]) => {
  const postgres = await startPostgres()
  running.push(postgres)
  const admin = connectTo(postgres.url)
  running.push({ stop: admin.close })
  const ledger = await startLedger(folder, running)
  const base: Base = { folder, ledgerUrl: ledger.url, admin, serverUrl: postgres.url, running }
  return { base, ledger, postgres, databasePid: await serverPid(admin) }
}

export const startWorld = async ({ deno, say }: WorldOptions): Promise<World> => {
  await installSet("a", say)
  const folder = mkdtempSync(join(tmpdir(), "tollkeeper-bench-"))
  const running: Base["running"] = []
  const stop = async () => {
    for (const one of running.toReversed()) await one.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const { base, databasePid, ledger, postgres } = await startBase(folder, running)
    const [payers, signers] = [10, channelsBeside].map((count) => Array.from({ length: count }, () => Keypair.random()))
    const [payTo, fee] = [Keypair.random(), Keypair.random()]
    for (const one of [...payers!, payTo]) await askFriendbot(ledger.url, one.publicKey(), 1_000)
    for (const one of [...signers!, fee]) await askFriendbot(ledger.url, one.publicKey())
    const clients = startClients()
    running.push({ stop: async () => clients.stop() })
    const secrets = signers!.map((pair) => pair.secret())
    return {
      ledgerUrl: ledger.url,
      ledgerPid: ledger.pid,
      rpc: rpcCall(ledger.url),
      databasePid,
      database: postgres.description,
      clients,
      payers: payers!.map((pair) => pair.secret()),
      payTo: payTo.publicKey(),
      startOurs: (options) => startOurs(base, deno, options),
      startPeer: (rpcUrl = ledger.url) => startPeer(base, secrets, fee.secret(), rpcUrl),
      startFloor: () => startFloor(base),
      stop
    }
  } catch (error) {
    await stop()
    throw error
  }
}
