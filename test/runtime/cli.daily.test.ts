// The program as a user starts it: what it refuses before a port opens, what it says, and one whole payment through it.
import { Keypair } from "@stellar/stellar-sdk"
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, describe, expect, it } from "vitest"
import { parse } from "yaml"
import { root } from "../../runtime/bootstrap.mjs"
import { buy } from "../../examples/buyer.ts"
import { startSeller } from "../../examples/seller-http.ts"
import { freePort } from "../conformance/programs.ts"
import { testnetUsdc } from "../support/buyer.ts"
import { askFriendbot } from "../support/rpcCall.ts"

const folder = mkdtempSync(join(tmpdir(), "tollkeeper-cli-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const cli = join(root, "runtime", "cli.ts")

/** Runs a command to its end. */
const run = (...args: ReadonlyArray<string>) =>
  promisify(execFile)(process.execPath, [cli, ...args], { cwd: root, env: { ...process.env, NO_COLOR: "1" } }).then(
    ({ stderr, stdout }) => ({ status: 0, stdout, stderr }),
    (error) => ({ status: Number(error.code), stdout: String(error.stdout), stderr: String(error.stderr) })
  )

/** Starts a facilitator on free ports over a state folder, and waits for its greeting. */
const start = async (state: string, args: ReadonlyArray<string> = [], env: Record<string, string> = {}) => {
  const ledgerPort = await freePort()
  const ports = ["--port", "0", "--ledger-port", String(ledgerPort), "--ledger-https-port", "0"]
  const child = spawn(process.execPath, [cli, "start", "--state", state, ...ports, ...args], {
    cwd: root,
    env: { ...process.env, ...env }
  })
  let text = ""
  const url = await new Promise<string>((resolve, reject) => {
    const hear = (chunk: string) => {
      text += chunk
      const found = /facilitator\s+(http:\S+)/.exec(text)?.[1]
      if (found !== undefined) resolve(found)
    }
    child.stdout.setEncoding("utf8").on("data", hear)
    child.stderr.setEncoding("utf8").on("data", hear)
    child.once("exit", (status) => reject(new Error(`ended with ${status}\n${text}`)))
  })
  return {
    url,
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

const shipped = ["hosted", "local", "self-hosted"]

const profileOf = (name: string): any => parse(readFileSync(join(root, "runtime", "profiles", `${name}.yaml`), "utf8"))

describe("the shipped profiles", () => {
  it("are well-formed, and none enables pubnet [S29, S342]", async () => {
    await Promise.all(
      shipped.map(async (name) => {
        const { status, stdout } = await run("config", "check", "--profile", name)
        expect([name, status, stdout]).toEqual([name, 0, expect.stringContaining("every setting is well-formed")])
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
  it("lists the settings of the payment path under the names of the contract [S285, S299, S300, S301]", async () => {
    const settings = JSON.parse((await run("config", "schema")).stdout)
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

describe("tollkeeper start", () => {
  it.concurrent.each([
    [
      "pubnet, whatever else is set",
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
    expect(stderr).toMatch(new RegExp(`^tollkeeper: .*${word}.*\n$`))
  })

  it("serves a whole payment the moment it is ready, logs in lines of JSON, and ends with 0 when asked to [S4, S258]", async () => {
    const state = mkdtempSync(join(folder, "state-"))
    const facilitator = await start(state)
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
    expect(await facilitator.stop()).toBe(0)
    const lines = facilitator
      .text()
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line))
    expect(lines).toContainEqual(expect.objectContaining({ level: "INFO", message: "request" }))
    expect(facilitator.text()).not.toContain(buyer.secret())
    expect(facilitator.text()).not.toMatch(/\bS[A-Z2-7]{55}\b/)
  })

  it("reads the callers' keys from the variable that the profile names [S241]", async () => {
    const { stop, url } = await start(mkdtempSync(join(folder, "keys-")), ["--set", "api_keys_env=SHOP_KEYS"], {
      SHOP_KEYS: "shop:0123456789abcdef0123",
      FACILITATOR_API_KEYS: "shop:another-key-of-twenty"
    })
    const ask = async (key?: string) =>
      (
        await fetch(
          `${url.replace("0.0.0.0", "127.0.0.1")}/supported`,
          key === undefined ? {} : { headers: { authorization: `Bearer ${key}` } }
        )
      ).status
    expect([await ask(), await ask("another-key-of-twenty"), await ask("0123456789abcdef0123")]).toEqual([
      401, 401, 200
    ])
    expect(await stop()).toBe(0)
  })
})
