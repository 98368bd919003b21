// The example sellers against a buyer that sends one payment several times: one payment buys one thing.
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { signPayment } from "../../../examples/buyer.ts"
import { startSeller } from "../../../examples/seller-http.ts"
import { startMcpSeller } from "../../../examples/seller-mcp.ts"
import { testnetUsdc } from "../../../runtime/redteam/buyer.ts"
import { type Facilitator, startFacilitator } from "../../support/facilitator.ts"
import type { Json } from "../mcp-tools/support.ts"

class SellerWorld extends Context.Service<
  SellerWorld,
  {
    readonly facilitator: Facilitator
    readonly payTo: string
    /** A payment by a new buyer, under an identifier. */
    readonly signed: (asked: Json) => Effect.Effect<Json>
  }
>()("test/SellerWorld") {
  static readonly layer = Layer.effect(
    SellerWorld,
    Effect.gen(function* () {
      const facilitator = yield* startFacilitator()
      const payTo = (yield* facilitator.account()).publicKey()
      let payments = 0
      const signed = Effect.fnUntraced(function* (asked: Json) {
        const secret = (yield* facilitator.account()).secret()
        const [accepted] = asked["accepts"]
        const options = { secret, rpcUrl: facilitator.ledgerUrl, maxAmount: BigInt(accepted.amount) }
        const transaction = yield* Effect.promise(() => signPayment(accepted, options))
        const info = { id: `pay_${String(++payments).padStart(32, "0")}` }
        return {
          x402Version: 2,
          payload: { transaction },
          resource: asked["resource"],
          accepted,
          extensions: { "payment-identifier": { info } }
        }
      })
      return { facilitator, payTo, signed }
    })
  )
}

const startedMcp = Effect.gen(function* () {
  const { facilitator, payTo } = yield* SellerWorld
  const options = { facilitator: facilitator.url, payTo, asset: testnetUsdc, amount: "3000" }
  const { url } = yield* Effect.acquireRelease(
    Effect.promise(() => startMcpSeller(options)),
    ({ close }) => Effect.promise(close)
  )
  const client = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ name: "buyer", version: "1.0.0" })
      await client.connect(new StreamableHTTPClientTransport(new URL(url)) as Transport)
      return client
    }),
    (client) => Effect.promise(() => client.close())
  )
  const call = (args: Json, payment?: Json): Effect.Effect<Json> =>
    Effect.promise(
      () =>
        client.callTool({
          name: "forecast",
          arguments: args,
          ...(payment === undefined ? {} : { _meta: { "x402/payment": payment } })
        }) as Promise<Json>
    )
  return call
})

const startedHttp = Effect.gen(function* () {
  const { facilitator, payTo } = yield* SellerWorld
  const options = { facilitator: facilitator.url, payTo, asset: testnetUsdc, amount: "3000" }
  const { url } = yield* Effect.acquireRelease(
    Effect.promise(() => startSeller(options)),
    ({ close }) => Effect.promise(close)
  )
  return (city: string, payment?: Json) =>
    Effect.promise(async () => {
      const header = payment === undefined ? undefined : Buffer.from(JSON.stringify(payment)).toString("base64")
      const answer = await fetch(`${url}/weather?city=${city}`, {
        ...(header === undefined ? {} : { headers: { "payment-signature": header } })
      })
      return { status: answer.status, body: (await answer.json()) as Json }
    })
})

layer(SellerWorld.layer, { excludeTestServices: true, timeout: 240_000 })("an example's seller", (it) => {
  it.effect("an MCP example seller repeats a lost response only for its payment", () =>
    Effect.gen(function* () {
      const { facilitator, payTo, signed } = yield* SellerWorld
      const call = yield* startedMcp
      const before = yield* facilitator.balance(payTo)
      const payment = yield* signed((yield* call({ city: "Riga", days: 1 }))["structuredContent"])
      const first = yield* call({ city: "Riga", days: 1 }, payment)
      expect(first["structuredContent"]).toEqual({ city: "Riga", celsius: [17] })
      expect(yield* call({ city: "Riga", days: 1 }, payment)).toEqual(first)
      for (const args of [
        { city: "Riga", days: 7 },
        { city: "Oslo", days: 1 }
      ]) {
        const refused = yield* call(args, payment)
        const { accepts, error } = refused["structuredContent"]
        expect([refused["isError"], error, accepts]).toEqual([true, "payment_already_used", undefined])
      }
      expect((yield* facilitator.balance(payTo)) - before).toBe(3_000n)
    }).pipe(Effect.scoped)
  )

  it.effect("an MCP example seller sells one call for a payment sent concurrently", () =>
    Effect.gen(function* () {
      const { facilitator, payTo, signed } = yield* SellerWorld
      const call = yield* startedMcp
      const before = yield* facilitator.balance(payTo)
      const payment = yield* signed((yield* call({ city: "Riga" }))["structuredContent"])
      const all = yield* Effect.all(
        [1, 2, 3, 4].map((days) => call({ city: "Riga", days }, payment)),
        { concurrency: "unbounded" }
      )
      expect(all.filter((one) => one["isError"] !== true)).toHaveLength(1)
      expect((yield* facilitator.balance(payTo)) - before).toBe(3_000n)
    }).pipe(Effect.scoped)
  )

  it.effect("a web example seller sells one page for a payment sent concurrently", () =>
    Effect.gen(function* () {
      const { facilitator, payTo, signed } = yield* SellerWorld
      const page = yield* startedHttp
      const before = yield* facilitator.balance(payTo)
      const payment = yield* signed((yield* page("Riga")).body)
      const all = yield* Effect.all(
        ["Riga", "Oslo", "Bern", "Rome"].map((city) => page(city, payment)),
        { concurrency: "unbounded" }
      )
      expect(all.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409])
      expect((yield* facilitator.balance(payTo)) - before).toBe(3_000n)
    }).pipe(Effect.scoped)
  )
})
