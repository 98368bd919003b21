// Ten times as many payments as the capacity, for a minute, over HTTP: a ledger, a PostgreSQL and a facilitator as
// separate processes, and this one as the load. First the capacity of the channels is measured, with enough callers to
// keep them busy. Then payments come at ten times that rate, independent of earlier answers, from one key, while
// another key's five come in between. Refusals must be quick, goodput near the capacity, and the five settled.
import { Keypair } from "@stellar/stellar-sdk"
import { Agent, request } from "node:http"
import { readFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { type Program, startProgram } from "../conformance/programs.ts"
import { freePort } from "../support/freePort.ts"
import { makePayment } from "../support/buyer.ts"
import { startPostgres } from "../support/postgres.ts"
import { askFriendbot, rpcCall } from "../support/rpcCall.ts"

const overloadSeconds = Number(process.env["TOLLKEEPER_OVERLOAD_SECONDS"] ?? 60)
const capacitySeconds = 20
const channels = 20
const times = 10
const [p50Max, p99Max, goodputMin, calmPayments] = [50, 250, 0.9, 5]
const secret = (name: string): string => `0123456789abcdef-${name}`
const root = fileURLToPath(new URL("../..", import.meta.url))

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))
const until = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
  const end = performance.now() + 90_000
  while (!(await holds().catch(() => false))) {
    if (performance.now() > end) throw new Error(`${what}: not in time`)
    await pause(100)
  }
}

interface Answer {
  readonly status: number
  readonly success: boolean
  readonly reason: string
  readonly millis: number
}

/** A facilitator with its surroundings, and functions to pay at it. */
const startWorld = async (programs: Array<Program>, databaseUrl: string, state: string) => {
  const [ledgerPort, port] = [await freePort(), await freePort()]
  const ledgerUrl = `http://127.0.0.1:${ledgerPort}`
  const start = (args: ReadonlyArray<string>, env: Record<string, string>) =>
    programs.push(startProgram(process.execPath, ["runtime/cli.ts", ...args], { cwd: root, env }))
  start(["ledger", "--port", String(ledgerPort), "--close", "1s"], {})
  const rpc = rpcCall(ledgerUrl)
  await until("the ledger answers", async () => (await rpc("getHealth")).status === "healthy")
  const sponsorSecret = Keypair.random().secret()
  const testnet = "networks.ledger:testnet"
  const settings = [
    "plugins=[x402-exact]",
    `${testnet}.rpc_urls=["${ledgerUrl}"]`,
    `${testnet}.friendbot_url=${ledgerUrl}/friendbot`,
    `${testnet}.channel_count=${channels}`
  ].flatMap((setting) => ["--set", setting])
  const keys = ["flood", "calm"].map((name) => `${name}:${secret(name)}`).join()
  start(["start", "--state", state, "--port", String(port), ...settings], {
    DATABASE_URL: databaseUrl,
    SPONSOR_SECRET: sponsorSecret,
    FACILITATOR_API_KEYS: keys
  })
  const metrics = () => fetch(`http://127.0.0.1:${port}/metrics`).then((response) => response.text())
  await until("the channels are ready", async () => (await metrics()).includes(`tollkeeper_channels_ready ${channels}`))

  const payers = Array.from({ length: 10 }, () => Keypair.random())
  const seller = Keypair.random()
  for (const account of [...payers, seller]) await askFriendbot(ledgerUrl, account.publicKey(), 100)
  let ledger = (await rpc("getLatestLedger")).sequence as number
  const following = setInterval(() => {
    rpc("getLatestLedger").then(
      ({ sequence }) => (ledger = sequence),
      () => undefined
    )
  }, 500)
  const agent = new Agent({ keepAlive: true, maxSockets: 1_024 })
  let next = 0
  const pay = async (name: string): Promise<Answer> => {
    const { body } = await makePayment({
      payer: payers[next++ % payers.length]!,
      payTo: seller.publicKey(),
      amount: 1n,
      latestLedger: ledger,
      maxTimeoutSeconds: 60,
      secondsPerLedger: 1
    })
    return post(agent, port, name, JSON.stringify(body))
  }
  return { pay, stop: () => (clearInterval(following), agent.destroy()) }
}

/** One settle; its time starts when its last byte is passed to the socket. */
const post = (agent: Agent, port: number, name: string, body: string): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const from = performance.now()
    const headers = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      authorization: `Bearer ${secret(name)}`
    }
    const sent = request({ agent, host: "127.0.0.1", port, path: "/settle", method: "POST", headers }, (response) => {
      let text = ""
      response.setEncoding("utf8")
      response.on("data", (chunk: string) => (text += chunk))
      response.on("end", () => {
        const json = JSON.parse(text)
        const millis = performance.now() - from
        resolve({ status: response.statusCode!, success: json.success, reason: json.errorReason ?? "", millis })
      })
    })
    sent.on("error", reject)
    sent.end(body)
  })

/** Processor time that a process has used, in milliseconds; NaN if the system does not report it. */
const processorMillis = (pid: number): number => {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")
    return (Number(fields[11]) + Number(fields[12])) * 10
  } catch {
    return Number.NaN
  }
}

type Pay = (name: string) => Promise<Answer>

/** Settlements per second with twice as many callers as channels, each paying again after its answer. */
const measureCapacity = async (pay: Pay): Promise<number> => {
  const warm = performance.now() + 5_000
  const end = warm + capacitySeconds * 1_000
  let settled = 0
  const caller = async () => {
    while (performance.now() < end) {
      const { success } = await pay("flood")
      const now = performance.now()
      if (success && now > warm && now <= end) settled += 1
      if (!success) await pause(100)
    }
  }
  await Promise.all(Array.from({ length: 2 * channels }, caller))
  return settled / capacitySeconds
}

/** Payments at a rate, independent of earlier answers. */
const overload = async (pay: Pay, perSecond: number) => {
  const running: Array<Promise<Answer>> = []
  const calm: Array<Promise<Answer>> = []
  const from = performance.now()
  while (performance.now() - from < overloadSeconds * 1_000) {
    const elapsed = (performance.now() - from) / 1_000
    while (running.length < elapsed * perSecond) running.push(pay("flood"))
    while (calm.length < calmPayments && elapsed > ((calm.length + 1) * overloadSeconds) / (calmPayments + 2))
      calm.push(pay("calm"))
    await pause(5)
  }
  return { flood: await Promise.all(running), calm: await Promise.all(calm) }
}

const quantile = (sorted: ReadonlyArray<number>, q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN

export const bench = async (): Promise<boolean> => {
  const programs: Array<Program> = []
  const postgres = await startPostgres()
  const state = await mkdtemp(join(tmpdir(), "tollkeeper-overload-"))
  try {
    const world = await startWorld(programs, postgres.url, state)
    const capacity = await measureCapacity(world.pay)
    console.log(`capacity: ${capacity.toFixed(1)} settlements a second over ${channels} channels, a ledger of 1 s`)
    const facilitator = programs.at(-1)!.pid
    const before = processorMillis(facilitator)
    const { calm, flood } = await overload(world.pay, times * capacity)
    const processor = (processorMillis(facilitator) - before) / flood.length
    world.stop()
    const settled = [...flood, ...calm].filter(({ success }) => success).length
    const goodput = settled / overloadSeconds / capacity
    const refused = flood.filter(({ status }) => status === 503).map(({ millis }) => millis)
    const sorted = refused.toSorted((a, b) => a - b)
    const [p50, p99] = [quantile(sorted, 0.5), quantile(sorted, 0.99)]
    const others = flood.filter(({ status, success }) => !success && status !== 503)
    const calmSettled = calm.filter(({ success }) => success).length
    const offered = (flood.length / overloadSeconds).toFixed(0)
    console.log(
      `overload: ${offered} a second for ${overloadSeconds} s; ${settled} settled, ${refused.length} refused busy`
    )
    console.log(`  ${others.length} refused otherwise: ${[...new Set(others.map(({ reason }) => reason))].join(", ")}`)
    console.log(`  goodput ${goodput.toFixed(2)} of capacity (bar ${goodputMin})`)
    console.log(`  refusals p50 ${p50.toFixed(0)} ms (bar ${p50Max}), p99 ${p99.toFixed(0)} ms (bar ${p99Max})`)
    console.log(`  ${processor.toFixed(2)} ms of the facilitator's processor time for each payment, refused or not`)
    console.log(`  another key's payments: ${calmSettled} of ${calmPayments} settled`)
    return p50 <= p50Max && p99 <= p99Max && goodput >= goodputMin && calmSettled === calmPayments
  } finally {
    for (const program of programs.reverse()) await program.stop()
    await postgres.stop()
    await rm(state, { recursive: true, force: true })
  }
}
