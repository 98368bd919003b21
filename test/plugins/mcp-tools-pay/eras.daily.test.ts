// Sellers of both eras of MCP over HTTP: with `initialize` and a session, and of revision 2026-07-28 only, through the
// official SDK's servers and through the x402 extension's own result; and every possible place of a seller's
// PaymentRequired.
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Json } from "../mcp-tools/support.ts"
import { pay, PayWorld } from "./payWorld.ts"
import { amount } from "./seller.ts"

let fresh = 0
const args = () => ({ a: ++fresh, b: 390_000 })
const revision = "2026-07-28"

layer(PayWorld.layer, { excludeTestServices: true, timeout: 240_000 })("a seller", (it) => {
  it.effect("a seller with sessions gets the negotiated revision on each request", () =>
    Effect.gen(function* () {
      const { paying, ref, seller } = yield* PayWorld
      seller.behaviour = {}
      const from = seller.methods.length
      const own = args()
      const { body } = yield* pay(yield* paying(), ref, own)
      expect(body).toMatchObject({ structuredContent: { sum: own.a + own.b }, receipt: { status: "settled" } })
      expect(seller.methods.slice(from)).toEqual([
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
        "tools/call"
      ])
      expect(seller.revisions.slice(from)).toEqual([undefined, ...Array.from({ length: 4 }, () => "2025-06-18")])
    }).pipe(Effect.scoped)
  )

  it.effect("a seller of revision 2026-07-28 alone is paid", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying, ref, seller } = yield* PayWorld
      seller.behaviour = { isStateless: true }
      const client = yield* paying()
      const before = yield* facilitator.balance(agent.publicKey())
      const from = seller.methods.length
      const own = args()
      const { body } = yield* pay(client, ref, own)
      expect(body).toMatchObject({ structuredContent: { sum: own.a + own.b }, receipt: { status: "settled" } })
      expect(seller.methods.slice(from)).toEqual([
        "initialize",
        "server/discover",
        "tools/list",
        "tools/call",
        "tools/call"
      ])
      expect(seller.revisions.slice(from)).toEqual([undefined, ...Array.from({ length: 4 }, () => revision)])
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(amount)
    }).pipe(Effect.scoped)
  )

  it.effect("a 2026-07-28 seller that lost its response is sent the same payment", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying, ref, seller } = yield* PayWorld
      const client = yield* paying()
      const before = yield* facilitator.balance(agent.publicKey())
      const own = args()
      seller.behaviour = { isStateless: true, text: (whole) => whole.slice(0, 20) }
      const first = yield* pay(client, ref, own)
      expect(first.body).toMatchObject({ code: "SETTLEMENT_UNKNOWN" })
      seller.behaviour = { isStateless: true }
      const { body } = yield* pay(client, ref, own)
      expect(body).toMatchObject({ structuredContent: { sum: own.a + own.b }, receipt: { status: "settled" } })
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(amount)
    }).pipe(Effect.scoped)
  )

  it.effect("a seller of the x402 extension requests payment by its result type", () =>
    Effect.gen(function* () {
      const { paying, ref, seller } = yield* PayWorld
      const client = yield* paying()
      const asked: Array<Json> = []
      const typed = (response: ServerResponse, id: unknown, result: Json) =>
        void response
          .writeHead(200, { "content-type": "application/json" })
          .end(JSON.stringify({ jsonrpc: "2.0", id, result }))
      const extension = (message: Json, response: ServerResponse, request: IncomingMessage): boolean => {
        if (message["method"] !== "tools/call" || message["params"]._meta["x402/payment"] !== undefined) return false
        asked.push({ headers: request.headers, meta: message["params"]._meta })
        const paymentRequired = {
          x402Version: 2,
          error: "pay",
          resource: { url: seller.url },
          accepts: [seller.terms()]
        }
        typed(response, message["id"], { resultType: "payment_required", paymentRequired })
        return true
      }
      seller.behaviour = { isStateless: true, wire: extension }
      const own = args()
      const { body } = yield* pay(client, ref, own)
      expect(body).toMatchObject({ structuredContent: { sum: own.a + own.b }, receipt: { status: "settled" } })
      expect(asked[0]).toMatchObject({
        headers: { "mcp-method": "tools/call", "mcp-name": "add" },
        meta: { "io.modelcontextprotocol/clientCapabilities": { extensions: { "org.x402/payment": {} } } }
      })
      const needsInput = (message: Json, response: ServerResponse): boolean => {
        if (message["method"] !== "tools/call") return false
        typed(response, message["id"], { resultType: "input_required", inputRequests: {} })
        return true
      }
      seller.behaviour = { isStateless: true, wire: needsInput }
      expect((yield* pay(client, ref, args())).body["code"]).toBe("UPSTREAM_PROTOCOL_ERROR")
    }).pipe(Effect.scoped)
  )

  it.effect("a seller of neither era is refused and not called", () =>
    Effect.gen(function* () {
      const { paying, ref, seller } = yield* PayWorld
      const client = yield* paying()
      const from = seller.methods.length
      const refusal = (message: Json, response: ServerResponse): boolean => {
        const { id, method } = message
        const isDiscovery = method === "server/discover" && message["params"] !== undefined
        const body = isDiscovery
          ? { result: { resultType: "complete", supportedVersions: ["2030-01-01"], capabilities: {} } }
          : { error: { code: -32601, message: "no such method" } }
        response.writeHead(200, { "content-type": "application/json" })
        return response.end(JSON.stringify({ jsonrpc: "2.0", id, ...body })) !== undefined
      }
      seller.behaviour = { wire: refusal }
      expect((yield* pay(client, ref, args())).body["code"]).toBe("UPSTREAM_PROTOCOL_ERROR")
      expect(seller.methods.slice(from)).toEqual(["initialize", "server/discover"])
    }).pipe(Effect.scoped)
  )

  it.effect("a seller may state its terms in either copy, in either era", () =>
    Effect.gen(function* () {
      const { paying, ref, seller } = yield* PayWorld
      const client = yield* paying()
      for (const isStateless of [false, true])
        for (const unpaid of [
          ({ structuredContent: _, ...result }: Json) => result,
          (result: Json) => ({ ...result, content: [] }),
          (result: Json) => ({ ...result, content: [{ type: "text", text: "Payment required" }] })
        ]) {
          seller.behaviour = { isStateless, unpaid }
          const own = args()
          expect((yield* pay(client, ref, own)).body).toMatchObject({ structuredContent: { sum: own.a + own.b } })
        }
      seller.behaviour = {}
    }).pipe(Effect.scoped)
  )
})
