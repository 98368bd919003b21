// A body read from a real connection: complete, in pieces, above the limit with and without declaring so, cut off, too
// slow, and from a client that waits for permission to send. Each on a bare server, and on the process's server, which
// passes a request on once the bytes that came with its head are read.
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Duration, Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { createServer } from "node:http"
import { type AddressInfo, connect } from "node:net"
import { makeHttpServer } from "../../../runtime/platform/httpServer.ts"
import { readNode } from "../../../runtime/platform/nodeRequestBytes.ts"

const lengthMax = 8

type Servers = "a bare server" | "the server of the process"

const servers = {
  "a bare server": () => createServer(),
  "the server of the process": () => makeHttpServer().server
} satisfies Record<Servers, () => ReturnType<typeof createServer>>

/** A server that reads bodies, with the result of the next one. */
const reader = (of: Servers, longest = Duration.seconds(60), bytesMax = lengthMax) =>
  Effect.gen(function* () {
    const read = yield* Deferred.make<string>()
    const answer = Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const body = yield* Effect.match(readNode(request, { bytesMax, longest }), {
        onFailure: ({ reason }) => reason,
        onSuccess: (bytes) => `read ${new TextDecoder().decode(bytes)}`
      })
      yield* Deferred.succeed(read, body)
      return HttpServerResponse.text(body)
    })
    const server = servers[of]()
    const handler = yield* NodeHttpServer.makeHandler(answer, { scope: yield* Effect.scope })
    server.on("request", handler)
    yield* Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void)))
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
    )
    return { port: (server.address() as AddressInfo).port, read: Deferred.await(read) }
  })

/** A connection that sends these texts, each after the previous one was sent. */
const send = (port: number, texts: ReadonlyArray<string>, isCutOff = false) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof connect>>((resume) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => {
        const next = ([first, ...others]: ReadonlyArray<string>): void => {
          if (first !== undefined) socket.write(first, () => setImmediate(() => next(others)))
          else if (isCutOff) socket.destroy()
        }
        next(texts)
        resume(Effect.succeed(socket))
      })
      socket.on("error", () => undefined)
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )

const head = (...headers: ReadonlyArray<string>) =>
  ["POST / HTTP/1.1", "host: 127.0.0.1", ...headers, "", ""].join("\r\n")
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`

for (const of of ["a bare server", "the server of the process"] as const)
  describe(of, () => {
    for (const [name, texts, found] of [
      ["a body that comes with its head", [`${head("content-length: 8")}12345678`], "read 12345678"],
      ["a body in pieces", [head("content-length: 8"), "1234", "5678"], "read 12345678"],
      [
        "a body in chunks",
        [`${head("transfer-encoding: chunked")}${chunk("1234")}`, chunk("56"), "0\r\n\r\n"],
        "read 123456"
      ],
      ["no body", [head("content-length: 0")], "read "],
      [
        "a body above the limit that does not say so",
        [`${head("transfer-encoding: chunked")}${chunk("12345678")}`, chunk("9"), chunk("more")],
        "too long"
      ],
      ["a body above the limit that is here", [`${head("content-length: 9")}123456789`], "too long"],
      [
        "a body of a client that expects 100-continue",
        [head("content-length: 4", "expect: 100-continue"), "1234"],
        "read 1234"
      ]
    ] as const)
      it.live(`${name}: ${found}`, () =>
        Effect.gen(function* () {
          const { port, read } = yield* reader(of)
          yield* send(port, texts)
          expect(yield* read).toBe(found)
        })
      )

    it.live.each([66_000, 100_000, 400_000])("reads a body of %i bytes in one piece to its end", (length) =>
      Effect.gen(function* () {
        const { port, read } = yield* reader(of, Duration.seconds(60), 1_000_000)
        const body = "0123456789".repeat(length / 10)
        const answer = yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}`, { method: "POST", body }))
        expect([answer.status, (yield* read) === `read ${body}`]).toEqual([200, true])
      }).pipe(Effect.scoped)
    )

    it.live("a body that is cut off is reported as such", () =>
      Effect.gen(function* () {
        const { port, read } = yield* reader(of)
        yield* send(port, [head("content-length: 8"), "1234"], true)
        expect(yield* read).toBe("cut off")
      })
    )

    it.live("a body that does not come in time is not waited for", () =>
      Effect.gen(function* () {
        const { port, read } = yield* reader(of, Duration.millis(50))
        yield* send(port, [head("content-length: 8"), "1234"])
        expect(yield* read).toBe("cut off")
      })
    )

    it.live("two requests in one piece are answered in their order", () =>
      Effect.gen(function* () {
        const { port } = yield* reader(of)
        const socket = yield* send(port, [`${head("content-length: 1")}1${head("content-length: 1")}2`])
        const result = yield* Effect.callback<string>((resume) => {
          let text = ""
          socket.on("data", (chunk: Buffer) => {
            text += chunk.toString()
            if (text.includes("read 2")) resume(Effect.succeed(text))
          })
        })
        expect(result.indexOf("read 1")).toBeGreaterThan(0)
        expect(result.indexOf("read 1")).toBeLessThan(result.indexOf("read 2"))
      })
    )
  })
