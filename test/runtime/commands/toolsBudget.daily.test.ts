// An operator's action on the holds of agents' payments while a tool server runs with the budget in its own file: it is
// executed within that process, which sees it immediately and stores it.
import { Keypair } from "@stellar/stellar-sdk"
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { promisify } from "node:util"
import { afterAll, expect, it } from "vitest"
import { encodeTable } from "../../../plugins/mcp-tools-pay/budget/ReservationWire.ts"
import { root } from "../../../runtime/bootstrap.mjs"
import { instancesOf } from "../../../runtime/state.ts"

const state = mkdtempSync(join(tmpdir(), "tollkeeper-tools-budget-"))
const cli = join(root, "runtime", "cli.ts")
const environment = { ...process.env, NO_COLOR: "1", TOOLS_PAYER_SECRET: Keypair.random().secret() }

const held = (id: string) => ({
  id,
  day: "2026-01-01",
  agent: "stdio",
  session: "one",
  invocation: id,
  network: "ledger:testnet",
  asset: "USDC",
  payTo: "SELLER",
  origin: undefined,
  grade: undefined,
  amount: 2_000n,
  state: "unknown" as const,
  createdAtMillis: 0,
  authorization: { payer: Keypair.random().publicKey(), nonce: 1n, expirationLedger: 100 },
  transaction: undefined
})

// No ledger answers, so only an operator decides.
const settings = [
  "plugins=[mcp-tools, mcp-tools-pay]",
  "signer.mode=env-secret",
  "budget.store=file",
  'networks.ledger:testnet.rpc_urls=["http://127.0.0.1:9"]'
].flatMap((set) => ["--set", set])

let child: ReturnType<typeof spawn> | undefined

const start = async () => {
  child = spawn(process.execPath, [cli, "tools", "--state", state, ...settings], { cwd: root, env: environment })
  let text = ""
  child.stderr!.setEncoding("utf8").on("data", (chunk: string) => void (text += chunk))
  for (let reads = 0; instancesOf(state).length === 0; reads++) {
    if (reads > 600 || child.exitCode !== null) throw new Error(`the tool server does not start:\n${text}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

const stop = async () => {
  if (child === undefined || child.exitCode !== null) return
  const ended = once(child, "exit")
  process.kill(child.pid!, "SIGTERM")
  await ended
}

afterAll(async () => {
  await stop()
  rmSync(state, { recursive: true, force: true })
})

const budget = (...words: ReadonlyArray<string>) =>
  promisify(execFile)(process.execPath, [cli, "tools-budget", ...words, "--state", state], {
    cwd: root,
    env: environment
  }).then(
    ({ stdout }) => stdout,
    (error) => String(error.stderr)
  )

const acts = async (): Promise<ReadonlyArray<Record<string, string>>> => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [cli, "acts", "--profile", "tools", "--state", state, "--json"],
    { cwd: root, env: environment }
  )
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
}

it("decides a hold within the running tool server, and keeps it afterwards [S104]", async () => {
  mkdirSync(join(state, "tools"))
  writeFileSync(join(state, "tools", "reservations.json"), encodeTable([held("pay_1"), held("pay_2"), held("pay_3")]))
  await start()
  expect(await budget("list")).toContain("3 held")
  const why = ["--reason", "the ledger shows nothing"]
  expect(await budget("resolve", "pay_1", "released")).toMatch(/--reason/)
  expect(await budget("resolve", "pay_1", "released", ...why)).toBe("pay_1 is released\n")
  expect(await budget("resolve", "pay_2", "spent", "--json", ...why)).toBe('{"id":"pay_2","outcome":"spent"}\n')
  expect(await budget("resolve", "pay_1", "spent", ...why)).toMatch(/pay_1 is not held/)
  // Each is in the trail of the tool server's folder.
  const trail = await acts()
  expect(trail.map(({ action, outcome, subject }) => [action, subject, outcome])).toEqual([
    ["resolve as spent", "pay_1", "pay_1 is not held, or it was not signed"],
    ["resolve as spent", "pay_2", "done"],
    ["resolve as released", "pay_1", "done"]
  ])
  expect(trail.every(({ person, reason }) => person !== "" && reason === why[1])).toBe(true)
  expect(await budget("list")).toMatch(/^pay_3 .*\n1 held\n$/)
  // It only accepts its own family of commands.
  expect(instancesOf(state)[0]?.operators?.families).toEqual(["tools-budget"])
  await stop()
  expect(await budget("list")).toMatch(/^pay_3 .*\n1 held\n$/)
}, 240_000)
