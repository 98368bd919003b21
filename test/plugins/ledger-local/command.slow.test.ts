// `tollkeeper ledger` as a user types it: the real program in its own process, called over its real ports.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import * as https from "node:https"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Asset, Keypair, Networks, Operation, rpc, TransactionBuilder } from "@stellar/stellar-sdk"
import { afterAll, describe, expect, it } from "vitest"
import { root } from "../../../runtime/bootstrap.mjs"
import { askFriendbot, rpcCall } from "../../../runtime/redteam/rpcCall.ts"

const folder = mkdtempSync(join(tmpdir(), "tollkeeper-ledger-"))
const running = new Set<() => Promise<unknown>>()
afterAll(async () => {
  for (const stop of running) await stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Runs `tollkeeper ledger` on a free port until it prints its addresses, or until it ends. */
const start = async (...args: ReadonlyArray<string>) => {
  const command = [join(root, "runtime", "cli.ts"), "ledger", "--port", "0", ...args]
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", ...command], {
    cwd: root,
    env: { ...process.env, NO_COLOR: "1" }
  })
  const ended = once(child, "exit").then(([status, signal]) => ({
    status: status as number | null,
    signal: signal as string | null
  }))
  let text = ""
  const receive = (chunk: string) => (text += chunk)
  child.stderr.setEncoding("utf8").on("data", receive)
  const greeted = new Promise<void>((resolve) => {
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => /\n {2}USDC/.test(receive(chunk)) && resolve())
  })
  const stop = (signal: "SIGTERM" | "SIGKILL" = "SIGTERM") => {
    running.delete(stop)
    child.kill(signal)
    return ended
  }
  running.add(stop)
  const end = await Promise.race([greeted, ended])
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0] ?? ""
  return { end: end ?? undefined, text, url, call: rpcCall(url === "" ? "http://127.0.0.1:9" : url), stop }
}

const close = (url: string, query = "", method = "POST") => fetch(`${url}/close${query}`, { method })

const latest = async (call: ReturnType<typeof rpcCall>): Promise<number> => (await call("getLatestLedger")).sequence

describe("tollkeeper ledger", () => {
  it("with manual closing, ledgers close only on POST /close", async () => {
    const { call, stop, url } = await start("--close", "manual")
    expect(await latest(call)).toBe(1_000)
    expect(await (await close(url)).json()).toEqual({ ledger: 1_001 })
    expect(await (await close(url, "?ledgers=20")).json()).toEqual({ ledger: 1_021 })
    expect(await latest(call)).toBe(1_021)
    for (const query of ["?ledgers=0", "?ledgers=1001", "?ledgers=x", "?ledgers=-1"])
      expect((await close(url, query)).status, query).toBe(400)
    expect((await close(url, "", "GET")).status).toBe(405)
    expect(await latest(call)).toBe(1_021)
    expect(await stop()).toEqual({ status: 0, signal: null })
  }, 240_000)

  it("closes ledgers by the clock and refuses POST /close", async () => {
    const { call, stop, url } = await start("--close", "100ms")
    const before = await latest(call)
    const started = performance.now()
    let now = before
    while (now < before + 5) now = await latest(call)
    const elapsed = performance.now() - started
    expect(elapsed).toBeGreaterThan(300)
    expect((await close(url)).status).toBe(404)
    await stop()
  }, 240_000)

  it("seeds four accounts with spendable printed keys, as in the README", async () => {
    const { call, stop, text, url } = await start("--close", "manual", "--seed-accounts")
    const accounts = [...text.matchAll(/^ {2}(\w+) +(G\w{55}) {2}(S\w{55})$/gm)].map(([, name, address, secret]) => ({
      name,
      address,
      secret: secret!
    }))
    expect(accounts.map(({ name }) => name)).toEqual(["buyer", "seller", "agent", "merchant"])
    const usdc = new Asset("USDC", "GBBD47IF6LWK7P7MDEVSCWR7DPUWV3NY3DTQEVFL4NAT4AQH3ZLLFLA5")
    expect(text).toContain(usdc.contractId(Networks.TESTNET))
    const [buyer, seller] = accounts.map(({ secret }) => Keypair.fromSecret(secret))
    const server = new rpc.Server(url, { allowHttp: true })
    const payment = Operation.payment({ destination: seller!.publicKey(), asset: usdc, amount: "2.5" })
    const tx = new TransactionBuilder(await server.getAccount(buyer!.publicKey()), {
      fee: "100",
      networkPassphrase: Networks.TESTNET
    })
      .addOperation(payment)
      .setTimeout(30)
      .build()
    tx.sign(buyer!)
    const { hash, status } = await server.sendTransaction(tx)
    expect(status).toBe("PENDING")
    await close(url)
    expect((await server.getTransaction(hash)).status).toBe("SUCCESS")
    const line = await server.getTrustline(seller!.publicKey(), usdc)
    expect(line.balance).toBe(10_002_5000000n)
    expect((await call("getNetwork")).friendbotUrl).toBe(`${url}/friendbot`)
    await stop()
  }, 240_000)

  it("injects several faults given on the command line", async () => {
    const { stop, url } = await start(
      "--close",
      "manual",
      "--fault",
      "rpc=getFeeStats:503",
      "--fault",
      "rpc-error=getVersionInfo:-32603",
      "--fault",
      "try-again"
    )
    const ask = (method: string, params = {}) =>
      fetch(url, { method: "POST", body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) })
    expect((await ask("getFeeStats")).status).toBe(503)
    expect(((await (await ask("getVersionInfo")).json()) as any).error.code).toBe(-32603)
    expect((await ask("getHealth")).status).toBe(200)
    const key = Keypair.random()
    await askFriendbot(url, key.publicKey())
    const server = new rpc.Server(url, { allowHttp: true })
    const tx = new TransactionBuilder(await server.getAccount(key.publicKey()), {
      fee: "100",
      networkPassphrase: Networks.TESTNET
    })
      .addOperation(Operation.bumpSequence({ bumpTo: "0" }))
      .setTimeout(30)
      .build()
    tx.sign(key)
    expect((await server.sendTransaction(tx)).status).toBe("TRY_AGAIN_LATER")
    await stop()
  }, 240_000)

  it("keeps its state in a folder through kill -9 and locks the folder", async () => {
    const state = join(folder, "kept")
    const first = await start("--close", "manual", "--state", state)
    const key = Keypair.random().publicKey()
    await askFriendbot(first.url, key, 3)
    const { id, sequence } = await first.call("getLatestLedger")
    const second = await start("--state", state)
    expect(second.end).toMatchObject({ status: 1 })
    expect(second.text).toMatch(/in use|held|locked|another process/)
    await first.stop("SIGKILL")
    const third = await start("--close", "manual", "--state", state)
    expect(await third.call("getLatestLedger")).toMatchObject({ id, sequence })
    const server = new rpc.Server(third.url, { allowHttp: true })
    expect((await server.getAccountEntry(key)).balance).toBe(10_000_0000000n)
    await third.stop()
  }, 240_000)

  it("serves HTTPS with a certificate that a client can trust", async () => {
    const state = join(folder, "secure")
    const { stop, text } = await start("--close", "manual", "--https", "0", "--state", state)
    const [, port, file] = /over HTTPS +https:\/\/127\.0\.0\.1:(\d+) +\(clients trust (.+)\)/.exec(text)!
    expect(file).toBe(join(state, "ledger-cert.pem"))
    const ask = (ca: string | undefined) =>
      new Promise<string>((resolve, reject) => {
        const options = {
          host: "127.0.0.1",
          port,
          servername: "localhost",
          method: "POST",
          path: "/rpc",
          ...(ca === undefined ? {} : { ca })
        }
        const request = https.request(options, (response) => {
          let body = ""
          response
            .setEncoding("utf8")
            .on("data", (chunk: string) => (body += chunk))
            .on("end", () => resolve(body))
        })
        request.on("error", reject)
        request.end(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "getNetwork" }))
      })
    expect(JSON.parse(await ask(readFileSync(file!, "utf8"))).result.passphrase).toBe(Networks.TESTNET)
    await expect(ask(undefined)).rejects.toThrow(/self.signed/)
    expect(existsSync(join(state, "ledger-key.pem"))).toBe(true)
    await stop()
  }, 240_000)

  it.each<readonly [string, ReadonlyArray<string>, RegExp]>([
    ["an interval that is none", ["--close", "soon"], /--close needs a time from 50ms to 60s/],
    ["an interval that would never rest", ["--close", "0s"], /--close needs a time from 50ms to 60s/],
    ["a time for contracts that is none", ["--contract-time", "0ms"], /--contract-time needs a time from 1ms to 60s/],
    ["a time for contracts of a seeded ledger", ["--contract-time", "1s", "--seed", "a"], /not with --close manual/],
    ["one of a ledger with a time", ["--contract-time", "1s", "--time", "2026-01-01T00:00:00Z"], /not with --close/],
    ["one of a ledger closed by hand", ["--contract-time", "1s", "--close", "manual"], /not with --close manual/],
    ["HTTPS without a folder", ["--https", "0"], /--https needs --state/],
    ["an unknown fault", ["--fault", "rain=1"], /no such fault; there are drop/]
  ])(
    "refuses %s in one sentence",
    async (_, args, sentence) => {
      const { end, text } = await start(...args)
      expect(end).toEqual({ status: 1, signal: null })
      expect(text).toMatch(sentence)
      expect(text).not.toContain("    at ")
    },
    240_000
  )
})
