// Requests to the operator's own endpoints over keep-alive connections: their number, the handling of a broken one, and
// answers that are too long, compressed, late or redirected.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { gzipSync } from "node:zlib"
import { type HttpCall, HttpCalls } from "../../../kernel/platform/HttpCalls.ts"
import { layer } from "../../../runtime/platform/nodeHttpCalls.ts"
import { eventually } from "../../support/eventually.ts"

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void

/** A server with the number of its connections, and the requests that it received. */
const startServer = (answer: Answer) =>
  Effect.gen(function* () {
    const bodies: Array<string> = []
    const sockets = new Set<Socket>()
    let connections = 0
    const server = createServer((request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const body = Buffer.concat(chunks).toString()
        bodies.push(body)
        answer(request, response, body)
      })
    })
    server.on("connection", (socket: Socket) => {
      connections += 1
      sockets.add(socket)
      socket.once("close", () => sockets.delete(socket))
    })
    yield* Effect.acquireRelease(
      Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))),
      () =>
        Effect.sync(() => {
          for (const socket of sockets) socket.destroy()
          server.close()
        })
    )
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    return { url, bodies, sockets, connections: () => connections }
  })

const callTo = (url: string, body = "?", limits: Partial<HttpCall> = {}): HttpCall => ({
  url,
  headers: { "x-own": "one" },
  body,
  timeoutMillis: 600_000,
  bytesMax: 10_000,
  ...limits
})

const post = (call: HttpCall) => Effect.flatMap(HttpCalls, (calls) => calls.post(call))

const live = (name: string, test: () => Effect.Effect<void, unknown, import("effect").Scope.Scope | HttpCalls>) =>
  it.live(name, () => Effect.scoped(test()).pipe(Effect.provide(layer)))

describe("questions over open connections", () => {
  live("reuse one connection in sequence, and return body and headers unchanged", () =>
    Effect.gen(function* () {
      const server = yield* startServer((request, response, body) =>
        response.writeHead(200, { "retry-after": "7" }).end(`${request.method} ${request.headers["x-own"]} ${body} ü`)
      )
      for (const body of ["a", "b", "ü"]) {
        expect(yield* post(callTo(server.url, body))).toEqual({
          status: 200,
          retryAfter: "7",
          body: `POST one ${body} ü`
        })
      }
      expect([server.bodies, server.connections()]).toEqual([["a", "b", "ü"], 1])
    })
  )

  live("retry once on a new connection when theirs was closed", () =>
    Effect.gen(function* () {
      const server = yield* startServer((_request, response, body) => {
        if (body === "close") response.destroy()
        else response.end("said")
      })
      yield* post(callTo(server.url))
      expect(yield* Effect.flip(post(callTo(server.url, "close")))).toMatchObject({ reason: "unreachable" })
      expect(server.bodies).toEqual(["?", "close", "close"])
      // A new connection is never stale.
      expect(yield* Effect.flip(post(callTo(server.url, "close")))).toMatchObject({ reason: "unreachable" })
      expect(server.bodies).toEqual(["?", "close", "close", "close"])
      expect((yield* post(callTo(server.url))).body).toBe("said")
    })
  )

  live("share a bounded number of connections and send credentials of the address", () =>
    Effect.gen(function* () {
      const server = yield* startServer((request, response, body) =>
        setTimeout(() => response.end(`${body} ${request.headers.authorization}`), 20)
      )
      const url = server.url.replace("//", "//us%40er:secret@")
      const bodies = Array.from({ length: 300 }, (_, at) => String(at))
      const said = yield* Effect.forEach(bodies, (body) => post(callTo(url, body)), { concurrency: "unbounded" })
      const authorization = `Basic ${btoa("us@er:secret")}`
      expect(said.map(({ body }) => body)).toEqual(bodies.map((body) => `${body} ${authorization}`))
      expect(server.connections()).toBe(128)
    })
  )

  live("read no answer beyond its bound, packed or not", () =>
    Effect.gen(function* () {
      const server = yield* startServer((request, response, body) => {
        if (body === "packed") response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync("x".repeat(20_000)))
        else if (body === "small") response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync("small"))
        else if (body === "odd") response.writeHead(200, { "content-encoding": "odd" }).end("small")
        else {
          const more = () => {
            while (!response.destroyed && response.write("x".repeat(65_536))) void request
          }
          response.on("drain", more)
          more()
        }
      })
      expect((yield* post(callTo(server.url, "small"))).body).toBe("small")
      expect(yield* Effect.flip(post(callTo(server.url, "packed")))).toMatchObject({ reason: "too long" })
      expect(yield* Effect.flip(post(callTo(server.url, "odd")))).toMatchObject({ reason: "unreachable" })
      expect(yield* Effect.flip(post(callTo(server.url, "endless")))).toMatchObject({ reason: "too long" })
    })
  )

  live("end at their deadline or with their caller, and close the connection", () =>
    Effect.gen(function* () {
      const server = yield* startServer(() => {})
      expect(yield* Effect.flip(post(callTo(server.url, "late", { timeoutMillis: 50 })))).toMatchObject({
        reason: "timeout"
      })
      const asking = yield* Effect.forkChild(post(callTo(server.url, "left")))
      yield* eventually(Effect.sync(() => server.bodies.includes("left")))
      yield* Fiber.interrupt(asking)
      yield* eventually(Effect.sync(() => server.sockets.size === 0))
    })
  )

  live("follow no redirect", () =>
    Effect.gen(function* () {
      const stranger = yield* startServer((_request, response) => response.end("secret"))
      const server = yield* startServer((_request, response) =>
        response.writeHead(307, { location: stranger.url }).end()
      )
      expect((yield* post(callTo(server.url))).status).toBe(307)
      expect(stranger.bodies).toEqual([])
    })
  )
})
