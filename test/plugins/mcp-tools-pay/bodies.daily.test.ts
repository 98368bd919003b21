// Reading a paid HTTP body: pauses do not end it, a complete JSON document counts as complete even if its connection
// stays open or breaks, and an incomplete one is reported as such. The seller is a server of this machine that writes
// to its connection itself.
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import type { Json } from "../mcp-tools/support.ts"
import { type HttpReply, httpAmount } from "./httpSeller.ts"
import { enabled, fetched, HttpWorld } from "./httpWorld.ts"
import { PayWorld } from "./payWorld.ts"

const brief = "network_security.paid_call_timeout_ms=6000"

const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`

/** Writes the head of a chunked answer and its first chunk. */
const begin = (socket: Duplex, { headers, status }: HttpReply, text: string, type = "application/json") => {
  const head = Object.entries({ ...headers, "content-type": type }).map(([name, value]) => `${name}: ${value}`)
  socket.write([`HTTP/1.1 ${status} X`, ...head, "transfer-encoding: chunked", "", chunk(text)].join("\r\n"))
}

/** Writes each text after a pause, and ends. */
const continueWith = (socket: Duplex, texts: ReadonlyArray<string>, pauseMillis: number) =>
  texts.forEach((text, index) =>
    setTimeout(
      () => void socket.write(chunk(text) + (index === texts.length - 1 ? "0\r\n\r\n" : "")),
      (index + 1) * pauseMillis
    )
  )

const breakAfter = (socket: Duplex, millis: number) => setTimeout(() => (socket as Socket).resetAndDestroy(), millis)

type Raw = (socket: Duplex, reply: HttpReply) => void

layer(HttpWorld.layer, { excludeTestServices: true, timeout: 240_000 })("a paid HTTP body", (it) => {
  const world = Effect.gen(function* () {
    const { agent, facilitator, paying } = yield* PayWorld
    const { ref, seller } = yield* HttpWorld
    const client = yield* paying([enabled, brief])
    const buy = Effect.fnUntraced(function* (paid: Raw, unpaid?: Raw) {
      seller.behaviour = { raw: { paid, ...(unpaid === undefined ? {} : { unpaid }) } }
      const began = performance.now()
      const { body } = yield* fetched(client, ref)
      seller.behaviour = {}
      return { body: body as Json, millis: performance.now() - began }
    })
    const balance = facilitator.balance(agent.publicKey())
    return { balance, buy }
  })

  it.effect("is not ended by a pause of 400 ms, between documents or within one", () =>
    Effect.gen(function* () {
      const { balance, buy } = yield* world
      const before = yield* balance
      const documents = yield* buy((socket, reply) => {
        begin(socket, reply, '{"a":1}\n')
        continueWith(socket, ['{"b":2}\n', '{"c":3}\n'], 400)
      })
      expect(documents.body).toMatchObject({ text: '{"a":1}\n{"b":2}\n{"c":3}\n', receipt: { status: "settled" } })
      expect(documents.body["truncated"]).toBe(undefined)
      const one = yield* buy((socket, reply) => {
        begin(socket, reply, '{"a":[1')
        continueWith(socket, [",2", "]}"], 400)
      })
      expect(one.body).toMatchObject({ json: { a: [1, 2] }, receipt: { status: "settled" } })
      expect(before - (yield* balance)).toBe(httpAmount * 2n)
    }).pipe(Effect.scoped)
  )

  it.effect("is delivered as whole JSON when its connection stays open or breaks after it", () =>
    Effect.gen(function* () {
      const { buy } = yield* world
      const whole = '{"celsius":17}\n'
      const open = yield* buy((socket, reply) => begin(socket, reply, whole))
      const broken = yield* buy((socket, reply) => {
        begin(socket, reply, whole)
        breakAfter(socket, 400)
      })
      for (const { body } of [open, broken]) {
        expect(body).toMatchObject({ json: { celsius: 17 }, receipt: { status: "settled" } })
        expect(body["truncated"]).toBe(undefined)
      }
      // Nine tenths of its time, and not a pause, ended the open one.
      expect(open.millis).toBeGreaterThan(4_000)
    }).pipe(Effect.scoped)
  )

  it.effect("is named truncated when it never ends or breaks before it is whole", () =>
    Effect.gen(function* () {
      const { buy } = yield* world
      const endless: Raw = (socket, reply) => {
        begin(socket, reply, "tick\n", "text/plain")
        const ticking = setInterval(() => void socket.write(chunk("tick\n")), 100)
        socket.on("close", () => clearInterval(ticking))
        socket.on("error", () => clearInterval(ticking))
      }
      const parts: ReadonlyArray<readonly [Raw, unknown]> = [
        [endless, expect.stringMatching(/^(tick\n){15,}$/)],
        [
          (socket, reply) => {
            begin(socket, reply, '{"celsius":')
            breakAfter(socket, 400)
          },
          '{"celsius":'
        ],
        // Documents may follow the second, and a number may go on.
        [(socket, reply) => begin(socket, reply, '{"a":1}\n{"b":2}\n'), '{"a":1}\n{"b":2}\n'],
        [
          (socket, reply) => {
            begin(socket, reply, '["a",1]{"b":')
            breakAfter(socket, 400)
          },
          '["a",1]{"b":'
        ]
      ]
      for (const [raw, text] of parts) {
        const { body } = yield* buy(raw)
        expect(body).toMatchObject({
          code: "SETTLEMENT_UNKNOWN",
          message: expect.stringContaining("paid, part of the content"),
          details: { paid: true, partialContent: { text, truncated: true } }
        })
      }
      const number = yield* buy((socket, reply) => begin(socket, reply, "17"))
      expect(number.body).toMatchObject({ details: { partialContent: { json: 17, truncated: true } } })
    }).pipe(Effect.scoped)
  )

  it.effect("is asked for by an answer that a pause ends", () =>
    Effect.gen(function* () {
      const { buy } = yield* world
      const { body } = yield* buy(
        (socket, reply) => {
          begin(socket, reply, '{"celsius":17}')
          socket.write("0\r\n\r\n")
        },
        (socket, reply) => begin(socket, reply, String(reply.body))
      )
      expect(body).toMatchObject({ json: { celsius: 17 }, receipt: { status: "settled" } })
    }).pipe(Effect.scoped)
  )
})
