// The agent tools under the official programs of MCP: the conformance suite in both revisions and the inspector in both
// eras, against `tollkeeper tools` with its shipped profile, on Node and on Deno. The suite runs without pauses, so the
// default rate limit has to suffice for a whole run. No origin is added to the allowed ones, so the server's own origin
// has to be allowed. Batches and cancellations follow, because the suite does not cover them.
import { existsSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { deepStrictEqual, ok, strictEqual } from "node:assert"
import { buy } from "../../examples/buyer.ts"
import { startSeller } from "../../examples/seller-http.ts"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { installSet } from "./officialSet.ts"
import { applicable, type Check, type Revision, runOfficial, runSuite, whyNot } from "./mcpSuite.ts"
import { startProgram } from "./programs.ts"
import { batchCases, cancelCases } from "./rpcCases.ts"
import { freePort } from "../support/freePort.ts"
import type { Part } from "./report.ts"
import { root, type World } from "./world.ts"

const toolNames = ["x402_search_resources", "x402_get_resource"]
const inspector = "inspector/clients/launcher/build/index.js"

export interface Runtime {
  readonly name: string
  readonly command: string
  /** Arguments before the program's own file. */
  readonly args: ReadonlyArray<string>
}

const denoFile = join(root, "test", "tools", "node_modules", "@deno", "linux-x64-glibc", "deno")
const ours: Runtime = { name: "this runtime", command: process.execPath, args: [] }

/** The available runtimes. */
export const runtimes: ReadonlyArray<Runtime> =
  "Deno" in globalThis || !existsSync(denoFile)
    ? [ours]
    : [
        { ...ours, name: "Node" },
        { name: "Deno", command: denoFile, args: ["run", "-A", "--no-prompt"] }
      ]

const words = (world: Pick<World, "facilitator">, state: string, settings: ReadonlyArray<string> = []) => [
  join(root, "runtime", "cli.ts"),
  "tools",
  ...["--state", state],
  ...["--set", `facilitator.base_url=${world.facilitator}`],
  ...settings.flatMap((setting) => ["--set", setting])
]

export interface ToolServer {
  /** Address of `/mcp`. */
  readonly url: string
  /** The command that serves over stdin and stdout. */
  readonly stdio: ReadonlyArray<string>
  readonly stop: () => Promise<void>
}

/** A tool server as a user starts it. */
export const startToolServer = async (
  world: Pick<World, "facilitator">,
  runtime: Runtime,
  settings: ReadonlyArray<string> = []
): Promise<ToolServer> => {
  const state = await mkdtemp(join(tmpdir(), "tollkeeper-mcp-"))
  const port = await freePort()
  const program = startProgram(
    runtime.command,
    [...runtime.args, ...words(world, state, [...settings, "transport=http"]), "--port", String(port)],
    { cwd: root }
  )
  const origin = `http://127.0.0.1:${port}`
  const until = performance.now() + 60_000
  while (
    !(await fetch(`${origin}/healthz`).then(
      ({ ok }) => ok,
      () => false
    ))
  ) {
    if (performance.now() > until) throw new Error(`the tool server was not ready\n${program.tail()}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return {
    url: `${origin}/mcp`,
    stdio: [runtime.command, ...runtime.args, ...words(world, state)],
    stop: async () => {
      await program.stop()
      await rm(state, { recursive: true, force: true })
    }
  }
}

/** The failures of a scenario, by check. */
const errorsOf = (checks: ReadonlyArray<Check>): ReadonlyArray<string> =>
  checks
    .filter(({ id, status }) => status !== "SUCCESS" && status !== "INFO" && whyNot(id) === undefined)
    // A run skips a part of an applicable scenario if an optional feature is not offered.
    .filter(({ status }) => status !== "SKIPPED")
    .map(({ errorMessage = "", id, status }) => `${id}: ${status} ${errorMessage}`)

/** One revision of the suite; every scenario is either required or excluded by name. */
export const suiteCases = async (url: string, revision: Revision, { check, figure }: Part): Promise<void> => {
  let scenarios: ReadonlyMap<string, ReadonlyArray<Check>> = new Map()
  await check(`the suite of ${revision} completes under the default rate limit`, async () => {
    scenarios = await runSuite(url, revision)
    const slowed = [...scenarios.values()].flat().filter(({ errorMessage }) => /429|too_many/.test(errorMessage ?? ""))
    deepStrictEqual(slowed, [])
  })
  for (const name of applicable[revision]) {
    await check(`${revision} ${name}`, () => {
      const checks = scenarios.get(name) ?? []
      deepStrictEqual(errorsOf(checks), [])
      ok(
        checks.some(({ status }) => status === "SUCCESS"),
        "nothing of it was checked"
      )
    })
  }
  const others = [...scenarios.keys()].filter((name) => !applicable[revision].includes(name))
  await check(`${revision} leaves out only what is named, with its reason`, () => {
    deepStrictEqual(
      others.filter((name) => whyNot(name) === undefined),
      []
    )
  })
  figure(`${revision} left out`, String(others.length))
}

/** The inspector lists and calls over `target`, in one era. */
const inspects = async (target: ReadonlyArray<string>, era: "legacy" | "modern", home: string): Promise<void> => {
  const ask = async (...args: ReadonlyArray<string>) => {
    const all = ["--cli", ...target, "--protocol-era", era, "--quiet", ...args]
    const { err, out, status } = await runOfficial(inspector, all, home)
    strictEqual(status, 0, err || out)
    return JSON.parse(out)
  }
  const { tools } = await ask("--method", "tools/list", "--strict")
  deepStrictEqual(
    tools.map(({ name }: { name: string }) => name),
    toolNames
  )
  const call = ["--method", "tools/call", "--tool-name", "x402_search_resources"]
  const found = await ask(...call, "--tool-arg", "limit=1")
  strictEqual(found.structuredContent.x402Version, 2)
  const [{ wrapper }] = found.structuredContent.resources
  const [line] = found.content[0].text.split("\n")
  ok(line.startsWith("1. ") && line.endsWith(`ref ${wrapper.ref}`))
}

/** The inspector prints a failed call's error and does not fail itself. */
const showsError = async (url: string, home: string): Promise<void> => {
  const args = ["--cli", url, "--quiet", "--method", "tools/call", "--tool-name", "x402_get_resource"]
  const { err, out } = await runOfficial(inspector, [...args, "--tool-arg", "ref=v1.none"], home)
  ok(`${out}${err}`.includes("INVALID_ARGUMENT"), `${out}${err}`)
}

/** Verifies the reason for the exclusions: the server only offers tools. */
const offersToolsAndContent = async (url: string): Promise<void> => {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "conformance", version: "1" } }
    })
  })
  const [, data = ""] = /^data: (.+)$/m.exec(await answer.text()) ?? []
  deepStrictEqual(Object.keys(JSON.parse(data).result.capabilities), ["tools", "resources"])
}

/** Milliseconds from the start of the process to its first answer over stdin and stdout; the best of three runs. */
const stdioMillis = async ([command = "", ...args]: ReadonlyArray<string>): Promise<number> => {
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "conformance", version: "1" } }
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 3; round++) {
    const startedAt = performance.now()
    const program = startProgram(command, args, { cwd: root })
    program.send({ jsonrpc: "2.0", id: 1, method: "initialize", params })
    await program.next(({ id }) => id === 1)
    best = Math.min(best, performance.now() - startedAt)
    await program.stop()
  }
  return best
}

/** Lists a resource for the searches: a listing begins with a payment. */
const listOne = async (world: World): Promise<void> => {
  const buyer = await world.account(1)
  const payTo = (await world.account(0)).publicKey()
  const seller = await startSeller({ facilitator: world.facilitator, payTo, asset: testnetUsdc, amount: "1000" })
  await buy(`${seller.url}/weather?city=Riga`, { secret: buyer.secret(), rpcUrl: world.ledger, maxAmount: 1_000n })
  await seller.close()
  const listed = async () =>
    ((await (await fetch(`${world.facilitator}/discovery/resources`)).json()) as { items: Array<unknown> }).items.length
  const until = performance.now() + 30_000
  while ((await listed()) === 0) {
    if (performance.now() > until) throw new Error("the catalog lists nothing")
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** Rate limit of the server for batches, in messages per second, so that one second shows their count. */
const callsPerSecond = 10

const ownCases = async (world: World, runtime: Runtime, part: Part): Promise<void> => {
  const slow = await startToolServer(world, runtime, [`http.calls_per_second=${callsPerSecond}`])
  await batchCases(slow.url, callsPerSecond, part).finally(slow.stop)
  await cancelCases((facilitator) => startToolServer({ facilitator }, runtime), part)
}

export const mcpCases = async (world: World, runtime: Runtime, part: Part): Promise<void> => {
  await listOne(world)
  const home = await mkdtemp(join(tmpdir(), "tollkeeper-inspector-"))
  const server = await startToolServer(world, runtime)
  try {
    for (const revision of ["2025-11-25", "2026-07-28"] as const) await suiteCases(server.url, revision, part)
    await part.check("the server offers tools and kept content, so other scenarios are excluded", () =>
      offersToolsAndContent(server.url)
    )
    for (const era of ["legacy", "modern"] as const) {
      await part.check(`the inspector lists and calls over HTTP, ${era}`, () => inspects([server.url], era, home))
      await part.check(`the inspector lists and calls over stdin and stdout, ${era}`, () =>
        inspects(server.stdio, era, home)
      )
    }
    await part.check("the inspector shows a tool's error unchanged", () => showsError(server.url, home))
    part.figure("stdio answers, ms", (await stdioMillis(server.stdio)).toFixed(0))
    await ownCases(world, runtime, part)
  } finally {
    await server.stop()
    await rm(home, { recursive: true, force: true })
  }
}

/** Prints the scenarios that do not apply, once. */
export const sayLeftOut = (say: (line: string) => void, leftOut: ReadonlyArray<readonly [string, string]>): void => {
  for (const [name, reason] of leftOut) say(`  left out  ${name.replace(/-$/, "-*").padEnd(46)} ${reason}`)
}

export const installMcp = (say: (line: string) => void): Promise<void> => installSet("mcp", say)
