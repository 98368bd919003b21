// The program as a user starts it: its refusals before a port opens, its output, and one whole payment through it.
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { parse } from "yaml"
import { root } from "../../runtime/bootstrap.mjs"
import { claimState } from "../../runtime/state.ts"
import { buy } from "../../examples/buyer.ts"
import { startSeller } from "../../examples/seller-http.ts"
import { freePort } from "../support/freePort.ts"
import { fillLocalState } from "../support/migratedDumps.ts"
import { runCommand } from "../support/runCommand.ts"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { askFriendbot } from "../../runtime/redteam/rpcCall.ts"

// Each test here starts whole processes, some of them several, so the timeout is ten times the time on a quiet machine.
vi.setConfig({ testTimeout: 240_000 })

const folder = mkdtempSync(join(tmpdir(), "tollkeeper-cli-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const cli = join(root, "runtime", "cli.ts")

/** Runs a command as a process, to its end. */
const run = (...args: ReadonlyArray<string>) =>
  promisify(execFile)(process.execPath, [cli, ...args], { cwd: root, env: { ...process.env, NO_COLOR: "1" } }).then(
    ({ stderr, stdout }) => ({ status: 0, stdout, stderr }),
    (error) => ({ status: Number(error.code), stdout: String(error.stdout), stderr: String(error.stderr) })
  )

/** Runs a command in this process. */
const runHere = (...words: ReadonlyArray<string>) => Effect.runPromise(runCommand(words))

/** Starts a facilitator on free ports over a state folder, and waits for its startup banner. */
const start = async (state: string, args: ReadonlyArray<string> = [], env: Record<string, string> = {}) => {
  const ledgerPort = await freePort()
  const ports = ["--port", "0", "--ledger-port", String(ledgerPort), "--ledger-https-port", "0"]
  const child = spawn(process.execPath, [cli, "start", "--state", state, ...ports, ...args], {
    cwd: root,
    env: { ...process.env, ...env }
  })
  let text = ""
  const url = await new Promise<string>((resolve, reject) => {
    const receive = (chunk: string) => {
      text += chunk
      const found = /facilitator\s+(http:\S+)/.exec(text)?.[1]
      if (found !== undefined) resolve(found)
    }
    child.stdout.setEncoding("utf8").on("data", receive)
    child.stderr.setEncoding("utf8").on("data", receive)
    child.once("exit", (status) => reject(new Error(`ended with ${status}\n${text}`)))
  })
  return {
    url,
    pid: child.pid!,
    ledger: `http://127.0.0.1:${ledgerPort}`,
    text: () => text,
    /** Ends it as an operator would; its exit status. */
    stop: async (): Promise<number | null> => {
      const ended = once(child, "exit")
      process.kill(child.pid!, "SIGTERM")
      return (await ended)[0]
    }
  }
}

const claim = (state: string) => Effect.runPromise(claimState(state))

const shipped = ["hosted", "local", "self-hosted"]

const profileOf = (name: string): any => parse(readFileSync(join(root, "runtime", "profiles", `${name}.yaml`), "utf8"))

describe("the shipped profiles", () => {
  it("are well-formed, and none enables pubnet [S29, S342]", async () => {
    await Promise.all(
      shipped.map(async (name) => {
        const { stdout } = await runHere("config", "check", "--profile", name)
        expect([name, stdout]).toEqual([name, expect.stringContaining("every setting is well-formed")])
        expect(Object.keys(profileOf(name).networks)).toEqual(["ledger:testnet"])
      })
    )
  })

  it("hosted is the test network alone, and keyless [S27]", () => {
    const hosted = profileOf("hosted")
    expect(hosted.networks["ledger:testnet"].enabled).toBe(true)
    expect([hosted.api_keys_env, hosted.operator_keys_env]).toEqual([undefined, undefined])
  })
})

describe("tollkeeper config", () => {
  it("lists the payment path's settings under their specified names [S285, S299, S300, S301]", async () => {
    const settings = JSON.parse((await runHere("config", "schema")).stdout)
    expect(settings.api_keys_env.default).toBe("FACILITATOR_API_KEYS")
    expect(Object.keys(settings.limits.properties)).toEqual(
      expect.arrayContaining([
        "channel_lease_ms",
        "max_pending_settlements",
        "settle_poll_ms",
        "settle_timeout_ms",
        "max_sponsored_stroops_per_key_per_day",
        "max_global_sponsored_stroops_per_day"
      ])
    )
    const network = settings.networks.additionalProperties.properties
    expect(Object.keys(network)).toEqual(expect.arrayContaining(["development_auto_fund", "fee_ceilings_calibrated"]))
    for (const [section, { properties = {} }] of Object.entries<any>(settings)) {
      for (const [name, setting] of Object.entries(properties)) {
        expect(JSON.stringify(setting), `${section}.${name}`).toContain('"description":')
      }
    }
  })
})

describe("tollkeeper config check", () => {
  it("checks the profile's needs: an RPC, the sponsor's seed, every named variable", async () => {
    const bare = await runHere(
      "config",
      "check",
      "--profile",
      "self-hosted",
      "--json",
      "--set",
      "api_keys_env=SHOP_KEYS"
    )
    expect(bare.status).toBe(1)
    expect(JSON.parse(bare.stdout)).toMatchObject({
      missing: [
        expect.stringContaining("networks.ledger:testnet.rpc_urls: at least one RPC endpoint is required"),
        expect.stringMatching(/profile self-hosted names no database: set DATABASE_URL/),
        expect.stringMatching(/^api_keys_env: the variable SHOP_KEYS is not set; set it/)
      ],
      remarks: []
    })
    const embedded = ["--set", "database.embedded_folder=database"]
    const asked = await runHere("config", "check", "--profile", "self-hosted", "--json", ...embedded)
    expect(JSON.parse(asked.stdout)).toMatchObject({
      missing: [expect.stringContaining("rpc_urls")],
      remarks: [expect.stringContaining("DATABASE_URL is not set")]
    })
    const rpc = ["--set", 'networks.ledger:testnet.rpc_urls=["https://rpc.example"]']
    const seedless = await runHere("config", "check", "--profile", "self-hosted", ...rpc, ...embedded)
    expect([seedless.status, seedless.stderr]).toEqual([1, expect.stringMatching(/set SPONSOR_SECRET/)])
    expect((await runHere("config", "check")).status).toBe(0)
  })

  it("reports every unmet condition of pubnet, as a start would [S274, S277, S281, S282, S283]", async () => {
    const { status, stdout } = await runHere(
      ...["config", "check", "--profile", "self-hosted", "--json"],
      ...["--set", "networks.ledger:testnet.enabled=false", "--set", "networks.ledger:pubnet.enabled=true"],
      ...["--set", 'networks.ledger:pubnet.rpc_urls=["http://127.0.0.1:9"]', "--set", "plugins=[x402-exact, catalog]"],
      ...["--set", "catalog_security.require_https_origins=false", "--set", "discovery.include_unverified=true"]
    )
    expect(status).toBe(1)
    const { missing } = JSON.parse(stdout)
    for (const sentence of [
      /fee_ceilings_calibrated must be true/,
      /no caller has a key/,
      /set DATABASE_URL to a PostgreSQL server/,
      /upto_contract must name/,
      /require_https_origins must be true/,
      /include_unverified must be false/,
      /the sponsor's secret seed is not set/,
      /RPC endpoint 1 is unreachable/
    ])
      expect(missing).toContainEqual(expect.stringMatching(sentence))
  })
})

describe("a command line that cannot be understood", () => {
  it.each([
    [["strat"], "did you mean start"],
    [["start", "--prot", "1"], "did you mean --port"],
    [["config", "check", "--set", "servre.port=1"], "did you mean server"],
    [["config", "check", "--profile", "locl"], "did you mean --profile local"],
    [["start", "--port", "70000"], 'flag --port: "70000". Expected: a port from 1 to 65535, or 0 for a free one'],
    [["start", "--ledger-port", "65536"], "a port from 1 to 65535, or 0"],
    [["ledger", "--port", "70000"], "a port from 1 to 65535, or 0"],
    [["ledger", "--https", "65536"], "a port from 1 to 65535, or 0"]
  ])("%j is answered with one line that says what is meant or expected", async (args, words) => {
    const { status, stderr, stdout } = await (args[0] === "strat" ? run : runHere)(...args)
    expect([status, stdout]).toEqual([1, ""])
    expect(stderr).toMatch(/^tollkeeper: [^\n]+\n$/)
    expect(stderr).toContain(words)
    expect(stderr).not.toContain("Help requested")
  })

  it("prints defaults in its help and exits with 0", async () => {
    const { status, stderr, stdout } = await run("start", "--help")
    expect([status, stderr]).toEqual([0, ""])
    for (const word of ["default local", "default .tollkeeper", "default 4022", "default 8000", "default 443 above"])
      expect(stdout).toContain(word)
  })
})

/** The system's view of a process's arguments or environment, word by word; empty if the system shows none. */
const shown = (pid: number, what: "cmdline" | "environ"): ReadonlyArray<string> =>
  existsSync(`/proc/${pid}/${what}`) ? readFileSync(`/proc/${pid}/${what}`, "utf8").split("\0") : []

describe("tollkeeper start", () => {
  it.concurrent.each([
    [
      "pubnet, with any other setting",
      ["--set", "networks.ledger:pubnet.enabled=true", "--set", "networks.ledger:testnet.enabled=false"],
      "pubnet"
    ],
    ["an unknown plugin", ["--set", "plugins=[x402-exact, no-such-plugin]"], "no-such-plugin"],
    ["a misspelt setting", ["--set", "limits.settle_timeout=1"], "settle_timeout"]
  ])("refuses %s with one sentence, status 1 and no port", async (_, args, word) => {
    const ports = ["--port", "0", "--ledger-port", "0", "--ledger-https-port", "0"]
    const { status, stderr, stdout } = await run(
      "start",
      "--state",
      mkdtempSync(join(folder, "refused-")),
      ...ports,
      ...args
    )
    expect([status, stdout]).toEqual([1, expect.not.stringContaining("facilitator ")])
    // If its log is collected, the refusal is one of its lines.
    const lines = stderr
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
    expect(lines.at(-1)).toMatchObject({
      level: "ERROR",
      message: expect.stringMatching(new RegExp(`^tollkeeper: .*${word}`))
    })
  })

  it("refuses the image's default command without a database, and makes nothing", async () => {
    const image = readFileSync(join(root, "runtime", "deploy", "Dockerfile"), "utf8")
    const commands = [...image.matchAll(/^CMD (\[.*\])$/gm)].map(([, words]) => JSON.parse(words!) as Array<string>)
    expect(commands).toHaveLength(2)
    const state = join(folder, "container")
    const words = commands[0]!.map((word) => (word === "/var/lib/tollkeeper" ? state : word))
    expect(words).toContain(state)
    const { status, stderr } = await run(...words)
    expect([status, stderr]).toEqual([1, expect.stringMatching(/names no database: set DATABASE_URL/)])
    expect(stderr).toContain("database.embedded_folder")
    expect(existsSync(state)).toBe(false)
  })

  it("reads the named variable's keys, and a reset's act beside the folder [S241]", async () => {
    const state = mkdtempSync(join(folder, "reset-"))
    await claim(state)
    expect((await runHere("reset", "--state", state, "--yes", "--reason", "a new start")).stdout).toContain("deleted ")
    expect(existsSync(state)).toBe(false)
    const left = await runHere("acts", "--state", state, "--json")
    expect(JSON.parse(left.stdout)).toMatchObject({ action: "reset", reason: "a new start", outcome: "done" })
    await fillLocalState(state)
    const again = await start(state, ["--set", "api_keys_env=SHOP_KEYS"], {
      SHOP_KEYS: "shop:0123456789abcdef0123",
      FACILITATOR_API_KEYS: "shop:another-key-of-twenty"
    })
    const trail = await run("acts", "--state", state, "--json")
    expect(JSON.parse(trail.stdout)).toMatchObject({ action: "reset", reason: "a new start", outcome: "done" })
    expect(existsSync(`${state}.acts.jsonl`)).toBe(false)
    const ask = async (key?: string) =>
      (
        await fetch(
          `${again.url.replace("0.0.0.0", "127.0.0.1")}/supported`,
          key === undefined ? {} : { headers: { authorization: `Bearer ${key}` } }
        )
      ).status
    expect([await ask(), await ask("another-key-of-twenty"), await ask("0123456789abcdef0123")]).toEqual([
      401, 401, 200
    ])
    expect(await again.stop()).toBe(0)
  })
})

describe("a program that was started", () => {
  const state = mkdtempSync(join(folder, "state-"))
  let facilitator: Awaited<ReturnType<typeof start>>
  beforeAll(async () => {
    facilitator = await start(state)
  }, 240_000)

  it("reports which process holds the port or folder; `pay` uses that one", async () => {
    const { ledger, url } = facilitator
    const port = String(new URL(url).port)
    const ports = ["--ledger-port", "0", "--ledger-https-port", "0"]
    const unstarted = mkdtempSync(join(folder, "unstarted-"))
    const second = mkdtempSync(join(folder, "second-"))
    await fillLocalState(second)
    const elsewhere = ["--state", second]
    const refusals = await Promise.all([
      run("start", "--state", state, "--port", "0", ...ports),
      run(
        "start",
        ...elsewhere,
        "--port",
        "0",
        "--ledger-port",
        String(new URL(ledger).port),
        "--ledger-https-port",
        "0"
      ),
      runHere("reset", "--state", state, "--yes"),
      claim(unstarted).then(() => runHere("reset", "--state", unstarted))
    ])
    expect(refusals.map(({ status }) => status)).toEqual([1, 1, 1, 1])
    const [twin, taken, inUse, unasked] = refusals.map(({ stderr }) => stderr)
    expect(twin).toMatch(
      new RegExp(`already runs over .*process \\d+, http://127.0.0.1:${port}.*stop it .*--state DIR`)
    )
    expect(taken).toMatch(/is taken by another program; stop that one, or choose another with --ledger-port PORT/)
    expect(inUse).toMatch(/a Tollkeeper runs over .*stop it first/)
    expect(unasked).toMatch(/confirm with --yes/)
    const paid = await promisify(execFile)(process.execPath, [join(root, "examples/pay.ts"), "--state", state])
    expect(paid.stdout).toContain(`Facilitator  ${url}`)
    expect(paid.stdout).toContain("success on ledger:testnet")
  })

  it("serves a payment when ready, logs JSON lines, and exits with 0 [S4, S258]", async () => {
    const { ledger } = facilitator
    const [buyer, owner] = [Keypair.random(), Keypair.random()]
    for (const account of [buyer, owner]) await askFriendbot(ledger, account.publicKey(), 1)
    // At a first start the channels are still being opened: the first payment waits for them.
    const seller = await startSeller({
      facilitator: facilitator.url,
      payTo: owner.publicKey(),
      asset: testnetUsdc,
      amount: "10000"
    })
    const { receipt, response } = await buy(`${seller.url}/weather?city=Riga`, {
      secret: buyer.secret(),
      rpcUrl: ledger,
      maxAmount: 10_000n
    })
    await seller.close()
    expect([response.status, receipt?.success]).toEqual([200, true])
    // The same process has re-executed itself with the C library's settings, and without Node's compiler of types.
    if (process.platform === "linux" && !("Deno" in globalThis)) {
      expect(shown(facilitator.pid, "environ")).toEqual(expect.arrayContaining(["MALLOC_TRIM_THRESHOLD_=131072"]))
      expect(shown(facilitator.pid, "cmdline")).toContain(join(root, "runtime", "cli.mjs"))
    }
    expect(await facilitator.stop()).toBe(0)
    const lines = facilitator
      .text()
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line))
    expect(lines).toContainEqual(expect.objectContaining({ level: "INFO", message: "request" }))
    expect(facilitator.text()).not.toContain(buyer.secret())
    expect(facilitator.text()).not.toMatch(/\bS[A-Z2-7]{55}\b/)
    expect((await runHere("reset", "--state", state, "--yes")).stdout).toContain("deleted ")
    expect(existsSync(state)).toBe(false)
  })
})
