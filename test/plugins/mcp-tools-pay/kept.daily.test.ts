// The call's own arguments identify its open payment, which ends with the delivery of its purchase: an error page does
// not replace the content, and no listing hides a payment that was made.
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { httpAmount } from "./httpSeller.ts"
import { enabled, fetched, HttpWorld, paymentsIn, query, soon } from "./httpWorld.ts"
import { pay, PayWorld } from "./payWorld.ts"
import { amount } from "./seller.ts"
import { substitute } from "../mcp-tools/support.ts"

let fresh = 0
const args = () => ({ a: ++fresh, b: 210_000 })

layer(HttpWorld.layer, { excludeTestServices: true, timeout: 240_000 })("an open payment", (it) => {
  it.effect("no error takes the place of content that came before it [S104, S232]", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying, ref, seller } = yield* PayWorld
      const client = yield* paying([soon])
      const before = yield* facilitator.balance(agent.publicKey())
      seller.behaviour = {
        settle: () => Promise.resolve({ success: true, transaction: "b".repeat(64), network: "ledger:testnet" })
      }
      const own = args()
      const first = yield* pay(client, ref, own)
      expect(first.body).toMatchObject({ code: "SETTLEMENT_UNKNOWN", details: { contentKept: true } })
      // Now it is settled, and the answer is an error without a receipt.
      seller.behaviour = { paid: () => ({ isError: true, content: [{ type: "text", text: "used already" }] }) }
      expect((yield* pay(client, ref, own)).body["code"]).toBe("SETTLEMENT_UNKNOWN")
      seller.behaviour = {}
      const { body } = yield* pay(client, ref, own)
      expect(body).toMatchObject({ structuredContent: { sum: own.a + own.b }, receipt: { status: "settled" } })
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(amount)
    }).pipe(Effect.scoped)
  )

  it.effect("a tool's result that passes a bound is delivered once it is paid for [S238]", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying, ref, seller } = yield* PayWorld
      const before = yield* facilitator.balance(agent.publicKey())
      const client = yield* paying(["network_security.max_json_depth=16", "network_security.max_response_bytes=65536"])
      let deep: unknown = "leaf"
      for (let level = 0; level < 60; level++) deep = { deep }
      seller.behaviour = { paid: (result) => ({ ...result, structuredContent: { deep } }) }
      const nested = yield* pay(client, ref, args())
      expect(nested.body, JSON.stringify(nested.body).slice(0, 500)).toMatchObject({
        structuredContent: { deep },
        receipt: { status: "settled" }
      })
      const long = [{ type: "text", text: "x".repeat(100_000) }]
      seller.behaviour = { paid: (result) => ({ ...result, content: long }) }
      const own = args()
      const cut = yield* pay(client, ref, own)
      expect(cut.body["truncated"], JSON.stringify(cut.body).slice(0, 500)).toBe(true)
      expect(cut.body["content"][0].text).toContain("xxxxx")
      expect(cut.body["receipt"]).toMatchObject({ status: "settled", source: "ledger" })
      seller.behaviour = {}
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(2n * amount)
    }).pipe(Effect.scoped)
  )

  it.effect("a failure of the seller's server ends no payment, with a receipt or without one [S104, S232]", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying } = yield* PayWorld
      const { ref, seller } = yield* HttpWorld
      const client = yield* paying([enabled, soon])
      const before = yield* facilitator.balance(agent.publicKey())
      const received = seller.received.length
      const own = { query: query() }
      const failures = [
        { paid: (reply: any) => ({ ...reply, status: 503 }) },
        { paid: (reply: any) => ({ ...reply, status: 429 }) },
        { paid: () => ({ status: 404, headers: {}, body: "no such payment" }) },
        { paid: () => ({ status: 500, headers: {}, body: "" }) }
      ]
      for (const failure of failures) {
        seller.behaviour = failure
        expect((yield* fetched(client, ref, own)).body["code"]).toBe("SETTLEMENT_UNKNOWN")
      }
      seller.behaviour = {}
      const { body } = yield* fetched(client, ref, own)
      expect(body).toMatchObject({ status: 200, json: { celsius: 17 }, receipt: { status: "settled" } })
      expect(new Set(paymentsIn(seller, received)).size).toBe(1)
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(httpAmount)
    }).pipe(Effect.scoped)
  )

  it.effect("a call that is repeated gets its content whatever the catalog and its terms say by now [S104, S212]", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying, ref: tool, seller: toolSeller } = yield* PayWorld
      const { ref, seller } = yield* HttpWorld
      const client = yield* paying([enabled, soon])
      const before = yield* facilitator.balance(agent.publicKey())
      const [http, mcp] = [{ query: query() }, args()]
      for (const now of [{ expectedVersionHash: "0".repeat(64) }, { maxAtomicAmount: "1" }]) {
        const own = { query: { ...http.query, now: Object.keys(now)[0]! } }
        seller.behaviour = { raw: { paid: (socket) => void socket.destroy() } }
        expect((yield* fetched(client, ref, own)).body["code"]).toBe("SETTLEMENT_UNKNOWN")
        seller.behaviour = {}
        const { body } = yield* fetched(client, ref, { ...own, ...now })
        expect(body, JSON.stringify(body)).toMatchObject({ json: { celsius: 17 }, receipt: { status: "settled" } })
      }
      toolSeller.behaviour = { paid: () => new Promise(() => {}) }
      const brief = yield* paying(["network_security.paid_call_timeout_ms=4000"])
      expect((yield* pay(brief, tool, mcp)).body["code"]).toBe("SETTLEMENT_UNKNOWN")
      toolSeller.behaviour = {}
      const { body } = yield* pay(brief, tool, mcp, { maxAtomicAmount: "1" })
      expect(body, JSON.stringify(body)).toMatchObject({ structuredContent: { sum: mcp.a + mcp.b } })
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(2n * httpAmount + amount)
      // Without an open payment, the terms decide.
      const none = yield* fetched(client, ref, { maxAtomicAmount: "1" })
      expect(none.body["code"]).toBe("BUDGET_EXCEEDED")
    }).pipe(Effect.scoped)
  )

  it.effect("a repeated call is finished while the catalog hangs, and a new one is not paid [S104, S212]", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying, ref: tool, seller: toolSeller } = yield* PayWorld
      const { ref, seller } = yield* HttpWorld
      let isHanging = false
      const catalog = yield* substitute((request, response) => {
        if (isHanging) return
        void fetch(`${facilitator.url}${request.url}`).then(async (answer) => {
          const type = answer.headers.get("content-type") ?? ""
          response.writeHead(answer.status, { "content-type": type }).end(await answer.text())
        })
      })
      const through = [enabled, soon, `facilitator.base_url=${catalog}`, "network_security.paid_call_timeout_ms=5000"]
      // Three hanging requests to the catalog take every connection of the agent.
      const patient = ["network_security.timeout_ms=120000", "network_security.max_concurrent_connections=6"]
      const client = yield* paying([...through, ...patient])
      const before = yield* facilitator.balance(agent.publicKey())
      const [first, second, mcp] = [{ query: query() }, { query: query() }, args()]
      seller.behaviour = { raw: { paid: (socket) => void socket.destroy() } }
      toolSeller.behaviour = { paid: () => new Promise(() => {}) }
      const calls = [fetched(client, ref, first), fetched(client, ref, second), pay(client, tool, mcp)]
      for (const call of calls) expect((yield* call).body["code"]).toBe("SETTLEMENT_UNKNOWN")
      seller.behaviour = {}
      toolSeller.behaviour = {}
      isHanging = true
      const [one, two, three] = yield* Effect.all(calls, { concurrency: "unbounded" })
      for (const http of [one, two])
        expect(http!.body).toMatchObject({ json: { celsius: 17 }, receipt: { status: "settled" } })
      expect(three!.body).toMatchObject({ structuredContent: { sum: mcp.a + mcp.b }, receipt: { status: "settled" } })
      const brief = yield* paying([...through, "network_security.timeout_ms=3000"])
      expect((yield* fetched(brief, ref)).body["code"]).toBe("UPSTREAM_TIMEOUT")
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(2n * httpAmount + amount)
    }).pipe(Effect.scoped)
  )
})
