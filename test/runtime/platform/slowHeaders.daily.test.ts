// Both kinds of listener close the connection of a client that never ends its request's head, on Node and on Deno.
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { once } from "node:events"
import { type AddressInfo, connect } from "node:net"
import { Listeners } from "../../../kernel/platform/Listeners.ts"
import { makeHttpServer } from "../../../runtime/platform/httpServer.ts"
import * as NodeListeners from "../../../runtime/platform/nodeListeners.ts"

const processListener = Effect.acquireRelease(
  Effect.promise(async () => {
    const { server } = makeHttpServer()
    server.on("request", (_request, response) => response.end("answered"))
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    return server
  }),
  (server) => Effect.sync(() => server.close())
).pipe(Effect.map((server) => (server.address() as AddressInfo).port))

const pluginListener = Effect.gen(function* () {
  const { open } = yield* Listeners
  const opened = yield* open({ host: "127.0.0.1", port: 0, bodyBytesMax: 100 }, () =>
    Effect.succeed(new Response("answered"))
  )
  return opened.port
}).pipe(Effect.provide(NodeListeners.layer))

describe("a client that never ends its request's head", () => {
  it.live.each([
    ["the process's listener", processListener],
    ["a plugin's listener", pluginListener]
  ] as ReadonlyArray<readonly [string, Effect.Effect<number, unknown, Scope.Scope>]>)(
    "is let go by %s, and one that ends it is answered",
    ([, listener]) =>
      Effect.gen(function* () {
        const port = yield* listener
        yield* Effect.promise(async () => {
          const slow = connect(port, "127.0.0.1")
          slow.on("error", () => undefined)
          slow.write("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
          // Bounded by the test's own timeout.
          await once(slow.resume(), "close")
          expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe("answered")
        })
      }).pipe(Effect.scoped),
    240_000
  )
})
