// What a beginner reads when the ledger does not answer as a ledger does: a sentence with what to do, and no trace.
import { execFile } from "node:child_process"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import { root } from "../../runtime/bootstrap.mjs"

/** Ready as a facilitator and generous as a friendbot; what it says as RPC is the test's. */
const payThrough = async (answer: (response: ServerResponse) => void) => {
  const server = createServer((request, response) => {
    request.resume()
    if (request.method === "POST") answer(response)
    else response.writeHead(200).end("{}")
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const env = { ...process.env, FACILITATOR_URL: url, LEDGER_URL: url, NO_COLOR: "1" }
  const told = await promisify(execFile)(process.execPath, [join(root, "examples/pay.ts")], { env }).then(
    () => ({ status: 0, stderr: "" }),
    (error) => ({ status: Number(error.code), stderr: String(error.stderr) })
  )
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  return { ...told, url }
}

it.each([
  ["a page", (response: ServerResponse) => response.end("<html>gateway</html>"), "is not Stellar RPC"],
  ["too many requests", (response: ServerResponse) => response.writeHead(429).end("slow down"), "429"],
  ["a cut connection", (response: ServerResponse) => response.destroy(), "fetch failed"]
])(
  "%s instead of RPC is told with the ledger's address",
  async (_, answer, why) => {
    const { status, stderr, url } = await payThrough(answer)
    expect(status).toBe(1)
    expect(stderr).toContain("pay: the buyer could not pay: ")
    expect(stderr).toContain(why)
    expect(stderr).toContain(`see whether the ledger at ${url} answers, "tollkeeper doctor" looks at it`)
    expect(stderr).not.toMatch(/^\s+at /m)
  },
  120_000
)
