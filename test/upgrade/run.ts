// `npm run upgrade -- --from REF`: an upgrade under load. The program at REF in git first serves over a PostgreSQL and
// a ledger. Then the program of this checkout starts over the same database, which it migrates, and both serve. The old
// one is stopped as an operator stops it, and the new one continues. Payments never pause. In the end every payment has
// settled once, the recipient has exactly that amount, and `tollkeeper audit` finds nothing. With `--crash` the old one
// is killed with its payments in flight before the new one starts, which migrates the database and ends them.
// `--payments N` for each of the parts, default 60. REF must be in this machine's git, and its packages are installed
// if they differ.
import { Keypair } from "@stellar/stellar-sdk"
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { parseArgs } from "node:util"
import { root } from "../../runtime/bootstrap.mjs"
import { type Program, startProgram } from "../conformance/programs.ts"
import { freePort } from "../support/freePort.ts"
import { usdcBalance } from "../../runtime/redteam/balances.ts"
import { makePayment } from "../../runtime/redteam/buyer.ts"
import { startPostgres } from "../support/postgres.ts"
import { postSettle } from "../support/rig/postSettle.ts"
import { overLedger, setting } from "../support/rig/settings.ts"
import { startLedger } from "../support/rig/startLedger.ts"
import { isReady, pause, until } from "../support/rig/until.ts"
import { askFriendbot } from "../../runtime/redteam/rpcCall.ts"

const { values } = parseArgs({
  options: {
    from: { type: "string" },
    payments: { type: "string", default: "60" },
    crash: { type: "boolean", default: false }
  }
})
if (values.from === undefined) throw new Error("say which version is upgraded: --from REF")
const each = Number(values.payments)
const price = 10_000n
const clients = 8
const waitMillisMax = 120_000
const folder = mkdtempSync(join(tmpdir(), "tollkeeper-upgrade-"))
const old = join(folder, "old")

execFileSync("git", ["worktree", "add", "--quiet", "--detach", old, values.from], { cwd: root })
const lockOf = (tree: string) => readFileSync(join(tree, "package-lock.json"), "utf8")
if (lockOf(old) === lockOf(root)) symlinkSync(join(root, "node_modules"), join(old, "node_modules"))
else execFileSync("npm", ["ci", "--loglevel=error"], { cwd: old, stdio: "ignore" })

const postgres = await startPostgres()
const { program: ledger, rpc, url: ledgerUrl } = await startLedger("1s")
const programs: Array<Program> = [ledger]
const run = (tree: string, ...args: ReadonlyArray<string>): Program => {
  const environment = { DATABASE_URL: postgres.url, SPONSOR_SECRET: sponsor.secret() }
  const program = startProgram(process.execPath, ["runtime/cli.ts", ...args], { cwd: tree, env: environment })
  programs.push(program)
  return program
}
const sponsor = Keypair.random()
const waited = (what: string, isSo: () => Promise<boolean>): Promise<void> =>
  until(what, isSo, waitMillisMax, () => programs.map((program) => program.tail()).join("\n"))

const settings = setting(
  "plugins=[x402-exact, catalog, search-lexical, analytics]",
  ...overLedger({ rpcUrl: ledgerUrl, ledgerUrl, channels: 12 })
)

const serve = async (tree: string, name: string) => {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const program = run(tree, "start", "--state", join(folder, name), "--port", String(port), ...settings)
  await waited(`${name} serves`, () => isReady(url))
  return { program, url }
}

const seller = Keypair.random()
const counts = new Map<string, number>()
const count = (what: string) => void counts.set(what, (counts.get(what) ?? 0) + 1)
let [targets, settled, next] = [[] as ReadonlyArray<string>, 0, 0]

/** One payment, sent to a serving program until its answer is final, as an official client repeats it. */
const pay = async (payer: Keypair): Promise<void> => {
  const id = `upgraded-payment-${String(next++).padStart(6, "0")}`
  const extensions = { "payment-identifier": { info: { required: true, id } } }
  const payTo = seller.publicKey()
  const { body } = await makePayment({ rpc, payer, payTo, amount: price, maxTimeoutSeconds: 300, extensions })
  for (let asks = 0; asks < 120; asks++) {
    const url = targets[(next + asks) % targets.length]!
    const answer = await postSettle(url, body, { timeoutMillis: 40_000 }).catch(() => ({ errorReason: "no answer" }))
    if (answer.success === true) return void (settled += 1)
    count(answer.errorReason)
    await pause(500)
  }
  throw new Error(`${id} has no end`)
}

let isLoadOn = true
const client = async (): Promise<void> => {
  const payer = Keypair.random()
  await askFriendbot(ledgerUrl, payer.publicKey(), 100)
  while (isLoadOn) await pay(payer)
}

/** Keeps the load running until `count` more payments have settled. */
const third = async (name: string): Promise<void> => {
  const from = settled
  await waited(`${each} payments ${name}`, async () => settled >= from + each)
  console.log(`${name.padEnd(34)} ${settled - from} payments settled`)
}

try {
  await askFriendbot(ledgerUrl, seller.publicKey(), 0)
  const before = await serve(old, "old")
  targets = [before.url]
  const load = Promise.all(Array.from({ length: clients }, client))
  load.catch(() => undefined)
  await third(`${values.from} alone`)
  if (values.crash) {
    await before.program.kill()
    console.log(`${values.from} killed with ${clients} payments in flight`)
  }
  const after = await serve(root, "new")
  if (!values.crash) {
    targets = [before.url, after.url]
    await third("both over one database")
  }
  targets = [after.url]
  if (!values.crash) await before.program.stop()
  await third("this checkout alone")
  isLoadOn = false
  await load
  const paid = await usdcBalance(rpc, seller.publicKey())
  const audit = run(root, "audit", "--state", join(folder, "new"))
  const isRight = paid === BigInt(settled) * price
  await waited("the audit finds nothing", async () => audit.tail().includes("audit:"))
  const found = audit.tail().trim().split("\n").at(-1) ?? ""
  console.log(`answers before the end: ${JSON.stringify(Object.fromEntries(counts))}`)
  console.log(`${settled} payments settled, the recipient has ${isRight ? "exactly" : "NOT"} that; ${found}`)
  if (!isRight || !/\b0 mismatches/.test(found)) process.exitCode = 1
} finally {
  for (const program of programs) await program.kill()
  await postgres.stop()
  execFileSync("git", ["worktree", "remove", "--force", old], { cwd: root })
  rmSync(folder, { recursive: true, force: true })
}
