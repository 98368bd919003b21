// Ten times as many payments as the capacity, for a minute, over HTTP: a ledger, a PostgreSQL and a facilitator as
// separate processes, and this one as the load. First the capacity of the channels is measured, with enough callers to
// keep them busy. Then payments come at ten times that rate, independent of earlier answers, from one key, while
// another key's five come in between. Refusals must be quick, goodput near the capacity, and the five settled. Then
// fifty attackers of seven kinds run for as long, while that other key verifies and settles: its p95 of verify is at
// most twice the quiet one, each settle succeeds, and the facilitator's memory is bounded. The same attackers against a
// bare server show how much of that the attackers' own processor time takes.
import { Keypair } from "@stellar/stellar-sdk"
import { once } from "node:events"
import { Agent, request } from "node:http"
import { readFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { Worker } from "node:worker_threads"
import { type Program, startProgram } from "../conformance/programs.ts"
import { freePort } from "../support/freePort.ts"
import { makePayment } from "../../runtime/redteam/buyer.ts"
import { startPostgres } from "../support/postgres.ts"
import { askFriendbot, rpcCall } from "../../runtime/redteam/rpcCall.ts"

const overloadSeconds = Number(process.env["TOLLKEEPER_OVERLOAD_SECONDS"] ?? 60)
const capacitySeconds = 20
const channels = 20
const times = 10
const [p50Max, p99Max, goodputMin, calmPayments] = [50, 250, 0.9, 5]
const [slowerMax, rssMax, verifyPauseMillis, settleEvery, attackTurns] = [2, 768, 40, 20, 6]
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
    "plugins=[x402-exact, catalog, search-lexical, analytics, dashboard]",
    "server.host=127.0.0.1",
    // This load has more connections than one address may have.
    'server.trusted_proxies=["127.0.0.1"]',
    'server.allowed_hosts=["facilitator.example"]',
    `${testnet}.rpc_urls=["${ledgerUrl}"]`,
    `${testnet}.friendbot_url=${ledgerUrl}/friendbot`,
    `${testnet}.channel_count=${channels}`
  ].flatMap((setting) => ["--set", setting])
  const keys = ["flood", "calm"].map((name) => `${name}:${secret(name)}`).join()
  start(["start", "--state", state, "--port", String(port), ...settings], {
    DATABASE_URL: databaseUrl,
    SPONSOR_SECRET: sponsorSecret,
    FACILITATOR_API_KEYS: keys,
    OPERATOR_API_KEYS: `operator:${secret("operator")}`
  })
  const asked = { headers: { authorization: `Bearer ${secret("operator")}` } }
  const metrics = () => fetch(`http://127.0.0.1:${port}/metrics`, asked).then((response) => response.text())
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
  const send = async (name: string, path: "/settle" | "/verify"): Promise<Answer> => {
    const { body } = await makePayment({
      payer: payers[next++ % payers.length]!,
      payTo: seller.publicKey(),
      amount: 1n,
      latestLedger: ledger,
      maxTimeoutSeconds: 60,
      secondsPerLedger: 1
    })
    return post(agent, port, name, JSON.stringify(body), path)
  }
  const pay = (name: string) => send(name, "/settle")
  return {
    pay,
    port,
    verify: (name: string) => send(name, "/verify"),
    stop: () => (clearInterval(following), agent.destroy())
  }
}

/** One settle or verify; its time starts when its last byte is passed to the socket. */
const post = (agent: Agent, port: number, name: string, body: string, path: string): Promise<Answer> =>
  new Promise((resolve) => {
    const from = performance.now()
    const headers = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      authorization: `Bearer ${secret(name)}`
    }
    const sent = request({ agent, host: "127.0.0.1", port, path, method: "POST", headers }, (response) => {
      let text = ""
      response.setEncoding("utf8")
      response.on("data", (chunk: string) => (text += chunk))
      response.on("end", () => {
        const json = JSON.parse(text)
        const millis = performance.now() - from
        const success = json.success ?? json.isValid
        const reason = json.errorReason ?? json.invalidReason ?? ""
        resolve({ status: response.statusCode!, success, reason, millis })
      })
    })
    sent.on("error", ({ message }) =>
      resolve({ status: 0, success: false, reason: message, millis: performance.now() - from })
    )
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

/** Resident memory of a process, in megabytes; NaN if the system does not report it. */
const residentMegabytes = (pid: number): number => {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1_024
  } catch {
    return Number.NaN
  }
}

/** What honest requests met, in all turns with the same surroundings. */
const makeHonest = () => ({
  verified: [] as Array<Answer>,
  settled: [] as Array<Answer>,
  megabytes: 0,
  /** Processor time of the facilitator, and of the attackers with this load. */
  processor: 0,
  others: 0,
  millis: 0
})
type Honest = ReturnType<typeof makeHonest>

/** Honest verifies and settles of the other key, one after another, and the most memory while they ran. */
const measureHonest = async (
  into: Honest,
  { pay, verify }: { readonly pay: Pay; readonly verify: Pay },
  pid: number
): Promise<void> => {
  const settled: Array<Promise<Answer>> = []
  const [begun, processor, others] = [performance.now(), processorMillis(pid), process.cpuUsage()]
  while (performance.now() - begun < (overloadSeconds * 1_000) / attackTurns) {
    into.verified.push(await verify("calm"))
    if (into.verified.length % settleEvery === 1) settled.push(pay("calm"))
    into.megabytes = Math.max(into.megabytes, residentMegabytes(pid))
    await pause(verifyPauseMillis)
  }
  into.settled.push(...(await Promise.all(settled)))
  const { system, user } = process.cpuUsage(others)
  into.millis += performance.now() - begun
  into.processor += processorMillis(pid) - processor
  into.others += (system + user) / 1_000
}

const p95Of = ({ verified }: Honest): number =>
  quantile(
    verified
      .filter(({ success }) => success)
      .map(({ millis }) => millis)
      .toSorted((a, b) => a - b),
    0.95
  )

const attackers = new URL("attackers.ts", import.meta.url)

/**
 * The same honest payments in quiet, while the attackers attack a bare server, and while they attack the facilitator:
 * in turns, since other programs load the machine too.
 */
const underAttack = async (world: Awaited<ReturnType<typeof startWorld>>, pid: number): Promise<boolean> => {
  const bare = new Worker(attackers, { workerData: {} })
  const [barePort] = (await once(bare, "message")) as [number]
  const [quiet, peer, attacked] = [makeHonest(), makeHonest(), makeHonest()]
  const beside = async (port: number, into: Honest) => {
    const worker = new Worker(attackers, { workerData: { port, key: secret("flood") } })
    await measureHonest(into, world, pid)
    await worker.terminate()
  }
  for (let turn = 0; turn < attackTurns; turn++) {
    await measureHonest(quiet, world, pid)
    await beside(barePort, peer)
    await beside(world.port, attacked)
  }
  await bare.terminate()
  const [p95, p95Quiet, p95Peer] = [p95Of(attacked), p95Of(quiet), p95Of(peer)]
  const succeeded = (all: ReadonlyArray<Answer>) => all.filter(({ success }) => success).length / all.length
  const percent = (share: number) => `${(100 * share).toFixed(0)} %`
  const shares = (of: Honest) => `${percent(of.processor / of.millis)} and ${percent(of.others / of.millis)}`
  const refused = [...attacked.verified, ...attacked.settled].filter(({ success }) => !success)
  const reasons = [...new Set(refused.map(({ reason }) => reason))].join(", ") || "none"
  const isWhole = succeeded(attacked.verified) === 1 && succeeded(attacked.settled) === 1
  console.log(`50 attackers of seven kinds for ${overloadSeconds} s, in ${attackTurns} turns`)
  console.log(
    `  verify p95 ${p95.toFixed(0)} ms, quiet ${p95Quiet.toFixed(0)} ms: ` +
      `${(p95 / p95Quiet).toFixed(2)} times (bar ${slowerMax})`
  )
  console.log(
    `  ${p95Peer.toFixed(0)} ms while they attack a bare server: ${(p95 / p95Peer).toFixed(2)} times; ` +
      `processor of the facilitator and of the load: quiet ${shares(quiet)}, bare ${shares(peer)}, ` +
      `attacked ${shares(attacked)} of one core`
  )
  console.log(
    `  ${percent(succeeded(attacked.verified))} verified, ${percent(succeeded(attacked.settled))} settled (bar 100); ` +
      `refused: ${reasons}`
  )
  console.log(`  memory ${attacked.megabytes.toFixed(0)} MB, quiet ${quiet.megabytes.toFixed(0)} MB (bar ${rssMax})`)
  return p95 / p95Quiet <= slowerMax && isWhole && attacked.megabytes <= rssMax
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
    const isKept = await underAttack(world, facilitator)
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
    return p50 <= p50Max && p99 <= p99Max && goodput >= goodputMin && calmSettled === calmPayments && isKept
  } finally {
    for (const program of programs.reverse()) await program.stop()
    await postgres.stop()
    await rm(state, { recursive: true, force: true })
  }
}
