// Clients over bare sockets that cost a listener more than themselves: endless requests before one answer is read,
// answers that are never read, heads, bodies and framing that never end, unlimited connections. On Node and Deno.
import { describe, expect, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { once } from "node:events"
import type { IncomingMessage, ServerResponse } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { Listeners } from "../../../kernel/platform/Listeners.ts"
import type { ConnectionLimits } from "../../../runtime/platform/connections.ts"
import { makeHttpServer } from "../../../runtime/platform/httpServer.ts"
import * as NodeListeners from "../../../runtime/platform/nodeListeners.ts"
import { eventually } from "../../support/eventually.ts"

const large = Buffer.alloc(100_000, "x")

interface Listening {
  readonly port: number
  /** Paths of begun requests, in order. */
  readonly begun: Array<string>
  /** Open answers to requests of /held; the test ends them. */
  readonly held: Array<ServerResponse>
  /** The server's connections. */
  readonly sockets: Set<Socket>
}

/**
 * Answers `/large` with 100 KB, `/huge` with 60 MB and `/refused` with 401, never answers `/held`, and answers
 * everything else with its path.
 */
const listen = (limits: Partial<ConnectionLimits> = {}): Effect.Effect<Listening, never, Scope.Scope> =>
  Effect.gen(function* () {
    const begun: Array<string> = []
    const held: Array<ServerResponse> = []
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      const path = request.url ?? ""
      begun.push(path)
      if (path === "/held") held.push(response)
      else if (path === "/read") request.resume().once("end", () => response.end(path))
      else if (path === "/refused") response.writeHead(401).end(path)
      else if (path === "/via") response.end(`via ${request.headers["via"]}`)
      else response.end(path === "/large" ? large : path === "/huge" ? Buffer.alloc(60_000_000) : path)
    }
    const { server } = makeHttpServer(limits)
    const sockets = new Set<Socket>()
    server.on("connection", (socket: Socket) => {
      sockets.add(socket)
      socket.once("close", () => sockets.delete(socket))
    })
    server.on("request", answer).on("checkContinue", answer)
    server.listen(0, "127.0.0.1")
    yield* Effect.promise(() => once(server, "listening"))
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
    )
    return { port: (server.address() as AddressInfo).port, begun, held, sockets }
  })

interface Client {
  readonly socket: Socket
  readonly text: () => string
  readonly isClosed: () => boolean
}

const open = (port: number, sent: string, { from = "127.0.0.1", reads = true } = {}) =>
  Effect.acquireRelease(
    Effect.sync((): Client => {
      const socket = connect({ port, host: "127.0.0.1", localAddress: from })
      const chunks: Array<Buffer> = []
      let isClosed = false
      socket.on("error", () => undefined).on("close", () => (isClosed = true))
      if (reads) socket.on("data", (chunk: Buffer) => chunks.push(chunk))
      else socket.pause()
      socket.write(sent)
      return { socket, text: () => Buffer.concat(chunks).toString("latin1"), isClosed: () => isClosed }
    }),
    ({ socket }) => Effect.sync(() => socket.destroy())
  )

/** A closed client's writes are lost; a client that is never closed fails the test by timeout. */
const keepWriting = ({ isClosed, socket }: Client, text: string) =>
  eventually(
    Effect.sync(() => {
      if (!isClosed()) socket.write(text)
      return isClosed()
    }),
    (closed) => closed
  )

const closed = ({ isClosed }: Client) => eventually(Effect.sync(isClosed), (is) => is)
const shows = (client: Client, word: string) => eventually(Effect.sync(client.text), (text) => text.includes(word))
const head = (path: string, ...headers: ReadonlyArray<string>) =>
  [`GET ${path} HTTP/1.1`, "host: a", ...headers, "", ""].join("\r\n")
const post = (path: string, ...headers: ReadonlyArray<string>) => head(path, ...headers).replace("GET", "POST")
const chunked = "transfer-encoding: chunked"

describe("requests before an answer is read", () => {
  // Deno's server does not provide the version.
  it.live.skipIf("Deno" in globalThis)("a caller that speaks HTTP/1.0 counts as a proxy", () =>
    Effect.gen(function* () {
      const { port } = yield* listen()
      const old = yield* open(port, "GET /via HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
      const client = yield* open(port, "GET /via HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
      yield* eventually(Effect.sync(() => old.text().includes("via 1.0 unnamed")))
      yield* eventually(Effect.sync(() => client.text().includes("via undefined")))
    })
  )

  it.live("begins none while the answers before it are unread", () =>
    Effect.gen(function* () {
      const { begun, port } = yield* listen()
      const hostile = yield* open(port, head("/large").repeat(900), { reads: false })
      yield* eventually(
        Effect.sync(() => begun.length),
        (count) => count > 0
      )
      // Others are served in between, and only the requests in the sockets have begun.
      for (let at = 0; at < 20; at++) yield* shows(yield* open(port, head(`/other-${at}`)), `/other-${at}`)
      expect(begun.filter((path) => path === "/large").length).toBeLessThan(200)
      hostile.socket.on("data", () => undefined).resume()
      yield* eventually(
        Effect.sync(() => begun.filter((path) => path === "/large").length),
        (count) => count === 900
      )
    })
  )

  it.live("answers a reading client's requests in order", () =>
    Effect.gen(function* () {
      const { port } = yield* listen()
      const paths = Array.from({ length: 500 }, (_, at) => `/n${at};`)
      const client = yield* open(port, paths.map((path) => head(path)).join(""))
      const text = yield* shows(client, "/n499;")
      expect(text.match(/\/n\d+;/g)).toEqual(paths)
    })
  )

  it.live("parses and reads little of what comes behind a request that waits", () =>
    Effect.gen(function* () {
      const { begun, held, port, sockets } = yield* listen()
      const paths = Array.from({ length: 10_000 }, (_, at) => `/n${at};`)
      const client = yield* open(port, head("/held") + paths.map((path) => head(path)).join(""))
      yield* shows(yield* open(port, head("/other")), "/other")
      expect(begun).toEqual(["/held", "/other"])
      for (const { bytesRead } of sockets) expect(bytesRead).toBeLessThan(140_000)
      held[0]!.end()
      const text = yield* shows(client, "/n9999;")
      expect(text.match(/\/n\d+;/g)).toEqual(paths)
    })
  )

  it.live("holds requests that expect leave to send to the same order", () =>
    Effect.gen(function* () {
      const { begun, port } = yield* listen()
      const client = yield* open(
        port,
        head("/held") + post("/b", "expect: 100-continue", "content-length: 0").repeat(5) + head("/c")
      )
      yield* shows(yield* open(port, head("/other")), "/other")
      expect(begun).toEqual(["/held", "/other"])
      expect(client.text()).toBe("")
    })
  )

  it.live("answers an offer to upgrade as any request", () =>
    Effect.gen(function* () {
      const { port } = yield* listen()
      const client = yield* open(port, head("/plain", "connection: upgrade", "upgrade: h2c"))
      expect(yield* shows(client, "/plain")).toMatch(/^HTTP\/1.1 200/)
    })
  )
})

describe("deadlines and bytes", () => {
  it.live.each(["/huge", "/large"])("closes the connection of a client that never reads %s", (path) =>
    Effect.gen(function* () {
      const { begun, port, sockets } = yield* listen({ unsentMillis: 300, sentPerMilli: 100_000 })
      yield* open(port, head(path).repeat(200), { reads: false })
      yield* eventually(Effect.sync(() => begun.length > 0 && sockets.size === 0))
    })
  )

  it.live("closes the longest waiting ones above the limit of unsent bytes", () =>
    Effect.gen(function* () {
      const { begun, port, sockets } = yield* listen({ unsentBytesMax: 130_000_000 })
      for (let at = 0; at < 4; at++) yield* open(port, head("/huge"), { reads: false })
      yield* eventually(Effect.sync(() => begun.length === 4 && sockets.size <= 2))
      // Two are within the limit and may finish.
      expect(sockets.size).toBe(2)
    })
  )

  const slow = { headMillis: 400, bodyMillis: 400, silentMillis: 400, restMillis: 400 }
  it.live.each([
    ["a head", "GET / HTTP/1.1\r\nhost: a\r\n", "x: y\r\n"],
    ["a body", post("/held", "content-length: 100000"), "x"],
    ["chunks", post("/held", chunked), "1\r\nx\r\n"],
    ["a chunk's extension", `${post("/held", chunked)}5;`, "x"],
    ["a body after its answer", post("/answered", "content-length: 100000"), "x"],
    ["a chunk's extension after its answer", `${post("/answered", chunked)}5;`, "x"],
    ["the head after an answer", `${head("/answered")}GET / HTTP/1.1\r\n`, "x: y\r\n"]
  ] as ReadonlyArray<readonly [string, string, string]>)("closes a connection that drips %s", ([, first, drop]) =>
    Effect.gen(function* () {
      const { port } = yield* listen(slow)
      yield* keepWriting(yield* open(port, first), drop)
    })
  )

  it.live.each([
    ["silent", ""],
    ["at rest", head("/answered")]
  ] as ReadonlyArray<readonly [string, string]>)("closes a connection that stays %s", ([, first]) =>
    Effect.gen(function* () {
      const { port } = yield* listen(slow)
      yield* closed(yield* open(port, first))
    })
  )

  it.live.each([
    ["a chunk's extension", `${post("/held", chunked)}5;`],
    ["chunks", post("/held", chunked)],
    ["a body after its answer", post("/answered", "content-length: 900000000")]
  ] as ReadonlyArray<readonly [string, string]>)("closes a connection that floods %s", ([name, first]) =>
    Effect.gen(function* () {
      const { port } = yield* listen({ requestBytesMax: 200_000 })
      const piece = name === "chunks" ? "1\r\nx\r\n".repeat(10_000) : "x".repeat(60_000)
      yield* keepWriting(yield* open(port, first), piece)
    })
  )

  it.live("closes a connection whose body comes in thousands of small parts", () =>
    Effect.gen(function* () {
      const { port } = yield* listen()
      const sent = (count: number) => open(port, `${post("/read", chunked)}${"1\r\nx\r\n".repeat(count)}0\r\n\r\n`)
      yield* shows(yield* sent(1_000), "/read")
      const many = yield* sent(2_000)
      yield* closed(many)
      expect(many.text()).not.toContain("/read")
    })
  )

  it.live("answers a client of many headers with 431 or nothing", () =>
    Effect.gen(function* () {
      const { begun, port } = yield* listen()
      const many = Array.from({ length: 900 }, (_, at) => `h${at}: v`)
      const client = yield* open(port, head("/many", ...many))
      yield* closed(client)
      expect([client.text().split(" ")[1], begun]).toEqual(["431", []])
    })
  )

  it.live("reads a client that takes its time within the limits", () =>
    Effect.gen(function* () {
      const { port } = yield* listen()
      const client = yield* open(port, "POST /slowly HTTP/1.1\r\nhost: a\r\n")
      for (const piece of ["content-length: 3\r\n\r\n", "a", "b", "c"]) {
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        client.socket.write(piece)
      }
      yield* shows(client, "/slowly")
    })
  )
})

describe("addresses that wait", () => {
  it.live("a refused request that is repeated waits, and others do not", () =>
    Effect.gen(function* () {
      const { begun, port } = yield* listen()
      const neighbor = yield* open(port, head("/before"))
      yield* shows(neighbor, "/before")
      const hostile = yield* open(port, head("/refused").repeat(200))
      // Twenty, and then one for each wait of a second.
      yield* eventually(Effect.sync(() => begun.length > 20))
      neighbor.socket.write(head("/after"))
      yield* shows(neighbor, "/after")
      yield* shows(yield* open(port, head("/elsewhere"), { from: "127.0.0.2" }), "/elsewhere")
      expect(begun.length).toBeLessThan(60)
      const [refused, from] = [begun.length, performance.now()]
      yield* eventually(Effect.sync(() => begun.length > refused))
      expect(performance.now() - from).toBeGreaterThan(100)
      expect(hostile.isClosed()).toBe(false)
    })
  )

  it.live("a refused request on a connection of its own waits as well", () =>
    Effect.gen(function* () {
      const { begun, port } = yield* listen()
      const refused = yield* Effect.all(Array.from({ length: 60 }, () => open(port, head("/refused"))))
      for (const one of refused) yield* shows(one, "HTTP/1.1 401")
      const from = performance.now()
      yield* shows(yield* open(port, head("/late")), "/late")
      expect(performance.now() - from).toBeGreaterThan(100)
      expect(begun.at(-1)).toBe("/late")
    })
  )
})

describe("connections in number", () => {
  it.live("lets a new one of an address take the place of one at rest", () =>
    Effect.gen(function* () {
      const { port } = yield* listen({ perAddressMax: 8 })
      const silent: Array<Client> = []
      for (let at = 0; at < 8; at++) silent.push(yield* open(port, at % 2 === 0 ? "" : "GET / HT"))
      for (let at = 0; at < 4; at++) yield* shows(yield* open(port, head(`/n${at}`)), `/n${at}`)
      yield* eventually(Effect.sync(() => silent.filter(({ isClosed }) => isClosed()).length === 4))
    })
  )

  it.live("refuses an address whose connections all wait, and no other", () =>
    Effect.gen(function* () {
      const { held, port } = yield* listen({ perAddressMax: 8 })
      for (let at = 0; at < 8; at++) yield* open(port, head("/held"))
      yield* eventually(
        Effect.sync(() => held.length),
        (count) => count === 8
      )
      yield* closed(yield* open(port, head("/ninth")))
      yield* shows(yield* open(port, head("/neighbor"), { from: "127.0.0.2" }), "/neighbor")
    })
  )

  it.live("keeps the last quarter of all connections for payments", () =>
    Effect.gen(function* () {
      const { held, port } = yield* listen({ connectionsMax: 8, perAddressMax: 8 })
      for (let at = 0; at < 6; at++) yield* open(port, head("/held"))
      yield* eventually(
        Effect.sync(() => held.length),
        (count) => count === 6
      )
      const other = yield* open(port, head("/other"))
      expect(yield* shows(other, "HTTP/1.1 503")).not.toContain("/other")
      yield* shows(yield* open(port, post("/verify", "content-length: 0"), { from: "127.0.0.2" }), "/verify")
    })
  )

  it.live("counts a trusted proxy's connections in all alone", () =>
    Effect.gen(function* () {
      const isTrusted = (address: string) => address.endsWith("127.0.0.3")
      const { held, port } = yield* listen({ perAddressMax: 2, isTrusted })
      for (let at = 0; at < 6; at++) yield* open(port, head("/held"), { from: "127.0.0.3" })
      yield* eventually(
        Effect.sync(() => held.length),
        (count) => count === 6
      )
    })
  )

  it.live("gives turns to the addresses behind a trusted proxy", () =>
    Effect.gen(function* () {
      const { begun, port } = yield* listen({ isTrusted: (address) => address.endsWith("127.0.0.3") })
      const from = "127.0.0.3"
      for (let at = 0; at < 60; at++) yield* open(port, head("/held", "x-forwarded-for: 192.0.2.1"), { from })
      yield* eventually(Effect.sync(() => begun.length >= 16))
      yield* shows(yield* open(port, head("/other", "x-forwarded-for: 192.0.2.2"), { from }), "/other")
      expect(begun.indexOf("/other")).toBeLessThan(40)
    })
  )
})

it.live("holds a plugin's listener to the same limits", () =>
  Effect.gen(function* () {
    const { open: openListener } = yield* Listeners
    const { port } = yield* openListener({ host: "127.0.0.1", port: 0, bodyBytesMax: 100 }, (request) =>
      Effect.succeed(new Response(new URL(request.url).pathname))
    )
    yield* keepWriting(yield* open(port, `${post("/", chunked)}5;`), "x".repeat(60_000))
    const paths = Array.from({ length: 100 }, (_, at) => `/n${at};`)
    const client = yield* open(port, paths.map((path) => head(path)).join(""))
    expect((yield* shows(client, "/n99;")).match(/\/n\d+;/g)).toEqual(paths)
  }).pipe(Effect.scoped, Effect.provide(NodeListeners.layer))
)
