import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { request as httpRequest } from "node:http"
import { connect } from "node:net"
import {
  call,
  connectHttp,
  connectSse,
  type Json,
  listedResource,
  pageOf,
  substitute,
  substituteJson,
  startTools
} from "./support.ts"
import { eventually } from "../../support/eventually.ts"

const key = "agent:0123456789abcdef"
const otherKey = "other:fedcba9876543210"
const keys = { TOOLS_API_KEYS: `${key},${otherKey}` }
const secretOf = (entry: string) => entry.split(":")[1]!

const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "1" } }
}
const listTools = { jsonrpc: "2.0", id: 2, method: "tools/list", params: {} }
const accept = "application/json, text/event-stream"

interface Sent {
  readonly method?: string
  readonly body?: unknown
  readonly session?: string
  readonly key?: string
  readonly headers?: Record<string, string>
}

/** One raw request; the test chooses the client's headers, Host included. */
const send = (url: string, path: string, { body, headers, key, method = "POST", session }: Sent = {}) =>
  Effect.promise(
    () =>
      new Promise<{ readonly status: number; readonly headers: Record<string, unknown>; readonly text: string }>(
        (resolve, reject) => {
          const request = httpRequest(
            `${url}${path}`,
            {
              method,
              headers: {
                accept,
                "content-type": "application/json",
                ...(session === undefined ? {} : { "mcp-session-id": session }),
                ...(key === undefined ? {} : { authorization: `Bearer ${secretOf(key)}` }),
                ...headers
              }
            },
            (response) => {
              let text = ""
              response.setEncoding("utf8").on("data", (chunk: string) => void (text += chunk))
              response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
            }
          )
          request.on("error", reject)
          request.end(body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body))
        }
      )
  )

const begin = Effect.fnUntraced(function* (url: string, options: Sent = {}) {
  const answer = yield* send(url, "/mcp", { ...options, body: initialize })
  return { ...answer, session: String(answer.headers["mcp-session-id"]) }
})

const facilitator = substituteJson(pageOf(listedResource()))
const start = (set: ReadonlyArray<string> = [], environment: Record<string, string> = {}) =>
  Effect.flatMap(facilitator, (facilitatorUrl) => startTools({ facilitatorUrl, set, environment }))

const dataOf = (text: string): Json => JSON.parse(/^data: (.*)$/m.exec(text)![1]!)

describe("Streamable HTTP", () => {
  it.effect("Streamable HTTP serves the official client two read-only tools without a signer [S182, S201, S248]", () =>
    Effect.gen(function* () {
      const client = yield* connectHttp(yield* start())
      const { tools } = yield* Effect.promise(() => client.listTools())
      expect(
        tools.map(({ annotations, inputSchema, name }) => [
          name,
          annotations?.readOnlyHint,
          inputSchema.type,
          inputSchema["additionalProperties"]
        ])
      ).toEqual([
        ["x402_search_resources", true, "object", false],
        ["x402_get_resource", true, "object", false]
      ])
      expect(Object.keys(tools[0]!.inputSchema.properties!)).toEqual([
        "query",
        "type",
        "network",
        "scheme",
        "payTo",
        "asset",
        "extensions",
        "limit",
        "cursor",
        "detail"
      ])
      // An error must match the same schema as a result, so no member is required.
      expect(tools.map(({ outputSchema }) => [Object.keys(outputSchema!.properties!), outputSchema!.required])).toEqual(
        [
          [
            ["x402Version", "resources", "lines", "partialResults", "nearestOnly", "corrected", "pagination", "code"],
            undefined
          ],
          [["x402Version", "resource", "wrapper", "code"], undefined]
        ]
      )
      expect(Object.keys(tools[1]!.inputSchema.properties!)).toEqual(["ref", "expectedVersionHash"])
      expect((yield* call(client, "x402_search_resources")).body["resources"]).toHaveLength(1)
    }).pipe(Effect.scoped)
  )

  it.effect("Streamable HTTP requires initialization and its session, which DELETE ends [S182, S183]", () =>
    Effect.gen(function* () {
      const url = yield* start()
      expect((yield* send(url, "/mcp", { body: listTools })).status).toBe(400)
      expect((yield* send(url, "/mcp", { method: "GET" })).status).toBe(400)
      const { session, status, text } = yield* begin(url)
      expect(status).toBe(200)
      expect(session).toMatch(/^[0-9a-f]{32}$/)
      expect(dataOf(text)["result"].serverInfo.name).toBe("tollkeeper")
      const listed = yield* send(url, "/mcp", { body: listTools, session })
      expect(dataOf(listed.text)["result"].tools).toHaveLength(2)
      expect((yield* send(url, "/mcp", { body: listTools, session: session.replace(/./g, "0") })).status).toBe(404)
      expect((yield* send(url, "/mcp", { method: "DELETE", session })).status).toBe(200)
      expect((yield* send(url, "/mcp", { body: listTools, session })).status).toBe(404)
    }).pipe(Effect.scoped)
  )

  it.effect("a session accepts only the key that opened it [S183]", () =>
    Effect.gen(function* () {
      const url = yield* start([], keys)
      const { session } = yield* begin(url, { key })
      expect((yield* send(url, "/mcp", { body: listTools, session, key: otherKey })).status).toBe(404)
      expect((yield* send(url, "/mcp", { body: listTools, session, key })).status).toBe(200)
    }).pipe(Effect.scoped)
  )

  it.effect("sessions are limited in total and per caller, and idle ones expire [S183, S238]", () =>
    Effect.gen(function* () {
      const few = yield* start(["http.sessions_max=1"], keys)
      const first = yield* begin(few, { key })
      const uses = (session: string) =>
        Effect.map(send(few, "/mcp", { body: listTools, session, key }), (one) => one.status)
      expect(yield* uses(first.session)).toBe(200)
      const refused = yield* begin(few, { key: otherKey })
      expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "3600"])
      yield* TestClock.adjust("59 minutes")
      expect((yield* begin(few, { key: otherKey })).headers["retry-after"]).toBe("60")
      yield* TestClock.adjust("2 minutes")
      expect((yield* begin(few, { key: otherKey })).status).toBe(200)
      expect(yield* uses(first.session)).toBe(404)
    }).pipe(Effect.scoped)
  )

  it.effect("a further session ends the caller's own oldest idle one [S183]", () =>
    Effect.gen(function* () {
      const url = yield* start(["http.sessions_per_caller_max=2"], keys)
      const uses = (session: string, as: string) =>
        Effect.map(send(url, "/mcp", { body: listTools, session, key: as }), (one) => one.status)
      const others = (yield* begin(url, { key: otherKey })).session
      const opened: Array<string> = []
      for (let count = 0; count < 5; count++) {
        const { session, status } = yield* begin(url, { key })
        expect(status).toBe(200)
        opened.push(session)
      }
      const known: Array<number> = []
      for (const session of opened) known.push(yield* uses(session, key))
      expect(known).toEqual([404, 404, 404, 200, 200])
      expect(yield* uses(others, otherKey)).toBe(200)
    }).pipe(Effect.scoped)
  )

  it.effect("a session with a call under way is not evicted [S183]", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<() => void>()
      const facilitatorUrl = yield* substitute((_, response) => {
        const answer = () =>
          void response
            .writeHead(200, { "content-type": "application/json" })
            .end(JSON.stringify(pageOf(listedResource())))
        Deferred.doneUnsafe(asked, Effect.succeed(answer))
      })
      const url = yield* startTools({ facilitatorUrl, set: ["http.sessions_per_caller_max=1"] })
      const { session } = yield* begin(url)
      const params = { name: "x402_search_resources", arguments: {} }
      const called = yield* Effect.forkChild(
        send(url, "/mcp", { session, body: { jsonrpc: "2.0", id: 3, method: "tools/call", params } })
      )
      const answer = yield* Deferred.await(asked)
      expect((yield* begin(url)).status).toBe(503)
      answer()
      expect(dataOf((yield* Fiber.join(called)).text)["result"].isError).toBeUndefined()
      expect((yield* begin(url)).status).toBe(200)
    }).pipe(Effect.scoped)
  )

  it.live("an agent's search does not wait for 150 of another's [S238]", () =>
    Effect.gen(function* () {
      const held: Array<() => void> = []
      const facilitatorUrl = yield* substitute(({ url = "" }, response) => {
        const answer = () =>
          void response
            .writeHead(200, { "content-type": "application/json" })
            .end(JSON.stringify(pageOf(listedResource())))
        if (url.includes("flood")) held.push(answer)
        else answer()
      })
      const set = ["network_security.max_concurrent_connections=6"]
      const url = yield* startTools({ facilitatorUrl, set, environment: keys })
      const search = Effect.fnUntraced(function* (key: string, session: string, query: string) {
        const params = { name: "x402_search_resources", arguments: { query } }
        const body = { jsonrpc: "2.0", id: 3, method: "tools/call", params }
        const { text } = yield* send(url, "/mcp", { key, session, body })
        return dataOf(text)["result"]
      })
      const [{ session }, other] = [yield* begin(url, { key }), yield* begin(url, { key: otherKey })]
      for (let n = 0; n < 150; n++) yield* Effect.forkChild(search(key, session, `flood ${n}`))
      yield* eventually(
        Effect.sync(() => held.length),
        (count) => count === 3
      )
      expect((yield* search(otherKey, other.session, "weather")).isError).toBeUndefined()
      expect(held).toHaveLength(3)
    }).pipe(Effect.scoped)
  )

  it.effect("an unused session ends after a minute [S183]", () =>
    Effect.gen(function* () {
      const url = yield* start()
      const [unused, used] = [(yield* begin(url)).session, (yield* begin(url)).session]
      expect((yield* send(url, "/mcp", { body: listTools, session: used })).status).toBe(200)
      yield* TestClock.adjust("61 seconds")
      expect((yield* send(url, "/mcp", { body: listTools, session: unused })).status).toBe(404)
      expect((yield* send(url, "/mcp", { body: listTools, session: used })).status).toBe(200)
    }).pipe(Effect.scoped)
  )

  it.effect("invalid, overlong, compressed or deeply nested messages are refused [S238]", () =>
    Effect.gen(function* () {
      const url = yield* start()
      const { session } = yield* begin(url)
      expect((yield* send(url, "/mcp", { session, body: "{" })).status).toBe(400)
      expect((yield* send(url, "/mcp", { session, body: "x".repeat(300_000) })).status).toBe(413)
      expect((yield* send(url, "/mcp", { session, body: "[".repeat(40) + "]".repeat(40) })).status).toBe(400)
      expect(
        (yield* send(url, "/mcp", { session, body: listTools, headers: { "content-encoding": "gzip" } })).status
      ).toBe(415)
      expect((yield* send(url, "/mcp", { session, body: listTools })).status).toBe(200)
    }).pipe(Effect.scoped)
  )
})

const beginAs = (url: string, protocolVersion: string) =>
  Effect.map(
    send(url, "/mcp", { body: { ...initialize, params: { ...initialize.params, protocolVersion } } }),
    ({ headers }) => String(headers["mcp-session-id"])
  )
const ping = (id: number | string) => ({ jsonrpc: "2.0", id, method: "ping" })
const errorIn = ({ status, text }: { readonly status: number; readonly text: string }) => {
  const { error, id } = JSON.parse(text) as Json
  return [status, error?.code, id]
}

describe("a batch", () => {
  it.effect("a batch is refused in revisions without batches, and when empty [S182]", () =>
    Effect.gen(function* () {
      const url = yield* start()
      const old = yield* beginAs(url, "2025-03-26")
      for (const revision of ["2024-11-05", "2025-06-18", "2025-11-25"]) {
        const session = yield* beginAs(url, revision)
        expect(errorIn(yield* send(url, "/mcp", { session, body: [ping(1)] }))).toEqual([400, -32600, null])
      }
      for (const session of [old, undefined])
        expect(errorIn(yield* send(url, "/mcp", { ...(session && { session }), body: [] }))).toEqual([
          400,
          -32600,
          null
        ])
      const many = Array.from({ length: 101 }, (_, id) => ping(id))
      expect(errorIn(yield* send(url, "/mcp", { session: old, body: many }))).toEqual([400, -32600, null])
      const answered = yield* send(url, "/mcp", { session: old, body: [ping(1), ping("b")] })
      expect(answered.text.match(/"id":(1|"b")/g)).toHaveLength(2)
      // A session cannot begin within a batch.
      expect((yield* send(url, "/mcp", { body: [initialize] })).status).toBe(400)
    }).pipe(Effect.scoped)
  )

  it.effect("a batch counts as its number of messages [S238]", () =>
    Effect.gen(function* () {
      const url = yield* start(["http.calls_per_second=5"])
      const session = yield* beginAs(url, "2025-03-26")
      const batch = (length: number) =>
        send(url, "/mcp", { session, body: Array.from({ length }, (_, id) => ping(id)) })
      expect((yield* batch(100)).status).toBe(429)
      expect((yield* batch(8)).status).toBe(200)
      expect((yield* batch(2)).status).toBe(429)
      yield* TestClock.adjust("1 second")
      expect((yield* batch(4)).status).toBe(200)
    }).pipe(Effect.scoped)
  )
})

describe("a protocol error", () => {
  it.effect("a protocol error carries its code and the message's id", () =>
    Effect.gen(function* () {
      const url = yield* start()
      const { session } = yield* begin(url)
      const deep = "[".repeat(40) + "]".repeat(40)
      for (const [body, expected] of [
        ["{", [400, -32700, null]],
        [`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":${deep}}}`, [400, -32600, 7]],
        ['{"jsonrpc":"2.0","id":"a","id":"a","method":"ping"}', [400, -32600, "a"]],
        ["null", [400, -32600, null]],
        ['{"jsonrpc":"1.0","id":8,"method":"ping"}', [400, -32600, 8]],
        ['{"jsonrpc":"2.0","id":9}', [400, -32600, 9]]
      ] as const)
        expect([body.slice(0, 60), errorIn(yield* send(url, "/mcp", { session, body }))]).toEqual([
          body.slice(0, 60),
          expected
        ])
      expect(errorIn(yield* send(url, "/mcp", { body: ping(3) }))).toEqual([400, -32000, 3])
      expect(errorIn(yield* send(url, "/mcp", { session: "0".repeat(32), body: ping(3) }))).toEqual([404, -32001, null])
      const unknown = yield* send(url, "/mcp", { session, body: { jsonrpc: "2.0", id: 4, method: "tools/none" } })
      expect(dataOf(unknown.text)).toMatchObject({ id: 4, error: { code: -32601 } })
      // A notification gets no response, with any outcome.
      const refused = `{"jsonrpc":"2.0","method":"notifications/x","params":{"x":${deep}}}`
      for (const body of [refused, '{"jsonrpc":"2.0","method":"notifications/x","params":5}']) {
        const { status, text } = yield* send(url, "/mcp", { session, body })
        expect([status, text]).toEqual([202, "Accepted"])
      }
    }).pipe(Effect.scoped)
  )
})

describe("a canceled call", () => {
  it.live("a canceled call ends its stream, a batch's with its last call", () =>
    Effect.gen(function* () {
      const asked: Array<() => void> = []
      const facilitatorUrl = yield* substitute((_, response) => {
        asked.push(() =>
          response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(pageOf(listedResource())))
        )
      })
      const url = yield* startTools({ facilitatorUrl })
      const session = yield* beginAs(url, "2025-03-26")
      const search = (id: number) => ({
        jsonrpc: "2.0",
        id,
        method: "tools/call",
        params: { name: "x402_search_resources", arguments: {} }
      })
      const cancel = (requestId: number) =>
        send(url, "/mcp", {
          session,
          body: { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } }
        })
      const begun = Effect.fnUntraced(function* (body: unknown, calls: number) {
        const before = asked.length
        const stream = yield* Effect.forkChild(send(url, "/mcp", { session, body }))
        yield* eventually(
          Effect.sync(() => asked.length),
          (now) => now >= before + calls
        )
        return stream
      })
      const one = yield* begun(search(5), 1)
      expect((yield* cancel(5)).status).toBe(202)
      expect((yield* Fiber.join(one)).text).not.toContain("data:")
      const two = yield* begun([search(6), search(7)], 2)
      yield* cancel(6)
      for (const answer of asked) answer()
      const { text } = yield* Fiber.join(two)
      expect(text.match(/"id":\d/g)).toEqual(['"id":7'])
      // The session continues.
      expect((yield* send(url, "/mcp", { session, body: ping(8) })).text).toContain('"id":8')
    }).pipe(Effect.scoped)
  )
})

describe("SSE", () => {
  it.live("SSE serves older clients over /sse and /messages [S184]", () =>
    Effect.gen(function* () {
      const client = yield* connectSse(yield* start())
      const { tools } = yield* Effect.promise(() => client.listTools())
      expect(tools).toHaveLength(2)
      expect((yield* call(client, "x402_search_resources")).body["resources"]).toHaveLength(1)
    }).pipe(Effect.scoped)
  )

  it.effect("SSE rejects a session that it did not open [S184]", () =>
    Effect.gen(function* () {
      const url = yield* start()
      const { session } = yield* begin(url)
      for (const id of ["", "0".repeat(32), session]) {
        expect((yield* send(url, `/messages?sessionId=${id}`, { body: listTools })).status).toBe(404)
      }
    }).pipe(Effect.scoped)
  )

  it.live("HEAD /sse opens no session", () =>
    Effect.gen(function* () {
      const url = yield* start(["http.sessions_per_caller_max=1"])
      for (let n = 0; n < 20; n++) {
        const { status } = yield* Effect.promise(() => fetch(`${url}/sse`, { method: "HEAD" }))
        expect(status).toBe(405)
      }
      yield* connectSse(url)
    }).pipe(Effect.scoped)
  )

  it.live("closing the SSE stream ends the session [S184]", () =>
    Effect.gen(function* () {
      const url = yield* start(["http.sessions_per_caller_max=1"])
      const open = Effect.promise(
        () =>
          new Promise<{ readonly status: number; readonly hangUp: () => void }>((resolve) => {
            const request = httpRequest(`${url}/sse`, { headers: { accept: "text/event-stream" } }, (response) => {
              response.resume()
              resolve({ status: response.statusCode ?? 0, hangUp: () => void request.destroy() })
            })
            request.on("error", () => undefined).end()
          })
      )
      const first = yield* open
      expect([first.status, (yield* open).status]).toEqual([200, 503])
      first.hangUp()
      yield* eventually(open, ({ status }) => status === 200)
    }).pipe(Effect.scoped)
  )
})

describe("a stop", () => {
  it.live("a stop ends quiet streams immediately [S182, S184]", () =>
    Effect.gen(function* () {
      let begun = 0
      const stopped = yield* Effect.scoped(
        Effect.gen(function* () {
          const url = yield* start()
          const { session } = yield* begin(url)
          const opened = (path: string, headers: Record<string, string>) =>
            Effect.promise(
              () =>
                new Promise<{ readonly ended: Promise<void> }>((resolve) => {
                  const request = httpRequest(
                    `${url}${path}`,
                    { headers: { accept: "text/event-stream", ...headers } },
                    (response) => {
                      resolve({ ended: new Promise((ended) => response.resume().once("close", () => ended())) })
                    }
                  )
                  request.on("error", () => undefined).end()
                })
            )
          const streams = [yield* opened("/sse", {}), yield* opened("/mcp", { "mcp-session-id": session })]
          begun = performance.now()
          return streams
        })
      )
      yield* Effect.promise(() => Promise.all(stopped.map(({ ended }) => ended)))
      // A listener that waits for its connections waits for twenty seconds.
      expect(performance.now() - begun).toBeLessThan(15_000)
    })
  )
})

describe("a stop of the listener", () => {
  // The clock does not advance, so a stop that waits for its limit never ends. A client that abandons its first stream
  // before it is sent leaves such a connection behind.
  it.effect("stopping the listener waits for no idle connection [S182]", () =>
    Effect.gen(function* () {
      const ended = yield* Effect.scoped(
        Effect.gen(function* () {
          const port = Number(new URL(yield* start()).port)
          const socket = connect(port, "127.0.0.1").on("error", () => undefined)
          const closed = new Promise<void>((resolve) => void socket.once("close", () => resolve()))
          yield* Effect.promise(() => new Promise<void>((resolve) => void socket.once("connect", () => resolve())))
          // The server has accepted it: a later connection has been answered.
          yield* send(`http://127.0.0.1:${port}`, "/healthz", { method: "GET" })
          return { closed }
        })
      )
      yield* Effect.promise(() => ended.closed)
    })
  )
})

describe("access control", () => {
  it.effect("access is open without keys; with keys it requires the header [S246, S247]", () =>
    Effect.gen(function* () {
      const url = yield* start([], keys)
      const paths: ReadonlyArray<readonly [string, string]> = [
        ["POST", "/mcp"],
        ["GET", "/mcp"],
        ["DELETE", "/mcp"],
        ["GET", "/sse"],
        ["POST", "/messages?sessionId=1"]
      ]
      for (const [method, path] of paths) {
        const { headers, status } = yield* send(url, path, {
          method,
          ...(method === "POST" ? { body: initialize } : {})
        })
        expect([method, path, status]).toEqual([method, path, 401])
        const metadata = `${url}/.well-known/oauth-protected-resource/mcp`
        expect(headers["www-authenticate"]).toBe(`Bearer resource_metadata="${metadata}"`)
      }
      for (const path of ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"]) {
        const { status, text } = yield* send(url, path, { method: "GET" })
        expect([status, JSON.parse(text)]).toEqual([
          200,
          { resource: `${url}/mcp`, resource_name: "Tollkeeper agent tools", bearer_methods_supported: ["header"] }
        ])
        expect((yield* send(url, path, { method: "GET", headers: { host: "evil.example" } })).status).toBe(403)
        expect((yield* send(yield* start(), path, { method: "GET" })).status).toBe(404)
      }
      expect((yield* send(url, `/mcp?key=${secretOf(key)}`, { body: initialize })).status).toBe(401)
      expect((yield* begin(url, { key: "x:0123456789abcdee" })).status).toBe(401)
      const client = yield* connectHttp(url, secretOf(key))
      expect((yield* call(client, "x402_search_resources")).isError).toBe(false)
    }).pipe(Effect.scoped)
  )

  it.effect("keys are read from the variable that http.api_keys_env names [S247, S304]", () =>
    Effect.gen(function* () {
      const url = yield* start(["http.api_keys_env=AGENT_KEYS"], { AGENT_KEYS: key, FACILITATOR_API_KEYS: otherKey })
      expect((yield* begin(url, { key })).status).toBe(200)
      expect((yield* begin(url, { key: otherKey })).status).toBe(401)
    }).pipe(Effect.scoped)
  )

  it.effect("a foreign page or Host name for this machine is refused [S246]", () =>
    Effect.gen(function* () {
      const url = yield* start(['http.allowed_origins=["https://inspector.example"]'])
      expect((yield* begin(url, { headers: { host: "evil.example" } })).status).toBe(403)
      expect((yield* begin(url, { headers: { host: "localhost" } })).status).toBe(200)
      expect((yield* begin(url, { headers: { origin: "http://evil.example" } })).status).toBe(403)
      expect((yield* begin(url, { headers: { origin: "https://inspector.example" } })).status).toBe(200)
      // A page of this server on this machine; another port is another origin.
      expect((yield* begin(url, { headers: { origin: url } })).status).toBe(200)
      expect((yield* begin(url, { headers: { origin: "http://127.0.0.1:1" } })).status).toBe(403)
      expect((yield* begin(url, { headers: { host: "evil.example", origin: "http://evil.example" } })).status).toBe(403)
      const named = yield* start(['http.allowed_hosts=["tools.example"]'])
      expect((yield* begin(named, { headers: { host: "tools.example" } })).status).toBe(200)
      expect((yield* begin(named)).status).toBe(403)
    }).pipe(Effect.scoped)
  )

  it.effect("a page of an allowed origin has its preflight answered and reads answer and session", () =>
    Effect.gen(function* () {
      const origin = "https://inspector.example"
      const url = yield* start([`http.allowed_origins=["${origin}"]`])
      const preflight = (headers: Record<string, string>) =>
        send(url, "/mcp", { method: "OPTIONS", headers: { "access-control-request-method": "POST", ...headers } })
      const asked = yield* preflight({ origin })
      expect([asked.status, asked.headers["access-control-allow-origin"]]).toEqual([204, origin])
      for (const name of ["authorization", "content-type", "mcp-session-id", "mcp-protocol-version"])
        expect(String(asked.headers["access-control-allow-headers"]).split(", ")).toContain(name)
      expect(String(asked.headers["access-control-allow-methods"]).split(", ")).toContain("DELETE")
      const begun = yield* begin(url, { headers: { origin } })
      expect([begun.status, begun.headers["access-control-allow-origin"]]).toEqual([200, origin])
      expect(begun.headers["access-control-expose-headers"]).toContain("mcp-session-id")
      const foreign = yield* preflight({ origin: "https://evil.example" })
      expect(foreign.headers["access-control-allow-origin"]).toBeUndefined()
      expect((yield* begin(url)).headers["access-control-allow-origin"]).toBeUndefined()
    }).pipe(Effect.scoped)
  )

  it.effect("Host and Origin are checked on any address, with or without keys [S246]", () =>
    Effect.gen(function* () {
      const origin = "http://evil.example"
      for (const environment of [{}, keys]) {
        const url = yield* start(["http.host=0.0.0.0"], environment)
        const statuses = (path: string, headers: Record<string, string>, method = "POST") =>
          Effect.map(send(url, path, { key, headers, method, body: initialize }), ({ status }) => status)
        for (const path of ["/mcp", "/messages?sessionId=1"])
          for (const headers of [{ host: "evil.example" }, { origin }, { host: "evil.example", origin }])
            expect([path, headers, yield* statuses(path, headers)]).toEqual([path, headers, 403])
        expect(yield* statuses("/mcp", { host: "192.0.2.7:4522" })).toBe(200)
        expect(yield* statuses("/mcp", { host: "localhost" })).toBe(200)
      }
      const named = yield* start(["http.host=0.0.0.0", 'http.allowed_hosts=["tools.example"]'])
      expect((yield* begin(named, { headers: { host: "tools.example" } })).status).toBe(200)
      expect((yield* begin(named, { headers: { host: "192.0.2.7" } })).status).toBe(403)
    }).pipe(Effect.scoped)
  )

  it.effect("a caller above the rate limit gets 429 with Retry-After [S238]", () =>
    Effect.gen(function* () {
      const url = yield* start(["http.calls_per_second=1"])
      const statuses: Array<number> = []
      for (let attempt = 0; attempt < 3; attempt++) statuses.push((yield* begin(url)).status)
      expect(statuses).toEqual([200, 200, 429])
      expect((yield* begin(url)).headers["retry-after"]).toBe("1")
    }).pipe(Effect.scoped)
  )
})

describe("health", () => {
  it.effect("health reports discovery, payments and networks without a key [S185, S186, S303, S322]", () =>
    Effect.gen(function* () {
      const url = yield* start([], keys)
      const healthz = yield* send(url, "/healthz", { method: "GET" })
      expect([healthz.status, JSON.parse(healthz.text)]).toEqual([
        200,
        { status: "ok", discovery: "ready", payments: "disabled", networks: ["ledger:testnet"] }
      ])
      const readyz = yield* send(url, "/readyz", { method: "GET" })
      expect([readyz.status, JSON.parse(readyz.text)]).toEqual([200, { ready: true }])
      const stellar = yield* start(["wire.dialects=[stellar, ledger]"])
      expect(JSON.parse((yield* send(stellar, "/healthz", { method: "GET" })).text)["networks"]).toEqual([
        "stellar:testnet"
      ])
    }).pipe(Effect.scoped)
  )

  it.effect("health is not ready without discovery, probed at most once a second [S185, S186, S322]", () =>
    Effect.gen(function* () {
      let asked = 0
      const facilitatorUrl = yield* substitute((_, response) => {
        asked += 1
        response.writeHead(503).end()
      })
      const url = yield* startTools({ facilitatorUrl })
      for (let round = 0; round < 3; round++) {
        const readyz = yield* send(url, "/readyz", { method: "GET" })
        expect([readyz.status, JSON.parse(readyz.text)["ready"]]).toEqual([503, false])
        expect(JSON.parse((yield* send(url, "/healthz", { method: "GET" })).text)).toMatchObject({
          status: "ok",
          discovery: "unavailable"
        })
      }
      expect(asked).toBe(1)
    }).pipe(Effect.scoped)
  )
})

describe("a start", () => {
  it.effect("the start is refused for an unknown network or invalid base_url [S3]", () =>
    Effect.gen(function* () {
      const refusedWith = (set: string) => Effect.flip(start([set]))
      expect(yield* refusedWith("networks.ledger:moon.enabled=true")).toMatchObject({ _tag: "SettingsRefused" })
      expect(yield* refusedWith("facilitator.base_url=ftp://example.org")).toMatchObject({ _tag: "SettingsRefused" })
      expect(
        yield* refusedWith('network_security.resolved_mcp_endpoints={"https://a.example": "https://b.example"}')
      ).toMatchObject({ _tag: "SettingsRefused" })
      expect(yield* refusedWith("signer.mode=unknown")).toMatchObject({ _tag: "SettingsRefused", path: "signer.mode" })
    }).pipe(Effect.scoped)
  )
})
