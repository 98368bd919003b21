// `check-seller` against all of our sellers and against a seller with the faults that it detects; its exit code and
// JSON.
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawn, spawnSync } from "node:child_process"
import { createServer, type Server } from "node:http"
import { join } from "node:path"
import { startSeller } from "../../examples/seller-http.ts"
import { makeSell, toNode } from "../../examples/seller/sellRequest.mjs"
import { root } from "../../runtime/bootstrap.mjs"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { runCommand } from "../support/runCommand.ts"

const python =
  ["/usr/bin/python3", "python3"].find(
    (one) => spawnSync(one, ["-c", "import cryptography, sys; assert sys.version_info >= (3, 10)"]).status === 0
  ) ?? ""
const price = "10000"
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64")

const listen = (server: Server) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return `http://127.0.0.1:${(server.address() as { port: number }).port}/weather`
    }),
    () =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  )

const sellByPython = (facilitator: Facilitator, payTo: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const child = spawn(python, [join(root, "examples/python/sell.py")], {
        env: { ...process.env, PAY_TO: payTo, FACILITATOR_URL: facilitator.url, PYTHONDONTWRITEBYTECODE: "1" },
        stdio: ["ignore", "pipe", "inherit"]
      })
      const line: string = await new Promise((resolve) => child.stdout.once("data", (data) => resolve(String(data))))
      return { child, url: `${/http:\/\/[\d.:]+/.exec(line)![0]}/weather` }
    }),
    ({ child }) => Effect.sync(() => child.kill())
  )

/** It settles only the first time, does the work for each request, and opens any page for any payment. */
const careless = (terms: object) =>
  createServer((request, response) => {
    const header = request.headers["payment-signature"]
    const body = { x402Version: 2, accepts: [terms], resource: { url: request.url } }
    if (header === undefined) return void response.writeHead(402, { "payment-required": encode(body) }).end("{}")
    // An invalid payment header ends in its error handler.
    if (!/transaction/.test(Buffer.from(String(header), "base64").toString())) return void response.writeHead(500).end()
    const receipt = encode({ success: true, transaction: String(Math.random()), network: "stellar:testnet" })
    response.writeHead(200, { "payment-response": receipt }).end(String(Math.random()))
  })

const check = (facilitator: Facilitator, url: string) =>
  Effect.map(
    runCommand(["check-seller", url, "--json", "--facilitator", facilitator.url, "--ledger", facilitator.ledgerUrl]),
    ({ status, stderr, stdout }) => {
      if (stdout === "") throw new Error(stderr)
      return { code: status, checks: JSON.parse(stdout).checks as ReadonlyArray<any> }
    }
  )

it.live(
  "every seller of ours passes, and each fault of a careless one is named",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ closeMillis: 1_000 })
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const options = { facilitator: facilitator.url, payTo, asset: testnetUsdc, amount: price }
      const plain = yield* Effect.acquireRelease(
        Effect.promise(() => startSeller({ ...options, network: "stellar:testnet" })),
        (seller) => Effect.promise(() => seller.close())
      )
      const sell = makeSell(options)
      const fetched = yield* listen(createServer(toNode((request) => sell(request, () => ({ celsius: 17 })))))
      const sellers = [`${plain.url}/weather`, fetched]
      if (python !== "") sellers.push((yield* sellByPython(facilitator, payTo)).url)
      for (const url of sellers) {
        const { checks, code } = yield* check(facilitator, url)
        const wanting = checks.filter(({ result }) => result === "mend")
        assert.deepStrictEqual([url, wanting, code], [url, [], 0])
        const names = checks.filter(({ result }) => result === "ok").map(({ name }) => name)
        for (const name of ["payment", "same payment again", "five together", "lost answer", "price below its own"])
          assert.include(names, name, url)
      }
      // A price, and three payments of it, for each.
      assert.strictEqual(yield* facilitator.balance(payTo), BigInt(price) * 3n * BigInt(sellers.length))

      const terms = { scheme: "exact", network: "stellar:testnet", asset: testnetUsdc, amount: price, payTo }
      const bad = yield* listen(careless({ ...terms, maxTimeoutSeconds: 60, extra: {} }))
      const { checks, code } = yield* check(facilitator, bad)
      const wanting = checks.filter(({ result }) => result === "mend").map(({ name }) => name)
      const faults = [
        "hostile headers",
        "same payment again",
        "payment elsewhere",
        "five together",
        "price below its own"
      ]
      assert.deepStrictEqual([new Set(wanting), code], [new Set(faults), 1])
      // A recipient that cannot hold the asset is found before anything is paid.
      const unfunded = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"
      const unable = yield* listen(careless({ ...terms, payTo: unfunded, maxTimeoutSeconds: 60, extra: {} }))
      const found = (yield* check(facilitator, unable)).checks.find(({ name }) => name === "asset and recipient")
      assert.strictEqual(found?.result, "mend")
    }).pipe(Effect.scoped),
  480_000
)
