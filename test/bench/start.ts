// `npm run bench -- start`: time from start to ready, the process's memory then, and its idle use: the local profile
// over existing state, and the self-hosted one over PostgreSQL and a separate ledger process. Then the size of `npm ci
// --omit=dev` without Node, and whether an idle facilitator sends spans. `--quick` samples for seconds instead of a
// minute. The last line has the figures; the status is 0 only if every bar holds.
import { Keypair } from "@stellar/stellar-sdk"
import { execFileSync } from "node:child_process"
import { copyFileSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { parseArgs } from "node:util"
import { freePort } from "../support/freePort.ts"
import { startPostgres } from "../support/postgres.ts"
import { rpcCall } from "../../runtime/redteam/rpcCall.ts"
import { atMost, type Bar, barLine } from "./rig/bars.ts"
import { memoryOf, pause, processorMillis, type Service, startService, until } from "./rig/processes.ts"
import { programArgs, root } from "./rig/program.ts"
import { Progress } from "./rig/Progress.ts"

const megabyte = 1_000_000

/** By then a span has been sent. */
const spanBatchMillis = 8_000

interface Plan {
  /** Number of starts; the fastest counts, because a busy machine only adds time. */
  readonly starts: number
  /** After a start the process is not idle yet: ledgers are followed closely for twelve seconds. */
  readonly calmMillis: number
  readonly idleSeconds: number
}

interface Started {
  readonly service: Service
  readonly port: number
  readonly readyMillis: number
  /** Processor time until it was ready, which a busy machine does not blur. */
  readonly cpuMillis: number
}

interface Figures {
  readonly firstMillis: number
  readonly readyMillis: number
  readonly readyCpuMillis: number
  readonly resident: number
  readonly idleMillisPerSecond: number
}

type Launch = (log: string, env?: Record<string, string>) => Promise<Started>

const isReady = async (port: number): Promise<boolean> => (await fetch(`http://127.0.0.1:${port}/health/ready`)).ok

const launch = async (args: ReadonlyArray<string>, log: string, env: Record<string, string>): Promise<Started> => {
  const port = await freePort()
  const from = performance.now()
  const service = startService(process.execPath, [...programArgs, "start", ...args, "--port", String(port)], {
    cwd: root,
    log,
    env
  })
  await until("it is ready", () => isReady(port), service)
  return { service, port, readyMillis: performance.now() - from, cpuMillis: processorMillis(service.pid) }
}

/** Waits until the channels are created, so that a later start finds all of them. */
const settleDown = async ({ port, service }: Started): Promise<void> => {
  const metrics = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  await until(
    "its channels are ready",
    async () => (await metrics()).includes("tollkeeper_channels_ready 20\n"),
    service
  )
}

const measure = async (name: string, start: Launch, plan: Plan, folder: string, progress: Progress) => {
  const log = join(folder, `${name}.log`)
  progress.step(`${name}: first start`)
  const first = await start(log)
  await settleDown(first)
  await first.service.stop()
  let best: Started | undefined
  for (let at = 0; at < plan.starts; at++) {
    progress.step(`${name}: start ${at + 1} of ${plan.starts}`)
    await best?.service.stop()
    const one = await start(log)
    best = best === undefined || one.readyMillis < best.readyMillis ? one : { ...one, ...timesOf(best) }
  }
  const { cpuMillis, readyMillis, service } = best!
  progress.step(`${name}: idle`)
  await pause(plan.calmMillis)
  const { resident } = memoryOf(service.pid)
  const before = processorMillis(service.pid)
  await pause(plan.idleSeconds * 1_000)
  const idle = (processorMillis(service.pid) - before) / plan.idleSeconds
  await service.stop()
  return {
    firstMillis: first.readyMillis,
    readyMillis,
    readyCpuMillis: cpuMillis,
    resident,
    idleMillisPerSecond: idle
  }
}

const timesOf = ({ cpuMillis, readyMillis }: Started) => ({ cpuMillis, readyMillis })

/** Batches of spans received while idle. */
const spansWhileIdle = async (start: Launch, plan: Plan, folder: string): Promise<number> => {
  let spans = 0
  const collector = createServer((request, response) => {
    if (request.url?.endsWith("/v1/traces") === true) spans += 1
    request.resume().on("end", () => response.end("{}"))
  })
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", () => resolve()))
  const { port } = collector.address() as { port: number }
  const { service } = await start(join(folder, "telemetry.log"), {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
    OTEL_METRICS_EXPORTER: "none",
    OTEL_LOGS_EXPORTER: "none"
  })
  // The request for readiness has a span too, which is sent with the next batch, within five seconds.
  await pause(Math.max(plan.calmMillis, spanBatchMillis))
  spans = 0
  await pause(plan.idleSeconds * 1_000)
  await service.stop()
  collector.closeAllConnections()
  collector.close()
  return spans
}

const bytesBelow = (folder: string): number =>
  readdirSync(folder, { withFileTypes: true }).reduce((sum, entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return sum + bytesBelow(path)
    return entry.isFile() ? sum + statSync(path).size : sum
  }, 0)

/** Size of npm's installation for a user who only runs it, without its Node; NaN without a registry. */
const installedBytes = (folder: string, say: (line: string) => void): number => {
  const place = mkdtempSync(join(folder, "install-"))
  for (const file of ["package.json", "package-lock.json", ".npmrc"]) {
    try {
      copyFileSync(join(root, file), join(place, file))
    } catch {
      // npm may have no settings.
    }
  }
  try {
    execFileSync("npm", ["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], {
      cwd: place,
      stdio: ["ignore", "ignore", "pipe"]
    })
  } catch (error) {
    say(`the size of an installation is unknown: npm ci failed (${String(error).slice(0, 300)})`)
    return Number.NaN
  }
  const modules = join(place, "node_modules")
  const isNode = (name: string) => /^node-(bin-)?\w+-\w+$/.test(name)
  const ofNode = readdirSync(modules).filter(isNode)
  return bytesBelow(modules) - ofNode.reduce((sum, name) => sum + bytesBelow(join(modules, name)), 0)
}

const localLaunch = async (folder: string): Promise<Launch> => {
  const [ledgerPort, httpsPort] = [await freePort(), await freePort()]
  const args = ["--state", join(folder, "local"), "--ledger-port", String(ledgerPort)]
  return (log, env = {}) => launch([...args, "--ledger-https-port", String(httpsPort)], log, env)
}

const hostedLaunch = (folder: string, ledgerUrl: string, databaseUrl: string): Launch => {
  const testnet = "networks.ledger:testnet"
  const settings = [
    `${testnet}.rpc_urls=["${ledgerUrl}"]`,
    `${testnet}.friendbot_url=${ledgerUrl}/friendbot`,
    `${testnet}.development_auto_fund=true`
  ]
  const args = ["--profile", "self-hosted", "--state", join(folder, "hosted")]
  const secrets = { DATABASE_URL: databaseUrl, SPONSOR_SECRET: Keypair.random().secret() }
  return (log, env = {}) =>
    launch([...args, ...settings.flatMap((setting) => ["--set", setting])], log, { ...secrets, ...env })
}

const line = (name: string, figures: Figures): string => {
  const { firstMillis, idleMillisPerSecond, readyCpuMillis, readyMillis, resident } = figures
  const seconds = (millis: number) => `${(millis / 1_000).toFixed(2)} s`
  return (
    `  ${name.padEnd(12)} first start ${seconds(firstMillis)}, later ${seconds(readyMillis)} ` +
    `(${seconds(readyCpuMillis)} of CPU), ${(resident / megabyte).toFixed(0)} MB resident, ` +
    `idle ${idleMillisPerSecond.toFixed(1)} ms of CPU a second`
  )
}

const verify = (local: Figures, hosted: Figures, spans: number, installed: number): ReadonlyArray<Bar> => [
  atMost("ready with PostgreSQL, s", hosted.readyMillis / 1_000, 1.5),
  atMost("ready embedded, s", local.readyMillis / 1_000, 3),
  atMost("memory self-hosted, MB", hosted.resident / megabyte, 160),
  atMost("memory local, MB", local.resident / megabyte, 350),
  atMost("idle self-hosted, CPU ms a second", hosted.idleMillisPerSecond, 5),
  atMost("idle local, CPU ms a second", local.idleMillisPerSecond, 5),
  atMost("spans sent while idle", spans, 0),
  atMost("installed beside Node, MB", installed / megabyte, 260)
]

const measureAll = async (plan: Plan, folder: string, progress: Progress): Promise<ReadonlyArray<Bar>> => {
  const running: Array<{ readonly stop: () => Promise<void> }> = []
  try {
    const local = await measure("local", await localLaunch(folder), plan, folder, progress)
    const postgres = await startPostgres()
    running.push(postgres)
    const port = await freePort()
    const args = [...programArgs, "ledger", "--port", String(port), "--close", "5s"]
    const ledger = startService(process.execPath, args, { cwd: root, log: join(folder, "ledger.log") })
    running.push(ledger)
    const rpc = rpcCall(`http://127.0.0.1:${port}`)
    await until("the ledger answers", async () => (await rpc("getHealth")).status === "healthy", ledger)
    const start = hostedLaunch(folder, `http://127.0.0.1:${port}`, postgres.url)
    const hosted = await measure("self-hosted", start, plan, folder, progress)
    progress.step("spans while idle")
    const spans = await spansWhileIdle(start, plan, folder)
    progress.step("an installation")
    const installed = installedBytes(folder, (said) => progress.say(said))
    progress.end()
    console.log(line("local", local))
    console.log(line("self-hosted", hosted))
    return verify(local, hosted, spans, installed)
  } finally {
    for (const one of running.toReversed()) await one.stop()
  }
}

export const bench = async (): Promise<boolean> => {
  const { quick } = parseArgs({
    args: process.argv.slice(3),
    options: { quick: { type: "boolean", default: false } }
  }).values
  const plan: Plan = quick
    ? { starts: 2, calmMillis: 4_000, idleSeconds: 10 }
    : { starts: 5, calmMillis: 20_000, idleSeconds: 60 }
  const progress = new Progress("start", 2 * (plan.starts + 2) + 2)
  const folder = mkdtempSync(join(tmpdir(), "tollkeeper-start-"))
  try {
    const bars = await measureAll(plan, folder, progress)
    const missed = bars.filter(({ holds }) => !holds).length
    const verdict = missed === 0 ? "every bar held" : `${missed} of ${bars.length} bars MISSED`
    console.log(`start: ${verdict}: ${bars.map(barLine).join("; ")}`)
    return missed === 0
  } finally {
    progress.end()
    rmSync(folder, { recursive: true, force: true })
  }
}
