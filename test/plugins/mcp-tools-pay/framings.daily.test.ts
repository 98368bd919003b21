// Paid content arrives unchanged, however a seller frames it: over raw sockets, since HTTP libraries do not write such
// answers. Content that cannot be framed is returned unchanged, with the reason. Numbers and names are never changed.
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Duplex } from "node:stream"
import { brotliCompressSync, deflateRawSync, gzipSync } from "node:zlib"
import { makeRandom } from "../../simulation/random.ts"
import { randomJson } from "../../support/randomJson.ts"
import { inexactIn } from "../../../plugins/mcp-tools/exactJson.ts"
import { connectSse, type Json } from "../mcp-tools/support.ts"
import { httpAmount, type HttpReply } from "./httpSeller.ts"
import { enabled, fetched, HttpWorld, query } from "./httpWorld.ts"
import { agentKey, connectStdio, pay, PayWorld, stdioCommand } from "./payWorld.ts"
import { amount } from "./seller.ts"

let fresh = 0
const args = () => ({ a: ++fresh, b: 140_000 })

const lines = (head: ReadonlyArray<string>, newline = "\r\n") => [...head, "", ""].join(newline)
const headOf = ({ headers }: HttpReply, status = "200 OK", more: ReadonlyArray<string> = []) => [
  `HTTP/1.1 ${status}`,
  ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ...more
]
const text = ({ body }: HttpReply) => String(body)

/** How the answer to a payment is written, and the status that the agent sees. */
const framings: ReadonlyArray<readonly [string, number, (socket: Duplex, reply: HttpReply) => void]> = [
  [
    "20 KB of headers",
    200,
    (socket, reply) =>
      socket.end(
        lines(
          headOf(
            reply,
            "200 OK",
            Array.from({ length: 20 }, (_, at) => `x-${at}: ${"v".repeat(1_000)}`)
          )
        ) + text(reply)
      )
  ],
  [
    "Content-Length twice",
    200,
    (socket, reply) => {
      const length = `content-length: ${text(reply).length}`
      socket.end(lines(headOf(reply, "200 OK", [length, length])) + text(reply))
    }
  ],
  [
    "two lengths that differ",
    200,
    (socket, reply) =>
      socket.end(lines(headOf(reply, "200 OK", ["content-length: 3", "content-length: 9"])) + text(reply))
  ],
  ["bare line feeds", 200, (socket, reply) => socket.end(lines(headOf(reply), "\n") + text(reply))],
  [
    "a line that is no header",
    200,
    (socket, reply) => socket.end(lines(headOf(reply, "200 OK", ["no header"])) + text(reply))
  ],
  ["300 with a body", 300, (socket, reply) => socket.end(lines(headOf(reply, "300 Multiple Choices")) + text(reply))],
  [
    "302 with a body",
    302,
    (socket, reply) => socket.end(lines(headOf(reply, "302 Found", ["location: /elsewhere"])) + text(reply))
  ],
  [
    "a length that is too short",
    200,
    (socket, reply) => socket.end(lines(headOf(reply, "200 OK", ["content-length: 5"])) + text(reply))
  ],
  ["204 with a body", 204, (socket, reply) => socket.end(lines(headOf(reply, "204 No Content")) + text(reply))],
  ["304 with a body", 304, (socket, reply) => socket.end(lines(headOf(reply, "304 Not Modified")) + text(reply))],
  ["an empty line first", 200, (socket, reply) => socket.end(`\r\n${lines(headOf(reply))}${text(reply)}`)],
  [
    "no coding by name",
    200,
    (socket, reply) => socket.end(lines(headOf(reply, "200 OK", ["content-encoding: identity"])) + text(reply))
  ],
  [
    "gzip, which was not offered",
    200,
    (socket, reply) => {
      socket.write(lines(headOf(reply, "200 OK", ["content-encoding: gzip"])))
      socket.end(gzipSync(text(reply)))
    }
  ],
  ["a byte order mark", 200, (socket, reply) => socket.end(lines(headOf(reply)) + "\ufeff" + text(reply))]
]

const settle = (facilitator: string, payment: Json): Promise<Json> =>
  fetch(`${facilitator}/settle`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ x402Version: 2, paymentPayload: payment, paymentRequirements: payment["accepted"] })
  }).then((answer) => answer.json() as Promise<Json>)

/** A client of a tool server, over each transport. */
const transports = [
  ["HTTP", Effect.flatMap(PayWorld, ({ paying }) => paying([enabled]))],
  [
    "SSE",
    Effect.flatMap(PayWorld, ({ toolsUrl }) =>
      Effect.flatMap(toolsUrl([enabled]), (url) => connectSse(url, agentKey.split(":")[1]))
    )
  ],
  ["stdio", Effect.flatMap(stdioCommand(mkdtempSync(join(tmpdir(), "tollkeeper-framings-")), [enabled]), connectStdio)]
] as const

layer(HttpWorld.layer, { excludeTestServices: true, timeout: 240_000 })("a paid answer", (it) => {
  it.effect(
    "paid HTTP content is delivered in every framing [S214, S238]",
    () =>
      Effect.gen(function* () {
        const { agent, facilitator, paying } = yield* PayWorld
        const { ref, seller } = yield* HttpWorld
        const client = yield* paying([enabled])
        const before = yield* facilitator.balance(agent.publicKey())
        for (const [what, status, raw] of framings) {
          seller.behaviour = { raw: { paid: raw } }
          const { body } = yield* fetched(client, ref)
          expect([what, body["json"]?.celsius, body["status"], body["receipt"]?.status, body["message"]]).toEqual([
            what,
            17,
            status,
            "settled",
            undefined
          ])
        }
        // A non-HTTP answer is returned unchanged.
        seller.behaviour = { raw: { paid: (socket) => socket.end("17 degrees, and no head") } }
        const own = { query: query() }
        expect((yield* fetched(client, ref, own)).body).toMatchObject({
          code: "SETTLEMENT_UNKNOWN",
          message: expect.stringContaining("not valid HTTP"),
          details: { paid: true, partialContent: { text: "17 degrees, and no head" } }
        })
        seller.behaviour = {}
        expect((yield* fetched(client, ref, own)).body["receipt"]?.status).toBe("settled")
        expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(httpAmount * BigInt(framings.length + 1))
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect(
    "a paid MCP answer is read compressed, resumed, and as an error [S214, S238]",
    () =>
      Effect.gen(function* () {
        const { agent, facilitator, paying, ref, seller } = yield* PayWorld
        const client = yield* paying()
        const before = yield* facilitator.balance(agent.publicKey())
        let waiting = ""
        const result = (message: Json, settled: Json) => {
          const { a, b } = message["params"].arguments
          const meta = { "x402/payment-response": settled }
          return {
            jsonrpc: "2.0",
            id: message["id"],
            result: { content: [], structuredContent: { sum: a + b }, _meta: meta }
          }
        }
        const answers = {
          gzip: (message: Json, settled: Json, response: any) =>
            response
              .writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" })
              .end(gzipSync(JSON.stringify(result(message, settled)))),
          "gzip events": (message: Json, settled: Json, response: any) =>
            response
              .writeHead(200, { "content-type": "text/event-stream", "content-encoding": "gzip" })
              .end(gzipSync(`data: ${JSON.stringify(result(message, settled))}\n\n`)),
          "br events": (message: Json, settled: Json, response: any) =>
            response
              .writeHead(200, { "content-type": "text/event-stream", "content-encoding": "br" })
              .end(brotliCompressSync(`data: ${JSON.stringify(result(message, settled))}\n\n`)),
          "no coding, declared as gzip": (message: Json, settled: Json, response: any) =>
            response
              .writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" })
              .end(JSON.stringify(result(message, settled))),
          "deflate without its header": (message: Json, settled: Json, response: any) =>
            response
              .writeHead(200, { "content-type": "application/json", "content-encoding": "deflate" })
              .end(deflateRawSync(JSON.stringify(result(message, settled)))),
          "events declared as JSON": (message: Json, settled: Json, response: any) =>
            response
              .writeHead(200, { "content-type": "application/json" })
              .end(`event: message\ndata: ${JSON.stringify(result(message, settled))}\n\n`),
          "JSON declared as events": (message: Json, settled: Json, response: any) =>
            response
              .writeHead(200, { "content-type": "text/event-stream" })
              .end(JSON.stringify(result(message, settled))),
          resumed: (message: Json, settled: Json, response: any) => {
            waiting = JSON.stringify(result(message, settled))
            response.writeHead(200, { "content-type": "text/event-stream" }).end("retry: 10\nid: e-1\ndata: \n\n")
          },
          error: (message: Json, _settled: Json, response: any) =>
            response.writeHead(200, { "content-type": "application/json" }).end(
              JSON.stringify({
                jsonrpc: "2.0",
                id: message["id"],
                error: { code: -32_603, message: "42 is the answer" }
              })
            )
        }
        for (const [what, answer] of Object.entries(answers)) {
          seller.behaviour = {
            wire: (message, response, request) => {
              if (request.method === "GET" && request.headers["last-event-id"] === "e-1") {
                response.writeHead(200, { "content-type": "text/event-stream" }).end(`id: e-2\ndata: ${waiting}\n\n`)
                return true
              }
              const payment = message["params"]?._meta?.["x402/payment"]
              if (payment === undefined) return false
              void settle(facilitator.url, payment).then((settled) => answer(message, settled, response))
              return true
            }
          }
          const own = args()
          const { body } = yield* pay(client, ref, own)
          const [sum, said] = [body["structuredContent"]?.sum, JSON.stringify(body["content"] ?? [])]
          expect([what, body["receipt"]?.status, body["message"]]).toEqual([what, "settled", undefined])
          if (what === "error") expect(said).toContain("42 is the answer")
          else expect([what, sum]).toEqual([what, own.a + own.b])
        }
        seller.behaviour = {}
        expect(before - (yield* facilitator.balance(agent.publicKey()))).toBe(
          amount * BigInt(Object.keys(answers).length)
        )
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect.each(transports)(
    "random JSON goes in and comes out the same over %s [S214]",
    ([, connect]) =>
      Effect.gen(function* () {
        const { ref, seller } = yield* PayWorld
        const { ref: page, seller: shop } = yield* HttpWorld
        const client = yield* connect
        const seen = { exact: 0, inexact: 0 }
        for (let seed = 1; seed <= 6; seed++) {
          const random = makeRandom(seed)
          const more = seed % 2 === 0 ? "" : random.pick([',"id":1917043659912705296', ',"n":1', ',"x":[1e400]'])
          const sold = `{"n":${randomJson(random, seed % 2 === 0, 5)}${more}}`
          const isExact = inexactIn(sold) === undefined
          seen[isExact ? "exact" : "inexact"] += 1
          shop.behaviour = { paid: (reply) => ({ ...reply, body: sold }) }
          const { body } = yield* fetched(client, page)
          if (isExact) expect([seed, body["json"]]).toEqual([seed, JSON.parse(sold)])
          else expect([seed, body["json"], body["text"]]).toEqual([seed, undefined, sold])
          seller.behaviour = {
            isStateless: true,
            text: (sent) => sent.replace(/"structuredContent":\{"sum":\d+\}/, () => `"structuredContent":${sold}`)
          }
          const own = { ...args(), more: JSON.parse(randomJson(random, true, 5)) }
          const { body: called } = yield* pay(client, ref, own)
          expect([seed, seller.calls.at(-1)!.args]).toEqual([seed, own])
          const { structuredContent, structuredContentText } = called
          expect([seed, structuredContent, structuredContentText]).toEqual(
            isExact ? [seed, JSON.parse(sold), undefined] : [seed, undefined, sold]
          )
        }
        seller.behaviour = {}
        shop.behaviour = {}
        expect(Math.min(seen.exact, seen.inexact)).toBe(3)
      }).pipe(Effect.scoped),
    240_000
  )

  it.effect("arguments that a number would not survive are refused before payment", () =>
    Effect.gen(function* () {
      const { ref, seller, toolsUrl } = yield* PayWorld
      const url = yield* toolsUrl()
      const calls = seller.calls.length
      const headers = {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        authorization: `Bearer ${agentKey.split(":")[1]}`
      }
      const sent = (body: string, session?: string) =>
        Effect.promise(() =>
          fetch(`${url}/mcp`, {
            method: "POST",
            headers: { ...headers, ...(session === undefined ? {} : { "mcp-session-id": session }) },
            body
          }).then(async (answer) => ({ session: answer.headers.get("mcp-session-id"), text: await answer.text() }))
        )
      const clientInfo = { name: "host", version: "1" }
      const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo }
      const { session } = yield* sent(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }))
      for (const literal of ["1917043659912705296", "1e400", "0.12345678901234567890"]) {
        const asked = `{"name":"x402_call_resource","arguments":{"ref":"${ref}","arguments":{"a":${literal}}}}`
        const { text } = yield* sent(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":${asked}}`, session!)
        expect(text).toContain("INVALID_ARGUMENT")
        expect(text).toContain(literal.slice(0, 20))
      }
      expect(seller.calls.length).toBe(calls)
    }).pipe(Effect.scoped)
  )
})
