// Sellers that misuse the wire itself: connections that never end, are cut, or turn into something else, duplicate
// headers, other versions and other addresses in between. Before a payment nothing is signed; after it nothing is
// signed twice, and the price of one call bounds the loss.
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Duplex } from "node:stream"
import { eventually } from "../../support/eventually.ts"
import { call, type Json } from "../mcp-tools/support.ts"
import { encode, httpAmount, type HttpBehaviour, type HttpReply } from "./httpSeller.ts"
import { enabled, fetched, HttpWorld, paymentsIn, query, soon } from "./httpWorld.ts"
import { pay, PayWorld } from "./payWorld.ts"
import { amount, type Behaviour } from "./seller.ts"

/** For sellers that never end: short timeouts. A payment that is requested again has been settled by then. */
const quick = ["network_security.timeout_ms=2500", "network_security.paid_call_timeout_ms=3000"]

/** A response's bytes exactly as in this text. */
const says =
  (...lines: ReadonlyArray<string>) =>
  (socket: Duplex): void =>
    void socket.end(lines.join("\r\n"))

/** The same bytes again and again, as long as the connection is read. */
const without =
  (begin: string, again: string) =>
  (socket: Duplex): void => {
    socket.write(begin)
    const timer = setInterval(() => socket.write(again), 20)
    socket.on("close", () => clearInterval(timer)).on("error", () => undefined)
  }

/** The reply's own bytes, with a changed head. */
const altered =
  (change: (head: ReadonlyArray<string>) => ReadonlyArray<string>) =>
  (socket: Duplex, { body, headers, status }: HttpReply): void => {
    const head = [
      `HTTP/1.1 ${status} X`,
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      `content-length: ${body.length}`
    ]
    socket.end([...change(head), "", typeof body === "string" ? body : ""].join("\r\n"))
  }

const twice = (name: string, value: string) =>
  altered((head) => [
    ...head.filter((line) => !line.startsWith("content-length")),
    `${name}: ${value}`,
    "connection: close"
  ])

const upgraded = says("HTTP/1.1 101 Switching Protocols", "upgrade: websocket", "connection: upgrade", "", "")
const endless = without("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "1\r\n \r\n")
const events = without("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n", ": still here\n\n")
const headersOnly = without("HTTP/1.1 402 X\r\n", "x-more: y\r\n")
const interim = without("", "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")
const cut = altered((head) => head.map((line) => line.replace(/^content-length: .*/, "content-length: 100000")))
const cutWithoutLength = says("HTTP/1.0 402 X", "content-type: application/json", "", '{"x402Version":2,"accepts":[')
const smuggled = altered((head) => [...head, "transfer-encoding: chunked"])
const withCredentials = says("HTTP/1.1 307 X", "location: http://user:secret@127.0.0.1:1/", "content-length: 0", "", "")

layer(HttpWorld.layer, { excludeTestServices: true, timeout: 240_000 })(
  "an HTTP seller that misuses the wire",
  (it) => {
    it.effect(
      "an HTTP seller that abuses the connection before payment gets nothing signed [S209, S228, S238]",
      () =>
        Effect.gen(function* () {
          const { paying } = yield* PayWorld
          const { ref, seller } = yield* HttpWorld
          const client = yield* paying([enabled])
          const impatient = yield* paying([enabled, ...quick])
          const received = seller.received.length
          const otherTerms = encode({ x402Version: 2, resource: { url: seller.origin }, accepts: [] })
          const cases: ReadonlyArray<
            readonly [what: string, said: string, (socket: Duplex, reply: HttpReply) => void]
          > = [
            ["turns the connection into another protocol", "unreachable", upgraded],
            ["sends a body without end", "timeout", endless],
            ["sends events without end", "timeout", events],
            ["sends headers without end", "timeout", headersOnly],
            ["sends interim answers without end", "timeout", interim],
            ["promises more than it sends", "unreachable", cut],
            ["closes in the middle, by HTTP/1.0", "UPSTREAM_PROTOCOL_ERROR", cutWithoutLength],
            ["frames its answer in two ways", "unreachable", smuggled],
            ["asks twice in one head", "UPSTREAM_PROTOCOL_ERROR", twice("payment-required", otherTerms)],
            ["points to an address with credentials", "redirected", withCredentials]
          ]
          for (const [what, said, unpaid] of cases) {
            seller.behaviour = { raw: { unpaid } }
            const { body } = yield* fetched(said === "timeout" ? impatient : client, ref)
            expect({ what, said: body["details"]?.reason ?? body["code"] }).toEqual({ what, said })
          }
          expect(paymentsIn(seller, received)).toEqual([])
        }).pipe(Effect.scoped),
      240_000
    )

    it.effect("an HTTP seller offering one price to two recipients is not paid [S210, S227]", () =>
      Effect.gen(function* () {
        const { paying } = yield* PayWorld
        const { ref, seller } = yield* HttpWorld
        const client = yield* paying([enabled])
        const received = seller.received.length
        const other = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"
        const offers: ReadonlyArray<(terms: Json) => ReadonlyArray<Json>> = [
          (terms) => [terms, { ...terms, payTo: other }],
          (terms) => [{ ...terms, payTo: other }, terms],
          (terms) => [terms, { ...terms, network: "stellar:testnet", amount: "1" }]
        ]
        for (const change of offers) {
          seller.behaviour = { challenge: (asked) => ({ ...asked, accepts: change(asked["accepts"][0]) }) }
          expect((yield* fetched(client, ref)).body["code"]).toBe("RESOURCE_CHANGED")
        }
        expect(paymentsIn(seller, received)).toEqual([])
      }).pipe(Effect.scoped)
    )

    it.effect(
      "a hanging HTTP seller delays neither discovery nor other sellers [S238]",
      () =>
        Effect.gen(function* () {
          const { paying, ref: tool, seller: other } = yield* PayWorld
          const { ref, seller } = yield* HttpWorld
          const client = yield* paying([enabled, "network_security.max_concurrent_connections=6"])
          const received = seller.received.length
          let [open, most] = [0, 0]
          const hanging = (socket: Duplex) => {
            most = Math.max(most, ++open)
            socket.on("close", () => void (open -= 1))
          }
          seller.behaviour = { raw: { unpaid: hanging } }
          other.behaviour = {}
          for (let i = 0; i < 6; i++) yield* Effect.forkScoped(fetched(client, ref))
          yield* eventually(
            Effect.sync(() => seller.received.length),
            (now) => now > received
          )
          const found = yield* call(client, "x402_search_resources", {})
          expect(found.body["resources"].length).toBeGreaterThan(0)
          expect((yield* pay(client, tool, { a: 1, b: 95_000 })).body["receipt"]?.status).toBe("settled")
          expect(most).toBe(1)
        }).pipe(Effect.scoped),
      240_000
    )

    it.effect(
      "an HTTP seller that misbehaves after payment gets no second signature [S213, S229, S232]",
      () =>
        Effect.gen(function* () {
          const { agent, facilitator, paying } = yield* PayWorld
          const { ref, seller } = yield* HttpWorld
          const cases: ReadonlyArray<readonly [what: string, code: string, behaviour: HttpBehaviour]> = [
            ["turns the connection into another protocol", "SETTLEMENT_UNKNOWN", { raw: { paid: upgraded } }],
            ["sends a body without end", "SETTLEMENT_UNKNOWN", { raw: { paid: endless } }],
            ["sends events without end", "SETTLEMENT_UNKNOWN", { raw: { paid: events } }],
            ["promises more than it sends", "SETTLEMENT_UNKNOWN", { raw: { paid: cut } }],
            ["points to an address with credentials", "SETTLEMENT_UNKNOWN", { raw: { paid: withCredentials } }],
            ["asks again, in the other version", "PAYMENT_REQUIRED", { version: 1, paid: () => askedInSecond }],
            ["asks again, in the first version", "PAYMENT_REQUIRED", { paid: () => askedInFirst }]
          ]
          const terms = { ...seller.terms(), amount: "1" }
          const { amount: _, ...others } = terms
          const askedInSecond: HttpReply = {
            status: 402,
            headers: {
              "payment-required": encode({ x402Version: 2, resource: { url: seller.origin }, accepts: [terms] })
            },
            body: "{}"
          }
          const first = { ...others, maxAmountRequired: "1", resource: seller.origin, description: "", mimeType: "" }
          const askedInFirst: HttpReply = {
            status: 402,
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ x402Version: 1, error: "more", accepts: [first] })
          }
          for (const [what, code, behaviour] of cases) {
            const caps = what.endsWith("without end") ? quick : []
            const client = yield* paying([enabled, `budget.max_per_day=${httpAmount}`, soon, ...caps])
            const [received, before] = [seller.received.length, yield* facilitator.balance(agent.publicKey())]
            const own = { query: query() }
            seller.behaviour = behaviour
            expect({ what, ...(yield* fetched(client, ref, own)).body }).toMatchObject({ what, code })
            yield* fetched(client, ref, own)
            expect((yield* fetched(client, ref)).body["code"]).toBe("BUDGET_EXCEEDED")
            expect({ what, signed: new Set(paymentsIn(seller, received)).size }).toEqual({ what, signed: 1 })
            const spent = Effect.map(facilitator.balance(agent.publicKey()), (now) => before - now)
            expect(yield* eventually(spent, (units) => units > 0n)).toBe(httpAmount)
            // Once honest again, it delivers the purchase.
            seller.behaviour = behaviour.version === 1 ? { version: 1 } : {}
            const { body } = yield* fetched(client, ref, own)
            const outcome = body["receipt"]?.status ?? body["code"]
            expect(outcome, `${what}: ${JSON.stringify(body)}`).toBe("settled")
            expect(yield* spent).toBe(httpAmount)
          }
        }).pipe(Effect.scoped),
      240_000
    )
  }
)

const isCall = ({ method }: Json) => method === "tools/call"
const paymentOf = (message: Json) => message["params"]?._meta?.["x402/payment"]
const rpc = (message: Json, result: unknown) => JSON.stringify({ jsonrpc: "2.0", id: message["id"], result })

/** Endless events without the response. */
const eventsWithoutEnd: NonNullable<Behaviour["wire"]> = (message, response) => {
  if (!isCall(message)) return false
  response.writeHead(200, { "content-type": "text/event-stream" })
  const timer = setInterval(() => response.write(": still here\n\n"), 20)
  response.on("close", () => clearInterval(timer))
  return true
}

/** As many small events as a response may be long. */
const millionEvents: NonNullable<Behaviour["wire"]> = (message, response) => {
  if (!isCall(message)) return false
  response.writeHead(200, { "content-type": "text/event-stream" }).end("data:1\n\n".repeat(1_000_000))
  return true
}

const hugeBlocks: NonNullable<Behaviour["wire"]> = (message, response) => {
  if (!isCall(message)) return false
  const content = Array.from({ length: 9 }, () => ({ type: "text", text: "x".repeat(1_048_576) }))
  response.writeHead(200, { "content-type": "application/json" }).end(rpc(message, { content }))
  return true
}

const answersAnother: NonNullable<Behaviour["wire"]> = (message, response) => {
  if (!isCall(message)) return false
  response.writeHead(200, { "content-type": "application/json" }).end(rpc({ ...message, id: 999 }, { content: [] }))
  return true
}

/** An endless list of tools. */
const toolsWithoutEnd: NonNullable<Behaviour["wire"]> = (message, response) => {
  if (message["method"] !== "tools/list") return false
  response
    .writeHead(200, { "content-type": "application/json" })
    .end(rpc(message, { tools: [{ name: "other", inputSchema: {} }], nextCursor: "more" }))
  return true
}

const oddSession: NonNullable<Behaviour["wire"]> = (message, response) => {
  if (message["method"] !== "initialize") return false
  const result = { protocolVersion: "2025-06-18", capabilities: {}, serverInfo: { name: "x", version: "1" } }
  response.writeHead(200, { "content-type": "application/json", "mcp-session-id": "a b c" }).end(rpc(message, result))
  return true
}

layer(PayWorld.layer, { excludeTestServices: true, timeout: 240_000 })("an MCP seller that misuses the wire", (it) => {
  let fresh = 0
  const args = () => ({ a: ++fresh, b: 90_000 })

  it.effect(
    "an MCP seller that streams endlessly gets nothing signed and is capped [S209, S234, S238]",
    () =>
      Effect.gen(function* () {
        const { paying, ref, seller } = yield* PayWorld
        const client = yield* paying()
        const impatient = yield* paying(quick)
        const cases: ReadonlyArray<readonly [what: string, said: string, wire: NonNullable<Behaviour["wire"]>]> = [
          ["sends events without end", "did not answer in time", eventsWithoutEnd],
          ["sends a million events", "does not match the request", millionEvents],
          ["sends huge blocks", "too large", hugeBlocks],
          ["answers something else", "does not match the request", answersAnother],
          ["lists tools without end", "differ from the catalog", toolsWithoutEnd],
          ["names its session with spaces", "session id is invalid", oddSession]
        ]
        for (const [what, said, wire] of cases) {
          const methods = seller.methods.length
          seller.behaviour = { wire }
          const asking = wire === eventsWithoutEnd ? impatient : client
          expect((yield* pay(asking, ref, args())).body["message"], what).toContain(said)
          expect(seller.methods.length - methods).toBeLessThanOrEqual(8)
        }
        seller.behaviour = {}
        expect(seller.calls.filter(({ payment }) => payment !== undefined)).toEqual([])
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect(
    "an MCP seller answering with redirects or garbage has one payment [S213, S232]",
    () =>
      Effect.gen(function* () {
        const { agent, facilitator, paying, ref, seller } = yield* PayWorld
        const sent: Array<string> = []
        const elsewhere: Array<string> = []
        const onceWith =
          (wire: NonNullable<Behaviour["wire"]>): NonNullable<Behaviour["wire"]> =>
          (message, response, request) => {
            if (!isCall(message) || paymentOf(message) === undefined) return false
            sent.push(JSON.stringify(paymentOf(message)))
            if (request.url !== "/mcp") elsewhere.push(request.url ?? "")
            return wire(message, response, request)
          }
        const redirected = onceWith((_, response) => {
          response.writeHead(307, { location: "/mcp/elsewhere" }).end()
          return true
        })
        const neverEnding = onceWith(eventsWithoutEnd)
        for (const wire of [redirected, neverEnding, onceWith(millionEvents), onceWith(answersAnother)]) {
          const caps = wire === neverEnding ? quick : []
          const client = yield* paying([`budget.max_per_day=${amount}`, soon, ...caps])
          const before = yield* facilitator.balance(agent.publicKey())
          const own = args()
          sent.length = 0
          seller.behaviour = { wire }
          expect((yield* pay(client, ref, own)).body["code"]).toBe("SETTLEMENT_UNKNOWN")
          yield* pay(client, ref, own)
          expect((yield* pay(client, ref, args())).body["code"]).toBe("BUDGET_EXCEEDED")
          expect([new Set(sent).size, elsewhere]).toEqual([1, []])
          seller.behaviour = {}
          expect((yield* pay(client, ref, own)).body["receipt"]?.status).toBe("settled")
          expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(amount)
        }
      }).pipe(Effect.scoped),
    240_000
  )
})
