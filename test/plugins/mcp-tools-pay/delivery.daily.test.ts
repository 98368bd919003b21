// Paid content is delivered whatever the seller's receipt contains and however its stream ends: the ledger proves the
// payment. If the payment is not yet proven, the content is stored and delivered once it is resolved.
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Duplex } from "node:stream"
import { eventually } from "../../support/eventually.ts"
import { declaring, queryDeclaration, verified } from "../catalog/support.ts"
import { call, connectHttp, type Json } from "../mcp-tools/support.ts"
import { encode, httpAmount, type HttpReply } from "./httpSeller.ts"
import { enabled, fetched, HttpWorld, paymentsIn, query, refOf, soon } from "./httpWorld.ts"
import { agentKey, pay, PayWorld } from "./payWorld.ts"
import { httpReceipts, receipts, withReceipt } from "./receipts.ts"
import { amount, type Behaviour } from "./seller.ts"

let fresh = 0
const args = () => ({ a: ++fresh, b: 110_000 })

const postJson = (url: string, body: Json): Promise<Json> =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body)
  }).then((answer) => answer.json() as Promise<Json>)

const [stream, json] = ["text/event-stream", "application/json"]
const event = (message: Json) => `data: ${JSON.stringify(message)}\n\n`
const notification = '{"jsonrpc":"2.0","method":"notifications/progress","params":{}}'

/** The framing of the answer to a payment: its status, its type and its text. */
const framings: ReadonlyArray<readonly [string, number, string, (message: Json) => string]> = [
  ["behind a priming event", 200, stream, (message) => `id: 0\ndata: \n\n${event(message)}`],
  ["behind a ping that is no JSON", 200, stream, (message) => `event: ping\ndata: now\n\n${event(message)}`],
  ["behind comments", 200, stream, (message) => ": ping\n\n".repeat(20_000) + event(message)],
  ["behind notifications", 200, stream, (message) => `data: ${notification}\n\n`.repeat(12_000) + event(message)],
  ["behind a byte order mark", 200, stream, (message) => `\ufeff${event(message)}`],
  ["with two kinds of line ends", 200, stream, (message) => `data: ${notification}\n\r\n${event(message)}`],
  ["with a type in capitals", 200, "Text/Event-Stream", event],
  ["in JSON behind a byte order mark", 200, json, (message) => `\ufeff${JSON.stringify(message)}`],
  ["in a batch", 200, json, (message) => `[${notification},${JSON.stringify(message)}]`],
  ["with its id as text", 200, json, ({ id, ...message }) => JSON.stringify({ ...message, id: String(id) })],
  ["with another status", 402, json, (message) => JSON.stringify(message)]
]

const sentRaw = (reply: HttpReply, more: ReadonlyArray<string>): string => {
  const { "content-type": _, ...headers } = reply.headers
  const head = Object.entries({ ...headers, "content-type": "text/plain" }).map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${reply.status} X`, ...head, ...more, "", ""].join("\r\n")
}

const openText = (socket: Duplex, reply: HttpReply) =>
  void socket.write(`${sentRaw(reply, ["transfer-encoding: chunked"])}b\r\n17 degrees\n\r\n`)
const brokenText = (socket: Duplex, reply: HttpReply) =>
  void socket.end(`${sentRaw(reply, ["content-length: 1000"])}17 degrees\n`)

layer(HttpWorld.layer, { excludeTestServices: true, timeout: 240_000 })("paid content", (it) => {
  it.effect(
    "paid HTTP content is delivered despite a false receipt, mismatches reported [S214, S215, S216]",
    () =>
      Effect.gen(function* () {
        const { agent, facilitator, paying } = yield* PayWorld
        const { ref, seller } = yield* HttpWorld
        const client = yield* paying([enabled])
        const before = yield* facilitator.balance(agent.publicKey())
        for (const [what, change, errors] of httpReceipts) {
          seller.behaviour = { paid: (reply, settled) => withReceipt(reply, change(settled)) }
          const { body } = yield* fetched(client, ref)
          expect([what, body["json"]?.celsius, body["receipt"]?.status]).toEqual([what, 17, "settled"])
          expect([what, body["receipt"].sellerReceiptFaults]).toEqual([what, errors])
          expect(body["receipt"].transaction).toBe(seller.settlements.at(-1)!["transaction"])
        }
        expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(httpAmount * BigInt(httpReceipts.length))
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect(
    "a paid MCP result is delivered despite a false receipt [S214, S215]",
    () =>
      Effect.gen(function* () {
        const { agent, facilitator, paying, ref, seller } = yield* PayWorld
        const client = yield* paying()
        const before = yield* facilitator.balance(agent.publicKey())
        for (const [what, change, failures] of receipts) {
          seller.behaviour = {
            paid: (result) => {
              const receipt = change(result["_meta"]["x402/payment-response"])
              return { ...result, _meta: receipt === undefined ? {} : { "x402/payment-response": receipt } }
            },
            // The seller's server ends its stream with the response; here it stays open.
            isStreamOpen: true
          }
          const own = args()
          const began = performance.now()
          const { body } = yield* pay(client, ref, own)
          expect([what, body["structuredContent"], body["code"]]).toEqual([what, { sum: own.a + own.b }, undefined])
          expect([what, body["receipt"].sellerReceiptFaults]).toEqual([what, failures])
          expect(performance.now() - began).toBeLessThan(30_000)
        }
        expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(amount * BigInt(receipts.length))
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect("a facilitator's receipt that a seller passes on is kept for the agent, where it has the form of one", () =>
    Effect.gen(function* () {
      const { paying } = yield* PayWorld
      const { ref, seller } = yield* HttpWorld
      const client = yield* paying([enabled])
      const listed = (transaction: string) =>
        Effect.map(call(client, "x402_receipts", {}), ({ body }) =>
          (body["receipts"] as ReadonlyArray<Json>).filter((one) => one["transaction"] === transaction)
        )
      for (const receipt of ["not a receipt", "aGVhZGVy.cGF5bG9hZA.c2lnbmF0dXJl"]) {
        const extensions = { "tollkeeper-receipt": { info: { format: "jws", receipt } } }
        seller.behaviour = { paid: (reply, settled) => withReceipt(reply, encode({ ...settled, extensions })) }
        const { body } = yield* fetched(client, ref)
        const { asset, network, payTo, transaction } = body["receipt"]
        if (receipt.includes(" ")) expect(yield* listed(transaction)).toEqual([])
        else {
          const found = yield* eventually(listed(transaction), ({ length }) => length === 1)
          expect(found).toEqual([{ transaction, network, asset, payTo, amount: String(httpAmount), receipt }])
        }
      }
    }).pipe(Effect.scoped)
  )

  it.effect(
    "a paid MCP result is delivered despite a framing that no official server has [S214, S238]",
    () =>
      Effect.gen(function* () {
        const { agent, facilitator, paying, ref, seller } = yield* PayWorld
        const client = yield* paying()
        const before = yield* facilitator.balance(agent.publicKey())
        for (const [what, status, type, framed] of framings) {
          seller.behaviour = {
            wire: (message, response) => {
              const payment = message["params"]?._meta?.["x402/payment"]
              if (payment === undefined) return false
              const body = { x402Version: 2, paymentPayload: payment, paymentRequirements: payment.accepted }
              void postJson(`${facilitator.url}/settle`, body).then((settled) => {
                const { a, b } = message["params"].arguments
                const meta = { "x402/payment-response": settled }
                const result = { content: [], structuredContent: { sum: a + b }, _meta: meta }
                const text = framed({ jsonrpc: "2.0", id: message["id"], result })
                response.writeHead(status, { "content-type": type })
                // A stream may stay open.
                return type === "application/json" ? response.end(text) : response.write(text)
              })
              return true
            }
          }
          const own = args()
          const { body } = yield* pay(client, ref, own)
          expect([what, body["structuredContent"], body["message"]]).toEqual([what, { sum: own.a + own.b }, undefined])
        }
        seller.behaviour = {}
        expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(amount * BigInt(framings.length))
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect(
    "the part of paid HTTP content that came is given, and the whole once it comes [S214, S232]",
    () =>
      Effect.gen(function* () {
        const { agent, facilitator, paying } = yield* PayWorld
        const { ref, seller } = yield* HttpWorld
        const client = yield* paying([enabled, "network_security.paid_call_timeout_ms=3000"])
        const before = yield* facilitator.balance(agent.publicKey())
        const received = seller.received.length
        const own = { query: query() }
        for (const raw of [openText, brokenText]) {
          seller.behaviour = { raw: { paid: raw } }
          const { body } = yield* fetched(client, ref, own)
          expect(body).toMatchObject({
            code: "SETTLEMENT_UNKNOWN",
            message: expect.stringContaining("paid, part of the content"),
            details: { paid: true, partialContent: { status: 200, text: "17 degrees\n", truncated: true } }
          })
        }
        seller.behaviour = { raw: { paid: (socket) => void socket.destroy() } }
        expect((yield* fetched(client, ref, own)).body).toMatchObject({
          message: expect.stringContaining("paid, no content"),
          details: { paid: true, transaction: seller.settlements.at(-1)!["transaction"] }
        })
        seller.behaviour = {}
        expect((yield* fetched(client, ref, own)).body["receipt"]?.status).toBe("settled")
        expect(new Set(paymentsIn(seller, received)).size).toBe(1)
        // An overlong answer is overlong each time.
        seller.behaviour = { paid: (reply) => ({ ...reply, body: " ".repeat(12_000_000) }) }
        const { body } = yield* fetched(client, ref)
        expect([body["receipt"]?.status, body["truncated"]]).toEqual(["settled", true])
        expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(httpAmount * 2n)
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect("one call is one invocation, however its members are ordered and its headers spelled [S212]", () =>
    Effect.gen(function* () {
      const { paying } = yield* PayWorld
      const { ref, seller } = yield* HttpWorld
      const client = yield* paying([enabled, 'http_payments.request_headers=["x-units"]'])
      const received = seller.received.length
      seller.behaviour = { raw: { paid: (socket) => void socket.destroy() } }
      const { city } = query()
      yield* fetched(client, ref, { query: { city, day: "1" }, headers: { "X-Units": "si" } })
      seller.behaviour = {}
      const again = { query: { day: "1", city }, headers: { "x-units": "si" } }
      expect((yield* fetched(client, ref, again)).body["receipt"]?.status).toBe("settled")
      expect(new Set(paymentsIn(seller, received)).size).toBe(1)
    }).pipe(Effect.scoped)
  )

  it.effect("an open payment is found under the listing that took the place of its own [S212]", () =>
    Effect.gen(function* () {
      const { facilitator, paying } = yield* PayWorld
      const { seller } = yield* HttpWorld
      const client = yield* paying([enabled])
      const received = seller.received.length
      seller.behaviour = { raw: { paid: (socket) => void socket.destroy() } }
      const route = { ref: refOf(seller, "/cities/:name"), pathParameters: { name: "oslo" } }
      yield* call(client, "x402_fetch_resource", route)
      seller.behaviour = {}
      const payer = yield* facilitator.account()
      const url = `${seller.origin}/cities/oslo`
      const declared = { payer, payTo: seller.payTo, url, extension: queryDeclaration(), amount: httpAmount }
      yield* verified(facilitator, yield* declaring(facilitator, declared))
      const again = yield* call(client, "x402_fetch_resource", { ref: refOf(seller, "/cities/oslo") })
      expect(again.body["receipt"]?.status, JSON.stringify(again.body)).toBe("settled")
      expect(new Set(paymentsIn(seller, received)).size).toBe(1)
    }).pipe(Effect.scoped)
  )

  it.effect("a seller's error for a settled payment is not delivered as content [S104, S232]", () =>
    Effect.gen(function* () {
      const { agent, facilitator, paying } = yield* PayWorld
      const { ref, seller } = yield* HttpWorld
      const client = yield* paying([enabled])
      const before = yield* facilitator.balance(agent.publicKey())
      for (const [status, receipt, code] of [
        [402, { success: false, transaction: "", network: "ledger:testnet", errorReason: "settlement_pending" }],
        [402, undefined, "PAYMENT_REQUIRED"],
        [409, { success: false, transaction: "", network: "ledger:testnet", errorReason: "settlement_pending" }],
        [
          400,
          { success: false, transaction: "", network: "ledger:testnet", errorReason: "rejected" },
          "PAYMENT_REJECTED"
        ]
      ] as const) {
        const own = { query: query() }
        const received = seller.received.length
        seller.behaviour = {
          paid: ({ headers: { "payment-response": _, ...headers } }) => ({
            status,
            headers: receipt === undefined ? headers : { ...headers, "payment-response": encode(receipt) },
            body: "{}"
          })
        }
        const failed = yield* fetched(client, ref, own)
        expect([status, failed.body["code"]]).toEqual([status, code ?? "SETTLEMENT_UNKNOWN"])
        seller.behaviour = {}
        const { body } = yield* fetched(client, ref, own)
        expect(body).toMatchObject({ json: { celsius: 17 }, receipt: { status: "settled" } })
        expect(new Set(paymentsIn(seller, received)).size).toBe(1)
      }
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(httpAmount * 4n)
    }).pipe(Effect.scoped)
  )

  it.effect("a JSON result is complete at its end, despite an open response [S214, S238]", () =>
    Effect.gen(function* () {
      const { paying } = yield* PayWorld
      const { ref, seller } = yield* HttpWorld
      const leftOpen = (socket: Duplex, { body, headers, status }: HttpReply) => {
        const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
        const text = String(body)
        const chunk = `${text.length.toString(16)}\r\n${text}\r\n`
        socket.write([`HTTP/1.1 ${status} X`, ...head, "transfer-encoding: chunked", "", chunk].join("\r\n"))
      }
      seller.behaviour = { raw: { paid: leftOpen } }
      const client = yield* paying([enabled, "network_security.paid_call_timeout_ms=6000"])
      const { body } = yield* fetched(client, ref)
      expect(body).toMatchObject({ json: { celsius: 17 }, receipt: { status: "settled" } })
      // Several documents under the label of one come whole.
      seller.behaviour = {
        raw: {
          paid: (socket, reply) => {
            leftOpen(socket, reply)
            setTimeout(() => socket.end(`4\r\n{"b"\r\n3\r\n:2}\r\n0\r\n\r\n`), 50)
          }
        }
      }
      const { text } = (yield* fetched(client, ref)).body
      expect([text?.slice(0, 11), text?.slice(-7)]).toEqual(['{"celsius":', '{"b":2}'])
    }).pipe(Effect.scoped)
  )

  it.effect(
    "unproven content is stored and delivered after proof without a second request [S104, S232]",
    () =>
      Effect.gen(function* () {
        const { agent, facilitator, paying, ref, seller } = yield* PayWorld
        const client = yield* paying([soon])
        const before = yield* facilitator.balance(agent.publicKey())
        const held: Array<Json> = []
        const unsettled: Behaviour = {
          settle: (body) => {
            held.push(body)
            return Promise.resolve({ success: true, transaction: "b".repeat(64), network: "ledger:testnet" })
          }
        }
        seller.behaviour = unsettled
        const own = args()
        const first = yield* pay(client, ref, own)
        expect(first.body).toMatchObject({ code: "SETTLEMENT_UNKNOWN", details: { contentKept: true } })
        expect((yield* pay(client, ref, own)).body["details"].paymentIdentifier).toBe(
          first.body["details"].paymentIdentifier
        )
        const calls = seller.calls.length
        yield* Effect.promise(() =>
          fetch(`${facilitator.url}/settle`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify(held[0])
          })
        )
        const later = yield* pay(client, ref, own)
        expect(later.body).toMatchObject({
          structuredContent: { sum: own.a + own.b },
          receipt: { status: "settled", source: "ledger", sellerReceiptFaults: ["transaction"] }
        })
        expect(seller.calls.length).toBe(calls)
        expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(amount)
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect("after its caller hangs up, a payment answers the repeated call [S104, S212]", () =>
    Effect.gen(function* () {
      const { agent, facilitator, toolsUrl } = yield* PayWorld
      const { ref, seller } = yield* HttpWorld
      const url = yield* toolsUrl([enabled])
      const before = yield* facilitator.balance(agent.publicKey())
      const received = seller.received.length
      let answer: (() => void) | undefined
      seller.behaviour = {
        raw: {
          paid: (socket, { body, headers, status }) => {
            const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
            answer = () => void socket.end([`HTTP/1.1 ${status} X`, ...head, "", String(body)].join("\r\n"))
          }
        }
      }
      const own = { query: query() }
      const client = yield* connectHttp(url, agentKey.split(":")[1])
      const cancel = new AbortController()
      const asked = client
        .callTool({ name: "x402_fetch_resource", arguments: { ref, ...own } }, undefined, { signal: cancel.signal })
        .catch(() => undefined)
      yield* eventually(
        Effect.sync(() => answer),
        (ready) => ready !== undefined
      )
      cancel.abort()
      yield* Effect.promise(() => asked)
      // The server has received it once it has answered a later message.
      yield* Effect.promise(() => client.ping())
      answer!()
      const again = yield* connectHttp(url, agentKey.split(":")[1])
      const sent = paymentsIn(seller, received)
      const { body } = yield* fetched(again, ref, own)
      expect(body).toMatchObject({ json: { celsius: 17 }, receipt: { status: "settled" } })
      expect(paymentsIn(seller, received)).toEqual(sent)
      expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(httpAmount)
    }).pipe(Effect.scoped)
  )
})
