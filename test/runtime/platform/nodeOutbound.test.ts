// Answers of strangers, in a content coding or in parts of a byte: the work on an answer is bounded, and ends with it.
import { expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { createServer } from "node:http"
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net"
import * as zlib from "node:zlib"
import { Outbound, type OutboundRequest } from "../../../kernel/platform/Outbound.ts"
import { layer } from "../../../runtime/platform/nodeOutbound.ts"

/** Counts the decoders of brotli that are destroyed until the Scope closes. */
const countDestroyed = Effect.acquireRelease(
  Effect.sync(() => {
    const prototype = zlib.BrotliDecompress.prototype
    const { destroy } = prototype
    const counted = { prototype, destroyed: 0 }
    prototype.destroy = function (...given) {
      counted.destroyed += 1
      return destroy.apply(this, given)
    }
    return counted
  }),
  // Its own one is inherited.
  ({ prototype }) => Effect.sync(() => Reflect.deleteProperty(prototype, "destroy"))
)

const listening = <A extends Server>(server: A) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        await new Promise<void>((started) => server.listen(0, "127.0.0.1", started))
        return server
      }),
      (one) => Effect.sync(() => one.close())
    ),
    (one) => `http://127.0.0.1:${(one.address() as AddressInfo).port}/`
  )

const limits = { address: "127.0.0.1", method: "GET", headers: {}, decodes: true, timeoutMillis: 20_000 }
const ways = [{ partMillis: undefined }, { partMillis: 20_000 }]

const send = (request: Pick<OutboundRequest, "url" | "bytesMax" | "partMillis">) =>
  Effect.flatMap(Outbound, (outbound) => Effect.result(outbound.send({ ...limits, ...request })))

it.live.each(ways)("ends the decoding of an answer that is too long (%j)", ({ partMillis }) =>
  Effect.gen(function* () {
    const counted = yield* countDestroyed
    const body = zlib.brotliCompressSync(Buffer.alloc(16 * 2 ** 20))
    const headers = { "content-type": "application/json", "content-encoding": "br" }
    const url = yield* listening(createServer((_, response) => response.writeHead(200, headers).end(body)))
    yield* send({ url, bytesMax: 2 ** 20, partMillis })
    // The answer is given within the event that ends it.
    yield* Effect.yieldNow
    expect(counted.destroyed).toBeGreaterThan(0)
  }).pipe(Effect.scoped, Effect.provide(layer))
)

it.live.each(ways)("ends an answer in too many parts (%j)", ({ partMillis }) =>
  Effect.gen(function* () {
    const [bytesMax, sent] = [2 ** 18, "1\r\na\r\n".repeat(2 ** 16)]
    const head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n"
    const server = createTcpServer((socket) => {
      socket.on("error", () => {})
      socket.once("data", () => socket.end(`${head}${sent}0\r\n\r\n`))
    })
    const answer = yield* send({ url: yield* listening(server), bytesMax, partMillis })
    if (partMillis === undefined) expect(answer).toMatchObject({ failure: { reason: "too_large" } })
    else expect(answer).toMatchObject({ success: { cut: "too_large" } })
    if (Result.isSuccess(answer)) expect(answer.success.body.length).toBeLessThan(bytesMax / 8)
  }).pipe(Effect.scoped, Effect.provide(layer))
)
