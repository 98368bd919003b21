// Compares `kernel/README.md`'s lists of the files that one verify and one settle pass with a real payment: the program
// runs under the inspector's coverage, and every file of a list must have run within its request.
import { Keypair } from "@stellar/stellar-sdk"
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { root } from "../../runtime/bootstrap.mjs"
import { readText } from "../architecture/sources.ts"
import { freePort } from "../support/freePort.ts"
import { openInspector } from "../support/openInspector.ts"
import { makePayment } from "../../runtime/redteam/buyer.ts"
import { askFriendbot } from "../../runtime/redteam/rpcCall.ts"

const listOf = (title: string): ReadonlyArray<string> => {
  const section = readText("kernel/README.md").split(`**${title}**`)[1] ?? ""
  const lines = section.split("\n").slice(2)
  const end = lines.findIndex((line) => !/^\d+\. /.test(line))
  return lines.slice(0, end).map((line) => /`([^`]+)`/.exec(line)?.[1] ?? line)
}

const folder = mkdtempSync(join(tmpdir(), "tollkeeper-path-"))

interface Coverage {
  readonly result: ReadonlyArray<{
    readonly url: string
    readonly functions: ReadonlyArray<{ readonly ranges: ReadonlyArray<{ readonly count: number }> }>
  }>
}

/** The inspector of a running program, as far as coverage needs it. */
const inspect = async (url: string) => {
  const { ask, close } = await openInspector(url)
  await ask("Profiler.enable")
  await ask("Profiler.startPreciseCoverage", { callCount: true, detailed: false })
  /** Files of the project that ran since the last call. */
  const ran = async (): Promise<ReadonlySet<string>> => {
    const { result } = await ask<Coverage>("Profiler.takePreciseCoverage")
    const touched = result.filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
    return new Set(touched.flatMap(({ url }) => url.split(`${root}/`)[1] ?? []))
  }
  return { ran, close }
}

const start = async () => {
  const ledgerPort = await freePort()
  const ports = ["--port", "0", "--ledger-port", String(ledgerPort), "--ledger-https-port", "0"]
  const child = spawn(
    process.execPath,
    ["--inspect=127.0.0.1:0", join(root, "runtime", "cli.ts"), "start", "--state", folder, ...ports],
    { cwd: root, env: { ...process.env, DATABASE_URL: "" } }
  )
  let text = ""
  const [inspector, facilitator] = await new Promise<readonly [string, string]>((resolve, reject) => {
    const receive = (chunk: Buffer) => {
      text += chunk.toString()
      const [socket, url] = [/(ws:\S+)/, /facilitator\s+(http:\S+)/].map((pattern) => pattern.exec(text)?.[1])
      if (socket !== undefined && url !== undefined) resolve([socket, url])
    }
    child.stdout.on("data", receive)
    child.stderr.on("data", receive)
    child.once("exit", () => reject(new Error(text)))
  })
  return { child, facilitator, inspector, ledger: `http://127.0.0.1:${ledgerPort}` }
}

const onNode = !("Deno" in globalThis)

describe.skipIf(!onNode)("the path of a payment", () => {
  let world: Awaited<ReturnType<typeof start>>
  let coverage: Awaited<ReturnType<typeof inspect>>
  beforeAll(async () => {
    world = await start()
    coverage = await inspect(world.inspector)
  })
  afterAll(async () => {
    coverage.close()
    const ended = new Promise((resolve) => world.child.once("exit", resolve))
    world.child.kill("SIGKILL")
    await ended
    rmSync(folder, { recursive: true, force: true })
  })

  it.each([
    ["Verify", "/verify", "isValid", 19],
    ["Settle", "/settle", "success", 33]
  ] as const)("of one %s passes the files of its list, each once", async (title, path, word, most) => {
    const list = listOf(title)
    expect(list.length).toBeGreaterThan(most / 2)
    expect(list.length).toBeLessThanOrEqual(most)
    expect(new Set(list).size).toBe(list.length)
    expect(list.filter((file) => !existsSync(join(root, file)))).toEqual([])

    const [payer, seller] = [Keypair.random(), Keypair.random()]
    for (const pair of [payer, seller]) await askFriendbot(world.ledger, pair.publicKey(), 10)
    const send = async () => {
      const { body } = await makePayment({ rpc: world.ledger, payer, payTo: seller.publicKey(), amount: 1_000n })
      await coverage.ran()
      const response = await fetch(`${world.facilitator}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body)
      })
      return (await response.json()) as Readonly<Record<string, unknown>>
    }
    // Channels may still be opening, so rejected payments before the first accepted one do not count.
    let answer = await send()
    for (let attempt = 0; answer[word] !== true && attempt < 1_000; attempt++) answer = await send()
    expect(answer).toMatchObject({ [word]: true })
    const ran = await coverage.ran()
    expect(list.filter((file) => !ran.has(file))).toEqual([])
  })
})
