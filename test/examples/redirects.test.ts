// Redirects to another origin: a seller or a facilitator that redirects never moves a signed payment or an API key
// there. The buyers in JavaScript, Python and bash, and the sellers' calls of a facilitator, at two servers.
import { expect, it } from "vitest"
import { execFile, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type IncomingHttpHeaders } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Keypair } from "@stellar/stellar-sdk"
import { makeClient } from "../../examples/client/client.mjs"
import { ask, encode, follow, requestOf, sendKept } from "../../examples/client/keptPayments.mjs"
import { pay } from "../../examples/client/prepared.mjs"
import { facilitatorAt } from "../../examples/seller/outcome.mjs"
import { root } from "../../runtime/bootstrap.mjs"

const python =
  ["/usr/bin/python3", "python3"].find(
    (one) => spawnSync(one, ["-c", "import cryptography, sys; assert sys.version_info >= (3, 10)"]).status === 0
  ) ?? ""
const hasCurl = ["bash", "curl", "openssl", "base32"].every((one) => spawnSync(one, ["--version"]).error === undefined)
const folder = join(root, "examples", "python")

interface Asked {
  readonly line: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}
type Answer = readonly [status: number, headers?: Record<string, string>, body?: string]

const serve = async (answer: (asked: Asked) => Answer) => {
  const asked: Array<Asked> = []
  const server = createServer((request, response) => {
    let body = ""
    request.on("data", (chunk) => (body += chunk))
    request.on("end", () => {
      const one = { line: `${request.method} ${request.url}`, headers: request.headers, body }
      asked.push(one)
      const [status, headers = {}, text = ""] = answer(one)
      response.writeHead(status, { ...headers, connection: "close" }).end(text)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`
  return { asked, url, [Symbol.asyncDispose]: async () => void server.close() }
}

/** An origin that redirects to another one: `/<status>/<page>` of the first is `/<page>` of the second. */
const serveBoth = async (answer: Answer = [200, {}, "{}"]) => {
  const second = await serve(() => answer)
  const first = await serve(({ line }) => {
    const [, status = "200", page = ""] = / \/(\d+)\/(.*)$/.exec(line) ?? []
    return status === "200" ? [200, {}, page] : [Number(status), { location: `${second.url}/${page}` }, "moved"]
  })
  const dispose = async () => void (await Promise.all([first, second].map((one) => one[Symbol.asyncDispose]())))
  return { first, second, [Symbol.asyncDispose]: dispose }
}

const payment = encode({ x402Version: 2, payload: { transaction: "signed" }, accepted: { scheme: "exact" } })
const terms = {
  scheme: "exact",
  network: "stellar:testnet",
  asset: "CBIELTK6YBZJU5UP2WWQEUCYKLPU6AUNZ2BQ4WWFEIE3USCIHMXQDAMA",
  amount: "100",
  payTo: "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H",
  maxTimeoutSeconds: 60,
  extra: {}
}
const required = { x402Version: 2, error: "payment required", accepts: [terms] }
const redirects = [301, 302, 303, 307, 308]
const own = { "x-api-key": "secret key", authorization: "Bearer secret key" }

/** What a server was sent of a payment, a key or a body. */
const secretsIn = (asked: ReadonlyArray<Asked>) =>
  asked.flatMap(({ body, headers }) => [
    ...["payment-signature", "authorization", "x-api-key"].filter((name) => headers[name] !== undefined),
    ...(body === "" ? [] : [body])
  ])

const run = (file: string, words: ReadonlyArray<string>, env: Record<string, string> = {}) =>
  new Promise<{ code: number; text: string }>((resolve) => {
    const settled = (error: any, stdout: string, stderr: string) =>
      resolve({ code: error === null ? 0 : error.code, text: stdout + stderr })
    execFile(file, [...words], { cwd: folder, env: { ...process.env, ...env } }, settled)
  })

const inPython = (code: string, words: ReadonlyArray<string>) => run(python, ["-c", code, ...words])

it("JavaScript's buyer sends no payment and no header to another origin", async () => {
  await using both = await serveBoth()
  for (const status of redirects) {
    const kept = { method: "GET", url: `${both.first.url}/${status}/page`, headers: own, payment }
    expect((await sendKept(kept)).response.status).toBe(200)
    await sendKept({ ...kept, method: "POST", body: Buffer.from("asked with").toString("base64") })
    await ask(requestOf(kept.url, { headers: own, body: "asked with" }))
  }
  // 301, 302 and 303 make a POST a GET; 307 and 308 would repeat its body, and are the answer.
  expect(both.second.asked.length).toBe(5 + 3 * 2)
  expect(secretsIn(both.second.asked)).toEqual([])
  expect(secretsIn(both.first.asked).length).toBe(5 * (3 + 4 + 3))
})

it("JavaScript's buyer pays at no origin that it was redirected to", async () => {
  await using both = await serveBoth([402, { "payment-required": encode(required) }])
  const options = { secret: Keypair.random().secret(), facilitator: both.second.url, apiKey: "secret key" }
  const answer = await pay(`${both.first.url}/302/page`, { ...options, maxAmount: 100n })
  expect([answer.response.status, await answer.response.text()]).toEqual([302, "moved"])
  expect(both.second.asked.map(({ line }) => line)).toEqual(["GET /page"])
  expect(
    (await sendKept({ method: "GET", url: `${both.first.url}/307/page`, headers: {}, payment })).response.status
  ).toBe(307)
})

it("JavaScript's buyer takes its payment along within an origin", async () => {
  await using seller = await serve(({ line }) =>
    line.endsWith("/moved") ? [200] : [308, { location: line.endsWith("/again") ? "/again" : "/moved" }]
  )
  const sent = { method: "POST", headers: { "payment-signature": payment }, body: "asked with" }
  expect((await follow(`${seller.url}/page`, sent)).status).toBe(200)
  expect(secretsIn(seller.asked)).toEqual(["payment-signature", "asked with", "payment-signature", "asked with"])
  expect((await follow(`${seller.url}/again`, sent)).status).toBe(308)
})

it("no key and no payment goes where a facilitator redirects", async () => {
  await using both = await serveBoth()
  for (const status of redirects) {
    const facilitator = `${both.first.url}/${status}`
    const client = facilitatorAt(facilitator, "secret key")
    await expect(client.verify({ payload: {} }, {})).rejects.toThrow(`${status}`)
    const made = makeClient({ url: facilitator, key: "secret key" })
    await expect(made.verify({ body: {} as any })).rejects.toThrow()
    const seller = await serve(() => [402, { "payment-required": encode(required) }])
    const options = { secret: Keypair.random().secret(), facilitator, apiKey: "secret key", maxAmount: 100n }
    await expect(pay(seller.url, options)).rejects.toThrow()
    await seller[Symbol.asyncDispose]()
  }
  expect(secretsIn(both.second.asked)).toEqual([])
  expect(secretsIn(both.first.asked)).toContain("authorization")
})

const asks = `
import sys
from tollkeeper_x402.wire import ask
url, payment = sys.argv[1:]
own = {"payment-signature": payment, "x-api-key": "secret key", "authorization": "Bearer secret key"}
print(ask(url, None, own).status, ask(url, b"asked with", own).status, ask(url, {"asked": 1}, own).status)
`
const sells = `
import sys
from tollkeeper_x402 import Seller, Work
from tollkeeper_x402.wire import decode
seller = Seller("G", "C", "100", facilitator=sys.argv[1], api_key="secret key", log=lambda line: print(line))
print(seller.handle("http://seller/page", sys.argv[2], lambda: Work({})).status)
`
const pays = `
import sys
from tollkeeper_x402 import Buyer
buyer = Buyer(sys.argv[2], 100, facilitator=sys.argv[3], api_key="secret key")
try:
    paid = buyer.pay(sys.argv[1])
    print(paid.status, paid.reason)
except RuntimeError as error:
    print(error)
`

it.runIf(python !== "")(
  "Python's buyer and seller send nothing of it to another origin",
  { timeout: 60_000 },
  async () => {
    await using both = await serveBoth()
    for (const status of redirects) {
      const isRepeated = status > 303
      const asked = await inPython(asks, [`${both.first.url}/${status}/page`, payment])
      expect(asked.text.trim()).toBe(isRepeated ? `200 ${status} ${status}` : "200 200 200")
    }
    const sold = await inPython(sells, [`${both.first.url}/307`, payment])
    expect(sold.text).toMatch(/not_a_facilitator[^]*\n502/)
    await using seller = await serve(() => [402, { "payment-required": encode(required) }])
    const secret = Keypair.random().secret()
    expect((await inPython(pays, [seller.url, secret, `${both.first.url}/307`])).text).toMatch("/prepare answers 307")
    expect(secretsIn(both.second.asked)).toEqual([])
    expect(secretsIn(both.first.asked)).toContain("authorization")
    await using elsewhere = await serveBoth([402, { "payment-required": encode(required) }])
    const refused = await inPython(pays, [`${elsewhere.first.url}/302/page`, secret, elsewhere.second.url])
    expect(refused.text.trim()).toBe(`302 redirects to ${elsewhere.second.url}/page`)
    expect(elsewhere.second.asked.map(({ line }) => line)).toEqual(["GET /page"])
  }
)

it.runIf(python !== "")("Python's buyer takes its payment along within an origin", async () => {
  await using seller = await serve(({ line }) => (line.endsWith("/moved") ? [200] : [308, { location: "/moved" }]))
  expect((await inPython(asks, [`${seller.url}/page`, payment])).text.trim()).toBe("200 200 200")
  expect(secretsIn(seller.asked).filter((name) => name === "payment-signature").length).toBe(6)
})

it.runIf(hasCurl)("bash's buyer follows no redirect, whatever curl's settings are", { timeout: 30_000 }, async () => {
  await using both = await serveBoth()
  const home = mkdtempSync(join(tmpdir(), "redirects-"))
  try {
    writeFileSync(join(home, ".curlrc"), "location\n")
    const key = join(home, "buyer.pem")
    spawnSync("openssl", ["genpkey", "-algorithm", "ed25519", "-out", key])
    const file = join(home, "kept.json")
    const kept = { method: "GET", url: `${both.first.url}/302/page`, headers: {}, payment, expires: 1 }
    writeFileSync(file, JSON.stringify(kept))
    const script = join(root, "examples", "curl", "pay.sh")
    const paid = await run("bash", [script, "--resume", file], { BUYER_KEY: key, HOME: home, PAYMENTS: home })
    expect(paid.text).toMatch("302 moved")
    expect(both.first.asked.length).toBe(1)
    expect(both.second.asked).toEqual([])
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})
