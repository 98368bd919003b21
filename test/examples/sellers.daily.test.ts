// Every seller of the examples, in JavaScript and Python, against a real facilitator behind a failing connection. If a
// settle's answer gives no outcome, the result is pending, never a new 402. The same request with the same payment gets
// its page once the outcome is known. The payment buys nothing else, and each payment moves its price once.
import { Client as McpClient } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import process from "node:process"
import { signPayment } from "../../examples/buyer.ts"
import { startMcpSeller } from "../../examples/seller-mcp.ts"
import { startMeteredSeller } from "../../examples/seller-metered.ts"
import { startSeller } from "../../examples/seller-http.ts"
import { makeSell, toNode } from "../../examples/seller/sellRequest.mjs"
import { UptoStellarClient } from "../../examples/upto.ts"
import { root } from "../../runtime/bootstrap.mjs"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { answering, cutting, type Order, startWay, type Way } from "../support/facilitatorWay.ts"
import { type Facilitator, startFacilitator } from "../support/facilitator.ts"
import { freePort } from "../support/freePort.ts"

const python = ["/usr/bin/python3", "python3"].find((one) => spawnSync(one, ["-c", "import cryptography"]).status === 0)
if (python === undefined) console.log("left out: there is no python3 with the package cryptography here")
const hasFastapi = python !== undefined && spawnSync(python, ["-c", "import fastapi, uvicorn"]).status === 0
if (!hasFastapi) console.log("left out: there is no fastapi with uvicorn here")

interface Answer {
  readonly status: number
  readonly body: any
  readonly headers: Readonly<Record<string, string | undefined>>
}

/** One seller: its answer to a request, with a payment or without. */
interface Shop {
  readonly ask: (what: string, payment?: any) => Promise<Answer>
  readonly close: () => Promise<void>
}

interface ShopOptions {
  readonly facilitator: string
  readonly payTo: string
  readonly log?: (line: string) => void
  readonly apiKey?: string
}

const price = 1_000n
const common = { asset: testnetUsdc, amount: String(price), network: "stellar:testnet", maxTimeoutSeconds: 300 }
const patience = 300
/** Caches never store the results of tools. */
const uncached = { "cache-control": "no-store" }

const answerOf = async (response: Response): Promise<Answer> => {
  const text = await response.text()
  return {
    status: response.status,
    body: text === "" ? undefined : JSON.parse(text),
    headers: Object.fromEntries(response.headers)
  }
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64")

// The seller may close a kept connection before a busy machine has noticed, so each call has its own.
const get = (url: string, payment?: any) =>
  fetch(url, {
    headers: { connection: "close", ...(payment === undefined ? {} : { "payment-signature": encode(payment) }) }
  }).then(answerOf)

const shops: Record<string, (options: ShopOptions) => Promise<Shop>> = {
  "seller-http": async (options) => {
    const { close, url } = await startSeller({ ...common, ...options, patience })
    return { close, ask: (what, payment) => get(`${url}/weather?city=${what}`, payment) }
  },
  "seller-metered": async (options) => {
    const { close, url } = await startMeteredSeller({
      ...common,
      ...options,
      patience,
      max: price,
      perWord: price / 2n
    })
    // Both pages have two words, which cost the whole maximum.
    return { close, ask: (what, payment) => get(`${url}/story?words=2&as=${what}`, payment) }
  },
  "sellRequest with a body": async (options) => {
    const sell = makeSell({ ...common, ...options, patience })
    const server = createServer(toNode((request) => sell(request, async () => ({ asked: await request.json() }))))
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const url = `http://127.0.0.1:${(server.address() as { port: number }).port}/`
    return {
      close: () => new Promise((resolve) => void server.close(() => resolve())),
      ask: (what, payment) =>
        fetch(url, {
          method: "POST",
          body: JSON.stringify({ what }),
          headers: {
            "content-type": "application/json",
            connection: "close",
            ...(payment === undefined ? {} : { "payment-signature": encode(payment) })
          }
        }).then(answerOf)
    }
  },
  "seller-mcp": async (options) => {
    const { close, url } = await startMcpSeller({ ...common, ...options, patience })
    const client = new McpClient({ name: "buyer", version: "1.0.0" })
    await client.connect(new StreamableHTTPClientTransport(new URL(url)) as Transport)
    return {
      close: async () => {
        await client.close()
        await close()
      },
      ask: async (what, payment) => {
        const meta = payment === undefined ? {} : { _meta: { "x402/payment": payment } }
        const given: any = await client.callTool({ name: "forecast", arguments: { city: what }, ...meta })
        const { error, retryAfter } = given.structuredContent
        // An MCP result has no status, so it is derived from the body.
        const status =
          given.isError !== true
            ? 200
            : given.structuredContent.accepts !== undefined
              ? 402
              : retryAfter === undefined
                ? 409
                : /^facilitator_(unauthorized|broken_answer|not_a_facilitator)$/.test(error)
                  ? 502
                  : 503
        return {
          status,
          body: given.structuredContent,
          headers: { ...uncached, "retry-after": retryAfter && String(retryAfter) }
        }
      }
    }
  }
}

const startProgram = async (options: ShopOptions, more: Record<string, string>, words: ReadonlyArray<string>) => {
  const [program, ...args] = words
  const child = spawn(program!, args, {
    cwd: root,
    env: {
      ...process.env,
      ...{ PAY_TO: options.payTo, FACILITATOR_URL: options.facilitator, AMOUNT: String(price), MAX_TIMEOUT: "300" },
      ...{ NETWORK: "stellar:testnet", PATIENCE: String(patience / 1_000), PYTHONDONTWRITEBYTECODE: "1" },
      ...more
    },
    stdio: ["ignore", "pipe", "pipe"]
  })
  let errors = ""
  child.stderr.on("data", (data) => {
    errors += data
    for (const line of String(data).split("\n").filter(Boolean)) options.log?.(line)
  })
  const line: string = await new Promise((resolve, reject) => {
    child.stdout.once("data", (data) => resolve(String(data)))
    child.once("exit", (code) => reject(new Error(`the seller ended with ${code}: ${errors}`)))
  })
  return { child, url: /http:\/\/[\d.:]+/.exec(line)![0] }
}

const ended = (child: ChildProcess) =>
  new Promise<void>((resolve) =>
    child.exitCode !== null || child.signalCode !== null ? resolve() : child.once("exit", () => resolve())
  )

const pythonShop =
  (...words: ReadonlyArray<string>) =>
  async (options: ShopOptions): Promise<Shop> => {
    const { child, url } = await startProgram(options, {}, [python!, join(root, "examples/python/sell.py"), ...words])
    return {
      ask: (what, payment) => get(`${url}/weather?city=${what}`, payment),
      close: () => {
        child.kill()
        return ended(child)
      }
    }
  }
if (python !== undefined) shops["Python"] = pythonShop("--exact")
if (hasFastapi) shops["FastAPI"] = pythonShop("--fastapi")

const sign = async (facilitator: Facilitator, secret: string, asked: any): Promise<any> => {
  const [accepted] = asked.accepts
  const options = { secret, rpcUrl: facilitator.ledgerUrl, maxAmount: price, network: "stellar:testnet" }
  const payload =
    accepted.scheme === "upto"
      ? (await new UptoStellarClient(options).createPaymentPayload(2, accepted)).payload
      : { transaction: await signPayment(accepted, options) }
  return { x402Version: 2, payload, resource: asked.resource, accepted }
}

/** The faults of settles: whether they arrive, and the seller's answer. */
const settles: Record<string, Order> = {
  "401": answering(401, '{"error":"unauthorized"}'),
  "401 after it arrived": answering(401, '{"success":false,"errorReason":"unauthorized"}', true),
  "429": answering(429, '{"success":false,"errorReason":"rate_limited"}', true, { "retry-after": "1" }),
  "500": answering(500, "Internal Server Error", true),
  "an empty object": answering(200, "{}", true),
  "a page": answering(200, "<html>", true),
  "no word for the end": answering(200, '{"success":false,"errorReason":"oops"}', true),
  "a cut answer": cutting(true),
  "a cut request": cutting(false)
}

/** Asks again while the outcome is unknown, as the answer requests. */
const untilKnown = async (ask: () => Promise<Answer>): Promise<Answer> => {
  for (;;) {
    const answer = await ask()
    if (answer.status !== 503) return answer
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

const acquire = <A>(make: () => Promise<A>, end: (made: A) => Promise<void>) =>
  Effect.acquireRelease(Effect.promise(make), (made) => Effect.promise(() => end(made)))

/** Each fault of a settle in turn, at one seller. */
const playSettles = Effect.fnUntraced(function* (
  facilitator: Facilitator,
  start: (options: ShopOptions) => Promise<Shop>
) {
  const way = yield* acquire(
    () => startWay(facilitator.url),
    ({ close }) => close()
  )
  const payTo = (yield* facilitator.account(0n)).publicKey()
  const shop = yield* acquire(
    () => start({ facilitator: way.url, payTo, log: () => {} }),
    ({ close }) => close()
  )
  const buyer = yield* facilitator.account()
  const play = async (order: Order) => {
    const asked = await shop.ask("Riga")
    const payment = await sign(facilitator, buyer.secret(), asked.body)
    way.order("settle", order)
    const pending = await shop.ask("Riga", payment)
    way.order("settle")
    const other = await shop.ask("Oslo", payment)
    const page = await untilKnown(() => shop.ask("Riga", payment))
    const again = await shop.ask("Riga", payment)
    const keys = way.keys.get(payment.payload.transaction) ?? []
    return {
      pending: [pending.status, Number(pending.headers["retry-after"]) > 0, pending.headers["payment-required"]],
      isNamed: /^[0-9a-f]{64}$/.test(pending.body.payment?.id),
      statuses: [other, page, again].map(({ status }) => status),
      isSame: JSON.stringify(page.body) === JSON.stringify(again.body),
      // A shared cache would give the page to others, or these terms to the payer.
      mayCache: [asked, pending, page].some(({ headers }) => !headers["cache-control"]?.includes("no-store")),
      // One sale has one key, and it was used for more than one request.
      keys: [new Set(keys).size, keys.length > 1, /^[0-9a-f]{64}$/.test(String(keys[0]))]
    }
  }
  for (const [name, order] of Object.entries(settles))
    expect([name, yield* Effect.promise(() => play(order))]).toEqual([
      name,
      {
        pending: [503, true, undefined],
        isNamed: true,
        statuses: [409, 200, 200],
        isSame: true,
        mayCache: false,
        keys: [1, true, true]
      }
    ])
  expect(yield* facilitator.balance(payTo)).toBe(price * BigInt(Object.keys(settles).length))
})

it.live(
  "a settle without a known end is pending at every seller",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ closeMillis: 500 })
      yield* Effect.forEach(
        Object.entries(shops),
        ([name, start]) =>
          playSettles(facilitator, start).pipe(Effect.mapError((error) => new Error(name, { cause: error }))),
        { concurrency: 3, discard: true }
      )
    }).pipe(Effect.scoped),
  600_000
)

/** Buyers at the same time at one seller, each with one payment that it repeats until its outcome is known. */
const playCrowd = Effect.fnUntraced(function* (
  facilitator: Facilitator,
  start: (options: ShopOptions) => Promise<Shop>
) {
  const payTo = (yield* facilitator.account(0n)).publicKey()
  const shop = yield* acquire(
    () => start({ facilitator: facilitator.url, payTo, log: () => {} }),
    ({ close }) => close()
  )
  const buyers = yield* Effect.forEach(["Riga", "Oslo", "Bonn", "Lima"], (city) =>
    Effect.map(facilitator.account(), (keypair) => ({ city, secret: keypair.secret() }))
  )
  const pages = yield* Effect.forEach(
    buyers,
    ({ city, secret }) =>
      Effect.promise(async () => {
        const payment = await sign(facilitator, secret, (await shop.ask(city)).body)
        return (await untilKnown(() => shop.ask(city, payment))).status
      }),
    { concurrency: "unbounded" }
  )
  return { pages, moved: yield* facilitator.balance(payTo) }
})

it.live(
  "one settle a second costs no seller a page or a second payment",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ closeMillis: 500, set: ["limits.settle_per_second=1"] })
      for (const [name, start] of Object.entries(shops)) {
        const crowd = yield* playCrowd(facilitator, start)
        expect([name, crowd]).toEqual([name, { pages: [200, 200, 200, 200], moved: 4n * price }])
      }
      const { text } = yield* facilitator.ask("/metrics")
      expect(text).toMatch(/tollkeeper_http_requests_total\{[^}]*route="\/settle"[^}]*status="429"/)
    }).pipe(Effect.scoped),
  600_000
)

const verifies: ReadonlyArray<readonly [Order, number, string]> = [
  [answering(401, '{"isValid":false,"invalidReason":"unauthorized"}'), 502, "unauthorized"],
  [answering(429, '{"isValid":false,"invalidReason":"rate_limited"}'), 503, "rate_limited"],
  [answering(503, '{"isValid":false,"invalidReason":"ledger_unavailable"}'), 503, "busy"],
  [answering(500, "Internal Server Error"), 502, "broken_answer"],
  [answering(200, "{}"), 502, "broken_answer"],
  [cutting(false), 503, "no_answer"]
]

it.live(
  "a verify without a verdict is the facilitator's fault, logged once",
  () =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ closeMillis: 500 })
      const way: Way = yield* acquire(
        () => startWay(facilitator.url),
        ({ close }) => close()
      )
      for (const [name, start] of Object.entries(shops)) {
        way.order("verify")
        const lines: Array<string> = []
        const payTo = (yield* facilitator.account(0n)).publicKey()
        const log = (line: string) => void lines.push(line)
        const shop = yield* acquire(
          () => start({ facilitator: way.url, payTo, log }),
          ({ close }) => close()
        )
        const buyer = yield* facilitator.account()
        const payment = yield* Effect.promise(async () =>
          sign(facilitator, buyer.secret(), (await shop.ask("Riga")).body)
        )
        for (const [order, status, cause] of verifies) {
          way.order("verify", order)
          const answers = yield* Effect.promise(async () => [
            await shop.ask("Riga", payment),
            await shop.ask("Riga", payment)
          ])
          for (const { body, headers, status: given } of answers) {
            expect([name, cause, given, body.error]).toEqual([name, cause, status, `facilitator_${cause}`])
            expect([name, cause, headers["payment-required"]]).toEqual([name, cause, undefined])
          }
        }
        const causes = [...new Set(verifies.map(([, , cause]) => cause))]
        for (const cause of causes)
          expect([name, cause, lines.filter((line) => line.includes(`verify: ${cause} `)).length]).toEqual([
            name,
            cause,
            1
          ])
        // This used nothing up.
        way.order("verify")
        expect([name, (yield* Effect.promise(() => shop.ask("Riga", payment))).status]).toEqual([name, 200])
      }
    }).pipe(Effect.scoped),
  600_000
)

it.live(
  "any payment header is answered, with a 402 where it has no payment",
  () =>
    Effect.gen(function* () {
      const payTo = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"
      const deep = `${"[".repeat(6_000)}${"]".repeat(6_000)}`
      const texts = ["", "null", "5", '"x"', "[]", "{}", '{"payload":null}', '{"payload":[]}', '{"payload":"x"}', deep]
      const nested = `{"payload":{"a":${"[".repeat(4_000)}${"]".repeat(4_000)}}}`
      texts.push('{"payload":{},"accepted":null}', '{"payload":{},"accepted":5}')
      const headers = [...[...texts, nested].map((text) => Buffer.from(text).toString("base64")), "%%%", "é", "////"]
      // No server listens there, so a request to the facilitator is answered with 503.
      const facilitator = `http://127.0.0.1:${yield* Effect.promise(freePort)}`
      for (const name of ["seller-http", "sellRequest with a body", "Python", "FastAPI"]) {
        const start = shops[name]
        if (start === undefined) continue
        const shop = yield* acquire(
          () => start({ facilitator, payTo, log: () => {} }),
          ({ close }) => close()
        )
        const { url } = (yield* Effect.promise(() => shop.ask("Riga"))).body.resource
        for (const header of headers) {
          const { status } = yield* Effect.promise(() =>
            fetch(url, {
              ...(name.includes("body") ? { method: "POST", body: "{}" } : {}),
              headers: { "payment-signature": header }
            })
          )
          expect([name, header.slice(0, 40), status === 402 || status === 503], String(status)).toEqual([
            name,
            header.slice(0, 40),
            true
          ])
        }
      }
    }).pipe(Effect.scoped),
  240_000
)

/** Sellers as separate processes with a folder of sales: killed during a settle, and restarted. */
const killable: Record<string, ReadonlyArray<string>> = {
  "seller-http": [process.execPath, "--disable-warning=ExperimentalWarning", join(root, "examples/seller-http.ts")],
  ...(python === undefined ? {} : { Python: [python, join(root, "examples/python/sell.py"), "--exact"] })
}

it.live.each(Object.entries(killable))(
  "a killed seller gives each paid page after its restart (%s)",
  ([name, words]) =>
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator({ closeMillis: 2_000 })
      const way = yield* acquire(
        () => startWay(facilitator.url),
        ({ close }) => close()
      )
      const payTo = (yield* facilitator.account(0n)).publicKey()
      const buyer = yield* facilitator.account()
      const folder = yield* acquire(
        async () => mkdtempSync(join(tmpdir(), "sold-")),
        async (made) => rmSync(made, { recursive: true, force: true })
      )
      const start = () => startProgram({ facilitator: way.url, payTo }, { SOLD: folder }, words)
      let running = yield* acquire(start, async () => void running.child.kill())
      const kill = () => {
        running.child.kill("SIGKILL")
        return ended(running.child)
      }
      const moments: Record<string, Order> = {
        "before the settle arrives": async () => {
          await kill()
          return "cut"
        },
        "while it settles": async (forward) => {
          const answer = forward()
          await kill()
          await answer
          return "cut"
        },
        "before its answer": async (forward) => {
          await forward()
          await kill()
          return "cut"
        }
      }
      let paid = 0n
      for (const [index, [moment, order]] of Object.entries(moments).entries()) {
        const asked = yield* Effect.promise(() => get(`${running.url}/weather?city=Riga`))
        const payment = yield* Effect.promise(() => sign(facilitator, buyer.secret(), asked.body))
        way.order("settle", order)
        const lost = yield* Effect.promise(() =>
          get(`${running.url}/weather?city=Riga`, payment).then(
            () => false,
            () => true
          )
        )
        way.order("settle")
        // The restarted seller has the same address, as behind a name, because the sale is bound to it.
        const port = new URL(running.url).port
        running = yield* Effect.promise(() =>
          // A restart with another price settles a payment that has begun with the price that it signed.
          startProgram(
            { facilitator: way.url, payTo },
            { SOLD: folder, PORT: port, AMOUNT: String(price - 1n - BigInt(index)) },
            words
          )
        )
        paid += BigInt(asked.body.accepts[0].amount)
        const page = yield* Effect.promise(() => untilKnown(() => get(`${running.url}/weather?city=Riga`, payment)))
        const other = yield* Effect.promise(() => get(`${running.url}/weather?city=Oslo`, payment))
        expect([name, moment, lost, page.status, other.status]).toEqual([name, moment, true, 200, 409])
      }
      expect(yield* facilitator.balance(payTo)).toBe(paid)
    }).pipe(Effect.scoped),
  300_000
)
