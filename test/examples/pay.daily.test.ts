// The output for a beginner when the ledger does not answer properly: a sentence with what to do, and no trace.
import { execFile } from "node:child_process"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import { root } from "../../runtime/bootstrap.mjs"
import { freePort } from "../support/freePort.ts"

/**
 * Becomes ready as a facilitator after `notReady` requests, and funds as a friendbot; the test determines its answers
 * as RPC.
 */
const payThrough = async (answer: (response: ServerResponse) => void, notReady = 0, readiness: unknown = {}) => {
  let asked = 0
  const server = createServer((request, response) => {
    request.resume()
    if (request.url === "/health/ready" && ++asked <= notReady) response.writeHead(503).end('{"status":"not_ready"}')
    else if (request.method === "POST") answer(response)
    else response.writeHead(200).end(JSON.stringify(request.url === "/health/ready" ? readiness : {}))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const env = { ...process.env, FACILITATOR_URL: url, LEDGER_URL: url, NO_COLOR: "1" }
  const reported = await promisify(execFile)(process.execPath, [join(root, "examples/pay.ts")], { env }).then(
    () => ({ status: 0, stderr: "" }),
    (error) => ({ status: Number(error.code), stderr: String(error.stderr) })
  )
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  return { ...reported, url }
}

it.each([
  ["a page", (response: ServerResponse) => response.end("<html>gateway</html>"), "is not Stellar RPC"],
  ["too many requests", (response: ServerResponse) => response.writeHead(429).end("slow down"), "429"],
  ["a cut connection", (response: ServerResponse) => response.destroy(), "fetch failed"]
])(
  "reports %s instead of RPC with the ledger's address",
  async (_, answer, why) => {
    const { status, stderr, url } = await payThrough(answer)
    expect(status).toBe(1)
    expect(stderr).toContain("pay: the buyer could not pay: ")
    expect(stderr).toContain(why)
    expect(stderr).toContain(`check that the ledger at ${url} answers, for instance with "tollkeeper doctor"`)
    expect(stderr).not.toMatch(/^\s+at /m)
  },
  120_000
)

it("waits for a facilitator that answers and is not ready yet", async () => {
  const { stderr } = await payThrough((response) => response.writeHead(429).end("slow down"), 3)
  expect(stderr).toContain("pay: the buyer could not pay: ")
}, 120_000)

it("names the full disk of the facilitator before anyone signs", async () => {
  const detail = "the disk is full: 9 MB free in /state, less than the reserve of 256 MB; free some space"
  const { status, stderr } = await payThrough((response) => response.destroy(), 0, {
    database: { state: "degraded", detail }
  })
  expect({ status, stderr: stderr.trim() }).toEqual({
    status: 1,
    stderr: `pay: the facilitator accepts no payment: ${detail}; then pay again`
  })
}, 120_000)

it("does not wait where no facilitator answers", async () => {
  const env = { ...process.env, FACILITATOR_URL: `http://127.0.0.1:${await freePort()}`, NO_COLOR: "1" }
  const pay = promisify(execFile)(process.execPath, [join(root, "examples/pay.ts")], { env, timeout: 50_000 })
  await expect(pay).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining("no facilitator answers") })
}, 60_000)
