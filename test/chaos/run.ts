// `npm run chaos`: two facilitators, as separate processes, over one PostgreSQL and one ledger, each behind a bad
// proxy. Both are under load; replicas die without warning, the database restarts and fails over to a standby that
// lacks its last commits, the RPC is silent or lies. Afterwards every payment has an outcome, the recipients have
// exactly the settled amounts, `tollkeeper audit` finds nothing, and each open event stream has every fact. Half of the
// payments use the scheme `upto` and settle for a part of their maximum. Half of each scheme's are settled with an
// Idempotency-Key and have an identifier: their success is repeated to each retry. The others get their success once,
// and then `already_settled` with the hash; they get it again only if the process that gave it was killed, or a
// failover lost the record of it. The program counts how often each success was given, with the cause. Both sign
// receipts: each payment's verifies offline, each outcome has one leaf, and the audit compares the log too
// (`receipts.ts`); `--no-receipts` runs without. `--payments N --kills N --failovers N --seed S`, the first three at
// least.
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { isHarmlessAfterRestore } from "../support/harmlessAfterRestore.ts"
import { settlementWasm } from "../../plugins/x402-upto/contract.ts"
import { type Program, startProgram } from "../conformance/programs.ts"
import { freePort } from "../support/freePort.ts"
import { makeRandom } from "../simulation/random.ts"
import { usdcBalance } from "../../runtime/redteam/balances.ts"
import { makePayment } from "../../runtime/redteam/buyer.ts"
import { deployContract } from "../support/deployContract.ts"
import { canReplicate } from "../support/postgres.ts"
import { postSettle } from "../support/rig/postSettle.ts"
import { overLedger, setting } from "../support/rig/settings.ts"
import { startLedger } from "../support/rig/startLedger.ts"
import { isReady, pause, until } from "../support/rig/until.ts"
import { askFriendbot } from "../../runtime/redteam/rpcCall.ts"
import { makeUptoPayment } from "../support/uptoBuyer.ts"
import { type BadProxy, startBadProxy } from "./badProxy.ts"
import { Observer } from "./observers.ts"
import { checkReceipts, keepLog, LogWatcher, receiptSettings } from "./receipts.ts"
import { startServers } from "./servers.ts"

const { values } = parseArgs({
  options: {
    payments: { type: "string", default: "2000" },
    kills: { type: "string", default: "10" },
    restarts: { type: "string", default: "2" },
    failovers: { type: "string", default: "2" },
    seed: { type: "string", default: "1" },
    clients: { type: "string", default: "32" },
    receipts: { type: "boolean", default: true }
  },
  allowNegative: true
})
const withReceipts = values.receipts
const [paymentsMax, killsMin, restarts, clients] = [values.payments, values.kills, values.restarts, values.clients].map(
  Number
) as [number, number, number, number]
const failoversMin = canReplicate() ? Number(values.failovers) : 0
if (!canReplicate()) console.log("  no failover is played: there is no pg_basebackup on this machine")
const random = makeRandom(Number(values.seed))
const root = fileURLToPath(new URL("../..", import.meta.url))
const price = 10_000n
const channels = 40
const folder = await mkdtemp(join(tmpdir(), "tollkeeper-chaos-"))
const postgres = await startServers()
const { program: ledger, rpc, url: ledgerUrl } = await startLedger("1s")

const salt = Keypair.random().rawPublicKey()
const contract = await deployContract(ledgerUrl, Keypair.random(), settlementWasm(), salt)

const sponsor = Keypair.random()
const shopKey = "chaos-secret-0123456789"
const authorization = `Bearer ${shopKey}`
const environment = {
  DATABASE_URL: postgres.url,
  SPONSOR_SECRET: sponsor.secret(),
  RECEIPTS_SECRET: Keypair.random().secret(),
  FACILITATOR_API_KEYS: `shop:${shopKey}`
}

interface Slot {
  readonly name: string
  readonly url: string
  readonly proxy: BadProxy
  readonly args: ReadonlyArray<string>
  program: Program
  isUp: boolean
}

const settingsOf = (rpcUrl: string, rpcTimeoutMillis = 1_500) => [
  ...setting(
    `plugins=[x402-exact,x402-upto${withReceipts ? ",receipts" : ""}]`,
    `networks.ledger:testnet.upto_contract=${contract}`,
    ...overLedger({ rpcUrl, ledgerUrl, channels }),
    "limits.settle_timeout_ms=8000",
    `limits.rpc_timeout_ms=${rpcTimeoutMillis}`
  ),
  ...(withReceipts ? receiptSettings : [])
]

const startSlot = async (name: string): Promise<Slot> => {
  const proxy = await startBadProxy(
    ledgerUrl,
    { away: 0.02, lostAnswer: 0.02, errorThoughTaken: 0.03, tryAgain: 0.05, behind: 0.03 },
    random.chance
  )
  const port = await freePort()
  const args = [
    "runtime/cli.ts",
    "start",
    "--state",
    join(folder, name),
    "--port",
    String(port),
    ...settingsOf(proxy.url)
  ]
  return {
    name,
    url: `http://127.0.0.1:${port}`,
    proxy,
    args,
    program: startProgram(process.execPath, args, { cwd: root, env: environment }),
    isUp: true
  }
}
const slots = [await startSlot("one")]
await until("the first replica is ready", () => isReady(slots[0]!.url), 180_000)
slots.push(await startSlot("two"))
await until("the second replica is ready", () => isReady(slots[1]!.url), 180_000)

// Buyers and recipients. Nothing else moves their money.
const buyers = Array.from({ length: 40 }, () => Keypair.random())
const sellers = Array.from({ length: 4 }, () => Keypair.random())
for (const account of [...buyers, ...sellers]) await askFriendbot(ledgerUrl, account.publicKey(), 100)
const paidBefore = await Promise.all(sellers.map((seller) => usdcBalance(rpc, seller.publicKey())))

const counts = new Map<string, number>()
const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1)
const settled = new Map<string, bigint>()
let [asked, ended, isOver] = [0, 0, false]

interface PaymentKind {
  readonly scheme: "exact" | "upto"
  readonly kind: "with a key" | "without"
}

/** When a success was received, by `performance.now`, and from which replica. */
interface ReceivedSuccess {
  readonly slot: string
  readonly at: number
}

/** A payment with an outcome for its caller: the request, and the reported transaction. */
interface Paid extends PaymentKind {
  readonly body: unknown
  readonly given: Array<ReceivedSuccess>
  /** Requests that had no answer. */
  readonly unanswered: number
  readonly transaction: string
  /** The receipt in the answer; undefined if a retry was answered with only the hash. */
  readonly receipt: string | undefined
  /** When its caller began to ask and was answered, by `performance.now`. */
  readonly askedAt: number
  readonly answeredAt: number
}
const paidOnes: Array<Paid> = []

const settleAt = async (slot: Slot, body: any, kind: PaymentKind["kind"], given: Array<ReceivedSuccess>) => {
  const idempotencyKey = kind === "without" ? undefined : digestOf(JSON.stringify(body.paymentPayload))
  const answer = await postSettle(slot.url, body, { key: shopKey, timeoutMillis: 15_000, idempotencyKey })
  if (answer.success === true) given.push({ slot: slot.name, at: performance.now() })
  return answer
}
const digestOf = (text: string): string => createHash("sha256").update(text).digest("hex")

/** When replicas were killed. */
const deaths: Array<ReceivedSuccess> = []
/** Between an answer and its confirmation; the machine is busy. */
const confirmedWithinMillis = 10_000

/** Reported once more without an identifier, or for the first time when the previous answer was lost. */
const isAlreadySettled = ({ errorReason, transaction }: any): boolean =>
  errorReason === "settle_ledger_already_settled" && /^[0-9a-f]{64}$/.test(transaction)

/** An answer after which the caller asks again. */
const isTransient = ({ errorReason }: any): boolean =>
  [
    "settle_ledger_temporarily_unavailable",
    "settle_ledger_transaction_status_unknown",
    "ledger_unavailable",
    "internal_error"
  ].includes(errorReason)

/** A signed payment, and the amount to settle. */
const signed = async (number: number, { kind, scheme }: PaymentKind, seller: string) => {
  const id = `chaos-payment-${String(number).padStart(8, "0")}`
  const extensions = kind === "without" ? {} : { "payment-identifier": { info: { required: true, id } } }
  const common = { rpc, payer: random.pick(buyers), payTo: seller, maxTimeoutSeconds: 300, extensions }
  if (scheme === "exact") return { ...(await makePayment({ ...common, amount: price })), amount: price }
  const amount = BigInt(random.int(1, Number(price)))
  const facilitator = sponsor.publicKey()
  return { body: (await makeUptoPayment({ ...common, contract, facilitator, max: price })).settleBody(amount), amount }
}

/** One payment, sent to any replica repeatedly until its answer is final. */
const pay = async (number: number): Promise<void> => {
  const seller = random.pick(sellers).publicKey()
  const kind = number % 2 === 0 ? "with a key" : "without"
  const scheme = number % 4 < 2 ? "exact" : "upto"
  const { amount, body } = await signed(number, { kind, scheme }, seller)
  const askedAt = performance.now()
  const end = askedAt + 240_000
  const given: Array<ReceivedSuccess> = []
  let unanswered = 0
  while (performance.now() < end) {
    const ask = () => settleAt(random.pick(slots), body, kind, given)
    // Occasionally twice concurrently.
    const answers = await Promise.allSettled(random.chance(0.1) ? [ask(), ask()] : [ask()])
    const reported = answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []))
    unanswered += answers.length - reported.length
    if (reported.length < answers.length) count("no answer")
    const success = reported.find(
      (answer) => answer.success === true || (kind === "without" && isAlreadySettled(answer))
    )
    if (success !== undefined) {
      settled.set(seller, (settled.get(seller) ?? 0n) + amount)
      const receipt = success.extensions?.["tollkeeper-receipt"]?.info.receipt
      const { transaction } = success
      if (withReceipts && success.success === true && receipt === undefined) count("answered without a receipt")
      const answeredAt = performance.now()
      paidOnes.push({ scheme, kind, body, transaction, receipt, given, unanswered, askedAt, answeredAt })
      count("settled")
      return count(
        `settled ${scheme} ${kind}: ${success.success === true ? "success" : "already_settled with the hash"}`
      )
    }
    const final = reported.find((answer) => !isTransient(answer))
    if (final !== undefined) return count(`refused: ${final.errorReason}`)
    for (const { errorReason } of reported) count(`not yet: ${errorReason}`)
    await pause(random.int(200, 2_000))
  }
  count("never ended")
}

// The accidents, spread over the load.
let [kills, databaseRestarts, failovers] = [0, 0, 0]
/** On a fast machine the load would end before the accidents have: it continues until they have happened. */
const isEnough = (): boolean =>
  asked >= paymentsMax && kills >= killsMin && databaseRestarts >= Math.min(restarts, 1) && failovers >= failoversMin

/** What was recorded in these periods may be lost: from the end of replication until the standby is the primary. */
const losses: Array<{ readonly from: number; readonly to: number }> = []
/** An answer and its record may be this far apart, in either order. */
const lossSlackMillis = 3_000
const mayBeLost = ({ answeredAt, askedAt }: Paid): boolean =>
  losses.some(({ from, to }) => answeredAt > from - lossSlackMillis && askedAt < to + lossSlackMillis)

/** The published log, downloaded before the newest failover. */
let logCopy: string | undefined
const failOver = async (): Promise<void> => {
  let lostFrom = performance.now()
  await postgres.failOver(async (from) => {
    lostFrom = from
    const before = paidOnes.length
    await pause(random.int(1_500, 3_000))
    for (let n = before; n < paidOnes.length; n++) count("answered settled, and lost by a failover")
    // The log published so far; nothing later is compared.
    const place = join(folder, `log-${failovers}`)
    for (const { url } of withReceipts ? slots : []) logCopy = await keepLog(url, place).catch(() => logCopy)
  })
  losses.push({ from: lostFrom, to: performance.now() })
  failovers += 1
}

const client = async (): Promise<void> => {
  while (!isEnough() && asked < 10 * paymentsMax) {
    asked += 1
    await pay(asked)
    ended += 1
  }
}

const accidents = async (): Promise<void> => {
  let sinceRestart = 0
  while (!isOver) {
    await pause(random.int(3_000, 7_000))
    if (isOver) return
    const roll = random.next()
    // Spread over the load.
    const isDue = ended >= ((failovers + 1) * paymentsMax) / (failoversMin + 2)
    if (failovers < failoversMin && isDue) await failOver()
    else if (databaseRestarts < restarts && ++sinceRestart > 6) {
      sinceRestart = 0
      databaseRestarts += 1
      await postgres.restart!()
    } else if (roll < 0.3) random.pick(slots).proxy.blackhole(random.int(2_000, 6_000))
    else {
      const slot = random.pick(slots)
      // A busy machine may restart one more slowly than accidents come; the other one answers until then.
      const others = slots.filter((one) => one !== slot)
      if (!(await Promise.all(others.map((one) => isReady(one.url)))).includes(true)) continue
      kills += 1
      deaths.push({ slot: slot.name, at: performance.now() })
      await slot.program.kill()
      await pause(random.int(100, 3_000))
      slot.program = startProgram(process.execPath, [...slot.args], { cwd: root, env: environment })
    }
  }
}

const started = performance.now()
const observers = [new Observer(), new Observer(), new Observer()]
let isObserved = true
const observing = observers.map((observer) =>
  Effect.runPromise(
    observer.follow(
      () => random.pick(slots).url,
      { authorization },
      () => !isObserved
    )
  )
)
const watcher = new LogWatcher()
const watching = withReceipts
  ? watcher.follow(
      () => random.pick(slots).url,
      () => !isObserved
    )
  : Promise.resolve()
const storm = accidents()
const progress = setInterval(
  () =>
    console.log(
      `  ${ended} of ${paymentsMax} payments ended, ${kills} kills, ${databaseRestarts} restarts of the database, ` +
        `${failovers} failovers`
    ),
  15_000
)
let failure: string | undefined
try {
  await Promise.all(Array.from({ length: clients }, client))
  isOver = true
  await storm
} finally {
  isOver = true
  clearInterval(progress)
}
const seconds = (performance.now() - started) / 1_000

// Calm: the replicas come back, and open payments end.
for (const slot of slots)
  await until(`${slot.name} is ready`, () => isReady(slot.url), 120_000).catch(() =>
    count("a replica that did not come back")
  )
interface Report {
  readonly open: number
  readonly mismatches: ReadonlyArray<Readonly<Record<"rule" | "subject" | "detail", string>>>
}
/** Ledger, database and log; and the published log. */
const logFlags = (): ReadonlyArray<string> =>
  withReceipts ? ["--log", ...(logCopy === undefined ? [] : ["--log-copy", logCopy])] : []
const audit = async (): Promise<Report> => {
  const program = startProgram(
    process.execPath,
    ["runtime/cli.ts", "audit", ...settingsOf(ledgerUrl, 20_000), "--json", ...logFlags()],
    {
      cwd: root,
      env: environment
    }
  )
  return program.next((line) => line.mismatches !== undefined, 180_000).finally(() => program.stop())
}
let report = await audit()
for (let tries = 0; report.open > 0 && tries < 30; tries++) {
  await pause(3_000)
  report = await audit()
}
/** Each payment is settled once more without database faults; the answer must match the first. */
let unreadable = 0
const unread = new Set<string>()
const settleInTheEnd = async ({ body, given, kind }: Paid) => {
  // The RPC still fails occasionally, and an answer that a killed process was sending is pending until the process
  // counts as dead.
  for (let tries = 0; ; tries++) {
    const answer = await settleAt(random.pick(slots), body, kind, given)
    if (tries === 60 || !isTransient(answer)) return answer
    await pause(500)
  }
}
/** How often a success was given without a key, and why. */
const unjustified: Array<string> = []
const countGiven = (paid: Paid): void => {
  const { given, transaction, unanswered } = paid
  const blame = (what: string) => {
    unjustified.push(`${transaction}: ${what}`)
    return what
  }
  if (given.length === 0) {
    const why = unanswered > 0 ? "an answer was lost on its way" : blame("every request had an answer")
    return count(`given never: ${why}`)
  }
  if (given.length === 1) return count("given once")
  for (const { at, slot } of given.toSorted((a, b) => a.at - b.at).slice(0, -1)) {
    const isKilled = deaths.some(
      (one) => one.slot === slot && one.at > at - 1_000 && one.at < at + confirmedWithinMillis
    )
    const why = isKilled ? "its process was killed" : mayBeLost(paid) ? "a failover lost it" : blame("without a cause")
    count(`given once more: ${why}`)
  }
}
const askAgain = async (paid: Paid): Promise<void> => {
  const { kind, scheme, transaction } = paid
  let answer = await settleInTheEnd(paid)
  if (kind === "without" && answer.success === true && answer.transaction === transaction)
    answer = await settleInTheEnd(paid)
  if (kind === "without") countGiven(paid)
  const isRight = kind === "without" ? isAlreadySettled(answer) : answer.success === true
  if (isRight && answer.transaction === transaction) return count(`read again ${scheme} ${kind}`)
  unreadable += 1
  unread.add(
    `${scheme} ${kind}: ${answer.errorReason ?? "success"} ${answer.transaction} for ${transaction}, answered ` +
      `${Math.round(performance.now() - paid.answeredAt)} ms ago`
  )
}
const rest = [...paidOnes]
const reader = async (): Promise<void> => {
  for (let one = rest.shift(); one !== undefined; one = rest.shift()) await askAgain(one)
}
await Promise.all(Array.from({ length: 8 }, reader))
// By now payments that a failover lost are recorded again, since their callers have asked again.
report = await audit()
const isHarmless = ({ rule }: Report["mismatches"][number]) => failovers > 0 && isHarmlessAfterRestore(rule)
const [harmless, mismatches] = [
  report.mismatches.filter(isHarmless),
  report.mismatches.filter((mismatch) => !isHarmless(mismatch))
]
for (const { rule } of harmless) count(`harmless after a failover: ${rule}`)
for (const { detail, rule, subject } of harmless)
  if (rule === "published since") console.log(`  LOG ${subject}: ${detail}`)
const receiptsFrom = performance.now()
const receiptFaults = withReceipts
  ? await checkReceipts(
      paidOnes.map((paid) => ({ ...paid, mayBeLost: mayBeLost(paid) })),
      watcher,
      { urlOf: () => random.pick(slots).url, authorization, databaseUrl: postgres.url, count }
    )
  : []
const receiptSeconds = (performance.now() - receiptsFrom) / 1_000
if (withReceipts) counts.set("log watcher: checkpoints read", watcher.reads)
const transactions = paidOnes.map(({ transaction }) => transaction)
let missed: ReadonlyArray<string> = []
for (let tries = 0; tries < 30; tries++) {
  const journal = await postgres.journal()
  missed = observers.flatMap((observer, number) =>
    observer.faults(journal, transactions).map((violation) => `observer ${number} ${violation}`)
  )
  if (missed.length === 0) break
  await pause(1_000)
}
isObserved = false
await Promise.all([...observing, watching])
for (const { counts: seen } of observers)
  for (const [what, times] of Object.entries(seen))
    counts.set(`observers: ${what}`, times + (counts.get(`observers: ${what}`) ?? 0))
const paid = await Promise.all(
  sellers.map(async (seller, index) => (await usdcBalance(rpc, seller.publicKey())) - paidBefore[index]!)
)
const expected = sellers.map((seller) => settled.get(seller.publicKey()) ?? 0n)

for (const [what, times] of [...counts].sort()) console.log(`  ${what.padEnd(70)} ${times}`)
for (const { name, proxy } of slots)
  for (const [what, times] of proxy.counts) console.log(`  ${`RPC of ${name}: ${what}`.padEnd(70)} ${times}`)
for (const mismatch of mismatches.slice(0, 20)) console.log(`  MISMATCH ${JSON.stringify(mismatch)}`)
for (const violation of missed.slice(0, 20)) console.log(`  MISSED ${violation}`)
for (const one of unjustified.slice(0, 20)) console.log(`  GIVEN ${one}`)
for (const fault of receiptFaults.slice(0, 20)) console.log(`  RECEIPT ${fault}`)
if (paid.join() !== expected.join())
  failure = `recipients were paid ${paid.join()}, callers were answered ${expected.join()}`
if (unreadable > 0) failure = `${unreadable} payments could not be read again: ${[...unread].slice(0, 5).join("; ")}`
if ((counts.get("never ended") ?? 0) > 0) failure = "a payment never ended"
if (report.open > 0) failure = `${report.open} settlements are still open`
if (unjustified.length > 0) failure = `${unjustified.length} successes given never or twice, without a cause`
if (mismatches.length > 0) failure = `${mismatches.length} mismatches: ${JSON.stringify(mismatches[0])}`
if (missed.length > 0) failure = `${missed.length} facts that an event stream missed: ${missed[0]}`
if (receiptFaults.length > 0) failure = `${receiptFaults.length} faults of receipts or log: ${receiptFaults[0]}`
if (failovers < failoversMin) failure = `only ${failovers} failovers`
if (kills < killsMin) failure = `only ${kills} kills`
if (databaseRestarts < Math.min(restarts, 1)) failure = "the database was never restarted"

for (const { program, proxy } of slots) {
  await program.stop()
  await proxy.close()
}
await ledger.stop()
await postgres.stop()
await rm(folder, { recursive: true, force: true })
if (failure !== undefined) console.log(`FAILED: ${failure}`)
console.log(
  `${ended} payments over two replicas in ${seconds.toFixed(0)} s, ${kills} kills, ` +
    `${databaseRestarts} restarts and ${failovers} failovers of PostgreSQL: ${counts.get("settled") ?? 0} settled, ` +
    `${mismatches.length} mismatches, ${unreadable} not read again, ${missed.length} facts missed by ` +
    `${observers.length} observers` +
    (withReceipts ? `; receipts: ${receiptFaults.length} faults, verified in ${receiptSeconds.toFixed(1)} s` : "")
)
process.exit(failure === undefined ? 0 : 1)
