// A client without an SDK at a seller that names the facilitator's /prepare: it sends no key, and sends nothing without
// TLS.
import { expect, it } from "@effect/vitest"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect } from "effect"
import { execFile, spawnSync } from "node:child_process"
import { createServer } from "node:http"
import { join } from "node:path"
import { promisify } from "node:util"
import { pay } from "../../examples/client/prepared.mjs"
import { root } from "../../runtime/bootstrap.mjs"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"

const python =
  ["/usr/bin/python3", "python3"].find(
    (one) => spawnSync(one, ["-c", "import cryptography, sys; assert sys.version_info >= (3, 10)"]).status === 0
  ) ?? ""
if (python === "") console.log("left out: there is no python3 with the package cryptography here")

/** A seller, its facilitator, and a ledger RPC. */
const startSeller = Effect.acquireRelease(
  Effect.promise(async () => {
    const state = {
      terms: {} as Record<string, unknown>,
      rpc: { result: { sequence: 100 } } as unknown,
      asked: [] as Array<{ readonly path: string; readonly authorization: string | undefined }>
    }
    const server = createServer((request, response) => {
      const { authorization } = request.headers
      const path = request.url ?? ""
      if (path !== "/page") state.asked.push({ path, authorization })
      const terms = { x402Version: 2, resource: { url: "/page" }, accepts: [state.terms] }
      const expires = { ledger: 100, latestLedger: 1_000_000 }
      const given = { nonce: "1", expires, transaction: "AAAA", toSign: { hash: "00" } }
      const answers: Record<string, unknown> = { "/page": terms, "/rpc": state.rpc }
      request.resume().on("end", () => {
        response.writeHead(path === "/page" ? 402 : 200, { "content-type": "application/json" })
        response.end(JSON.stringify(answers[path] ?? given))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    return { server, state, url: `http://127.0.0.1:${(server.address() as { port: number }).port}` }
  }),
  ({ server }) => Effect.sync(() => server.close())
)

interface Asking {
  readonly facilitator?: string
  readonly rpcUrl?: string
  readonly allowsPlain?: boolean
  readonly maxTimeout?: number
}

/** Each client's reason to refuse payment, in order: Node's, then Python's. */
const refusals = (url: string, secret: string, asking: Asking) =>
  Effect.promise(async () => {
    const node = await pay(`${url}/page`, { secret, maxAmount: 10n, apiKey: "k", ...asking }).then(
      () => "paid",
      (error) => String(error.message)
    )
    if (python === "") return [node]
    const names = {
      facilitator: "facilitator",
      rpcUrl: "rpc_url",
      allowsPlain: "allows_plain",
      maxTimeout: "max_timeout"
    }
    const given = Object.entries(asking).map(([name, value]) => [names[name as keyof Asking], value])
    const options = JSON.stringify({ secret, max_amount: 10, api_key: "k", ...Object.fromEntries(given) })
    const program =
      "import json, sys\nfrom tollkeeper_x402 import Buyer, SignatureRefused\n" +
      "try: Buyer(**json.loads(sys.argv[1])).pay(sys.argv[2]); print('paid')\n" +
      "except SignatureRefused as refused: print(refused)\n"
    const { stdout } = await promisify(execFile)(python, ["-c", program, options, `${url}/page`], {
      env: { ...process.env, PYTHONPATH: join(root, "examples", "python"), PYTHONDONTWRITEBYTECODE: "1" }
    })
    return [node, stdout.trim()]
  })

const honest = (extra: object = {}) => ({
  scheme: "exact",
  network: "stellar:testnet",
  amount: "1",
  asset: testnetUsdc,
  payTo: Keypair.random().publicKey(),
  maxTimeoutSeconds: 60,
  extra
})

it.live("the key goes to no facilitator that a seller names, nor anything without TLS", () =>
  Effect.gen(function* () {
    const { state, url } = yield* startSeller
    const secret = Keypair.random().secret()
    state.terms = honest({ prepareUrl: `${url}/prepare` })
    for (const why of yield* refusals(url, secret, {})) expect(why).toContain("not asked over HTTPS")
    expect(state.asked).toEqual([])
    for (const why of yield* refusals(url, secret, { allowsPlain: true, rpcUrl: `${url}/rpc` }))
      expect(why).toContain("another signature")
    expect(new Set(state.asked.map(({ authorization }) => authorization))).toEqual(new Set([undefined]))
    state.asked.length = 0
    for (const why of yield* refusals(url, secret, { facilitator: url, rpcUrl: `${url}/rpc` }))
      expect(why).toContain("another signature")
    const prepared = state.asked.filter(({ path }) => path === "/prepare")
    expect(new Set(prepared.map(({ authorization }) => authorization))).toEqual(new Set(["Bearer k"]))
  }).pipe(Effect.scoped)
)

it.live("nothing is signed in an asset that the buyer does not know", () =>
  Effect.gen(function* () {
    const { state, url } = yield* startSeller
    state.terms = { ...honest(), asset: "CCW67TSZV3SSS2HXMBQ5JFGCKJNXKZM7UQUWUZPUTHXSTZLEO7SJMI75" }
    for (const why of yield* refusals(url, Keypair.random().secret(), { facilitator: url }))
      expect(why).toBe("the asset is not one that this buyer pays in")
    expect(state.asked).toEqual([])
  }).pipe(Effect.scoped)
)

it.live("a signature lives for a bounded time, by a ledger that the seller has no word in", () =>
  Effect.gen(function* () {
    const { state, url } = yield* startSeller
    const secret = Keypair.random().secret()
    for (const [time, options] of [
      [301, {}],
      [0, {}],
      [1.5, {}],
      ["60", {}],
      [undefined, {}],
      [61, { maxTimeout: 60 }]
    ] as const) {
      state.terms = { ...honest(), maxTimeoutSeconds: time }
      for (const why of yield* refusals(url, secret, { facilitator: url, rpcUrl: `${url}/rpc`, ...options }))
        expect([time, why]).toEqual([time, expect.stringContaining("the terms' time is not of 1 to")])
    }
    expect(state.asked).toEqual([])
    // A ledger that reports no number does not count, whatever the facilitator claims about it.
    state.terms = honest()
    for (const rpc of [{}, { result: {} }, { error: { code: 1 } }, { result: { sequence: "100" } }]) {
      state.rpc = rpc
      for (const why of yield* refusals(url, secret, { facilitator: url, rpcUrl: `${url}/rpc` }))
        expect(why).not.toContain("another signature")
    }
    state.terms = honest({ prepareUrl: `${url}/prepare` })
    for (const why of yield* refusals(url, secret, { allowsPlain: true }))
      expect(why).toContain("the newest ledger would be the word of one that the seller names")
  }).pipe(Effect.scoped)
)
