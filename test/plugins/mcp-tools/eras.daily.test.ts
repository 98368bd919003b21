import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { call, connectHttp, type Json, listedResource, pageOf, standIn, standInJson, startTools } from "./support.ts"

const key = "0123456789abcdef"
const revision = "2026-07-28"
const search = "x402_search_resources"

const facilitator = standInJson(pageOf(listedResource()))
const start = (set: ReadonlyArray<string> = [], environment: Record<string, string> = {}) =>
  Effect.flatMap(facilitator, (facilitatorUrl) => startTools({ facilitatorUrl, set, environment }))

/** The official client of the newer era, which chooses the newest revision that both know. */
const connectModern = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ name: "agent", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } })
      await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)))
      return client
    }),
    (client) => Effect.promise(() => client.close())
  )

const ask = (url: string, method: string, params: Json = {}, headers: Record<string, string> = {}) =>
  Effect.promise(async () => {
    const name = typeof params["name"] === "string" ? { "mcp-name": params["name"] } : {}
    const answer = await fetch(`${url}/mcp`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": revision,
        "mcp-method": method,
        ...name,
        ...headers
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method,
        params: {
          ...params,
          _meta: {
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
            "io.modelcontextprotocol/clientCapabilities": {}
          }
        }
      })
    })
    const text = await answer.text()
    return { status: answer.status, session: answer.headers.get("mcp-session-id"), body: JSON.parse(text) as Json }
  })

it.live("a client of 2026-07-28 lists and calls without a session, and one of 2025-11-25 with one, on one /mcp", () =>
  Effect.gen(function* () {
    const url = yield* start(["http.sessions_max=1"])
    const modern = yield* connectModern(url)
    expect(modern.getNegotiatedProtocolVersion()).toBe(revision)
    const { tools } = yield* Effect.promise(() => modern.listTools())
    expect(tools.map(({ name }) => name)).toEqual([search, "x402_get_resource"])
    const found = (yield* Effect.promise(() => modern.callTool({ name: search, arguments: {} }))) as Json
    expect(found["structuredContent"].resources).toHaveLength(1)
    expect(JSON.parse(found["content"][0].text)).toEqual(found["structuredContent"])
    const older = yield* connectHttp(url)
    expect((yield* call(older, search)).body["resources"]).toHaveLength(1)
  }).pipe(Effect.scoped)
)

it.live("the server is discovered, and its list is the same each time, with how long it holds", () =>
  Effect.gen(function* () {
    const url = yield* start()
    const discovered = yield* ask(url, "server/discover")
    expect(discovered).toMatchObject({
      status: 200,
      session: null,
      body: { result: { supportedVersions: expect.arrayContaining([revision]), capabilities: { tools: {} } } }
    })
    const lists = [yield* ask(url, "tools/list"), yield* ask(url, "tools/list")]
    expect(lists[0]!.body["result"]).toMatchObject({ resultType: "complete", ttlMs: 60_000, cacheScope: "public" })
    expect(lists[1]!.body).toEqual(lists[0]!.body)
  }).pipe(Effect.scoped)
)

it.live("a fault is a result, and headers that contradict the message are refused", () =>
  Effect.gen(function* () {
    const url = yield* start()
    const wrong = yield* ask(url, "tools/call", { name: search, arguments: { limit: 0 } })
    expect(wrong.body["result"]).toMatchObject({ isError: true, structuredContent: { code: "INVALID_ARGUMENT" } })
    const contradicting = yield* ask(url, "tools/list", {}, { "mcp-method": "tools/call" })
    expect([contradicting.status, contradicting.body["result"]]).toEqual([400, undefined])
  }).pipe(Effect.scoped)
)

it.live("the door is the same without a session: a key, a Host that is ours, no page that nobody invited [S246]", () =>
  Effect.gen(function* () {
    const keyed = yield* start([], { TOOLS_API_KEYS: key })
    expect((yield* ask(keyed, "tools/list")).status).toBe(401)
    expect((yield* ask(keyed, "tools/list", {}, { authorization: `Bearer ${key}` })).status).toBe(200)
    const open = yield* start()
    expect((yield* ask(open, "tools/list", {}, { origin: "https://evil.example" })).status).toBe(403)
  }).pipe(Effect.scoped)
)

it.live("a call without a session that is under way when the process stops is answered [S182]", () =>
  Effect.gen(function* () {
    let answer = () => {}
    const asked = new Promise<void>((resolve) => {
      answer = resolve
    })
    let release = () => {}
    const facilitatorUrl = yield* standIn((_, response) => {
      release = () =>
        void response
          .writeHead(200, { "content-type": "application/json" })
          .end(JSON.stringify(pageOf(listedResource())))
      answer()
    })
    const called = yield* Effect.scoped(
      Effect.gen(function* () {
        const url = yield* startTools({ facilitatorUrl })
        const pending = Effect.runPromise(ask(url, "tools/call", { name: search, arguments: {} }))
        yield* Effect.promise(() => asked)
        setImmediate(release)
        return pending
      })
    )
    expect((yield* Effect.promise(() => called)).body["result"].structuredContent.resources).toHaveLength(1)
  }).pipe(Effect.scoped)
)
