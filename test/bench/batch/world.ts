// The world of the batch bench: an embedded ledger whose own facilitator only deploys the contract, a PostgreSQL, the
// measured facilitator, and the clients, each a separate process. Buyers are accounts with USDC; a channel is opened by
// a deposit that the measured facilitator settles.
import { Keypair } from "@stellar/stellar-sdk"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { localBatchContractOf } from "../../../plugins/x402-batch-local/deploy.ts"
import { type Batch, type BatchChannel, makeBatch } from "../../support/batchBuyer.ts"
import { freePort } from "../../support/freePort.ts"
import { startPostgres } from "../../support/postgres.ts"
import { askFriendbot, type RpcCall, rpcCall } from "../../../runtime/redteam/rpcCall.ts"
import { startClients, type Clients } from "../payments/startClients.ts"
import { type Base, startFloor, startOurs, type Subject } from "../payments/world.ts"
import { connectTo, createDatabase, serverPid } from "../rig/database.ts"
import { startService, until } from "../rig/processes.ts"
import { programArgs, root } from "../rig/program.ts"

const passphrase = "Test SDF Network ; September 2015"
/** Number of channels of the measured facilitator. */
export const channelsMax = 20
/** Accounts funded concurrently. */
const fundedConcurrently = 8

export interface BatchWorld {
  readonly ledgerUrl: string
  readonly ledgerPid: number
  readonly rpc: RpcCall
  readonly databasePid: number
  readonly database: string
  readonly clients: Clients
  readonly contract: string
  readonly batch: Batch
  readonly buyers: ReadonlyArray<Keypair>
  readonly seller: Keypair
  /**
   * Starts it behind other addresses of ledger and database if calls are counted, and profiles it if a folder is given.
   */
  readonly startOurs: (options?: Through) => Promise<Subject>
  readonly startFloor: () => Promise<Subject>
  readonly stop: () => Promise<void>
}

export interface Through {
  readonly name?: string
  readonly rpcUrl?: string
  readonly throughSql?: (databaseUrl: string) => Promise<string>
}

/** Starts the ledger, and waits for the contract. */
const startLedger = async (base: Omit<Base, "ledgerUrl">) => {
  const [port, ledgerPort] = [await freePort(), await freePort()]
  const testnet = "networks.ledger:testnet"
  const settings = [
    "plugins=[ledger-local, x402-batch-local, x402-exact]",
    `${testnet}.rpc_urls=["http://127.0.0.1:${ledgerPort}"]`,
    `${testnet}.friendbot_url=http://127.0.0.1:${ledgerPort}/friendbot`,
    `${testnet}.channel_count=1`,
    "local_ledger.close_interval_ms=1000",
    "local_ledger.https=false"
  ]
  const args = ["--port", String(port), "--ledger-port", String(ledgerPort)]
  const ledger = startService(
    process.execPath,
    [
      ...programArgs,
      ...["start", "--state", join(base.folder, "ledger"), ...args],
      ...settings.flatMap((setting) => ["--set", setting])
    ],
    {
      cwd: root,
      log: join(base.folder, "ledger.log"),
      env: { DATABASE_URL: await createDatabase(base.admin, base.serverUrl, "bench_ledger") }
    }
  )
  base.running.push(ledger)
  const isReady = async () => (await fetch(`http://127.0.0.1:${port}/health/ready`)).ok
  await until("the ledger has its contract", isReady, ledger)
  return { pid: ledger.pid, url: `http://127.0.0.1:${ledgerPort}` }
}

const fund = async (ledgerUrl: string, accounts: ReadonlyArray<Keypair>): Promise<void> => {
  const rest = [...accounts]
  const worker = async () => {
    for (let one = rest.pop(); one !== undefined; one = rest.pop()) await askFriendbot(ledgerUrl, one.publicKey(), 100)
  }
  await Promise.all(Array.from({ length: fundedConcurrently }, worker))
}

/** `profileFolder`: the measured facilitator writes a CPU profile there when it ends. */
export const startBatchWorld = async (buyersCount: number, profileFolder?: string): Promise<BatchWorld> => {
  const folder = mkdtempSync(join(tmpdir(), "tollkeeper-bench-"))
  const running: Base["running"] = []
  const stop = async () => {
    for (const one of running.toReversed()) await one.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const postgres = await startPostgres()
    running.push(postgres)
    const admin = connectTo(postgres.url)
    running.push({ stop: admin.close })
    const ledger = await startLedger({ folder, admin, serverUrl: postgres.url, running })
    const base: Base = { folder, ledgerUrl: ledger.url, admin, serverUrl: postgres.url, running }
    const clients = startClients()
    running.push({ stop: async () => clients.stop() })
    const buyers = Array.from({ length: buyersCount }, () => Keypair.random())
    const seller = Keypair.random()
    await fund(ledger.url, [...buyers, seller])
    const contract = localBatchContractOf(passphrase)
    const rpc = rpcCall(ledger.url)
    return {
      ledgerUrl: ledger.url,
      ledgerPid: ledger.pid,
      rpc,
      databasePid: await serverPid(admin),
      database: postgres.description,
      clients,
      contract,
      batch: makeBatch(rpc, contract),
      buyers,
      seller,
      startOurs: ({ name = "batch", ...through } = {}) =>
        startOurs(base, false, {
          name,
          channels: channelsMax,
          plugins: ["x402-exact", "x402-batch"],
          set: [`networks.ledger:testnet.batch_contract=${contract}`],
          ...(profileFolder === undefined
            ? {}
            : { env: { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profileFolder}` } }),
          ...through
        }),
      startFloor: () => startFloor(base),
      stop
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Asks a facilitator to settle; fails unless it did. */
export const settled = async ({ port }: Subject, body: unknown): Promise<any> => {
  const response = await fetch(`http://127.0.0.1:${port}/settle`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body)
  })
  const text = await response.text()
  const answer = JSON.parse(text)
  if (answer.success !== true) throw new Error(`it was not settled: ${text}`)
  return answer
}

/** Opens a channel for each buyer with the seller, each by a deposit. */
export const openChannels = async (
  { batch, buyers, seller }: BatchWorld,
  subject: Subject,
  deposit: bigint
): Promise<ReadonlyArray<BatchChannel>> => {
  const channels = buyers.map((buyer) => batch.channel(buyer, seller.publicKey(), seller))
  await Promise.all(
    channels.map(async (channel) => {
      const payload = await batch.deposit(channel, deposit, 1n)
      await settled(subject, batch.body(channel, payload, 1n))
    })
  )
  return channels
}
