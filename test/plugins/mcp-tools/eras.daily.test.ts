import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  askRaw,
  call,
  connectHttp,
  type Json,
  listedResource,
  pageOf,
  revision,
  substitute,
  substituteJson,
  startTools
} from "./support.ts"

const key = "0123456789abcdef"
const search = "x402_search_resources"

const facilitator = substituteJson(pageOf(listedResource()))
const start = (set: ReadonlyArray<string> = [], environment: Record<string, string> = {}) =>
  Effect.flatMap(facilitator, (facilitatorUrl) => startTools({ facilitatorUrl, set, environment }))

/** The official client of the newer era, which negotiates the newest common revision. */
const connectModern = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ name: "agent", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } })
      await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)))
      return client
    }),
    (client) => Effect.promise(() => client.close())
  )

it.live("one /mcp endpoint serves both stateless and session clients", () =>
  Effect.gen(function* () {
    const url = yield* start(["http.sessions_max=1"])
    const modern = yield* connectModern(url)
    expect(modern.getNegotiatedProtocolVersion()).toBe(revision)
    const { tools } = yield* Effect.promise(() => modern.listTools())
    expect(tools.map(({ name }) => name)).toEqual([search, "x402_get_resource"])
    const found = (yield* Effect.promise(() => modern.callTool({ name: search, arguments: {} }))) as Json
    expect(found["structuredContent"].resources).toHaveLength(1)
    expect(found["content"][0].text).toContain(found["structuredContent"].resources[0].wrapper.ref)
    const older = yield* connectHttp(url)
    expect((yield* call(older, search)).body["resources"]).toHaveLength(1)
  }).pipe(Effect.scoped)
)

it.live("server discovery and the tools list are stable and state their lifetime", () =>
  Effect.gen(function* () {
    const url = yield* start()
    const discovered = yield* askRaw(url, "server/discover")
    expect(discovered).toMatchObject({
      status: 200,
      session: null,
      body: { result: { supportedVersions: expect.arrayContaining([revision]), capabilities: { tools: {} } } }
    })
    const lists = [yield* askRaw(url, "tools/list"), yield* askRaw(url, "tools/list")]
    expect(lists[0]!.body["result"]).toMatchObject({ resultType: "complete", ttlMs: 60_000, cacheScope: "public" })
    expect(lists[1]!.body).toEqual(lists[0]!.body)
  }).pipe(Effect.scoped)
)

it.live("a tool error is a result, and contradicting headers are refused", () =>
  Effect.gen(function* () {
    const url = yield* start()
    const wrong = yield* askRaw(url, "tools/call", { name: search, arguments: { limit: 0 } })
    expect(wrong.body["result"]).toMatchObject({ isError: true, structuredContent: { code: "INVALID_ARGUMENT" } })
    const contradicting = yield* askRaw(url, "tools/list", {}, { headers: { "mcp-method": "tools/call" } })
    expect([contradicting.status, contradicting.body["result"]]).toEqual([400, undefined])
  }).pipe(Effect.scoped)
)

it.live("stateless calls pass the same key, Host and Origin checks [S246]", () =>
  Effect.gen(function* () {
    const keyed = yield* start([], { TOOLS_API_KEYS: key })
    expect((yield* askRaw(keyed, "tools/list")).status).toBe(401)
    expect((yield* askRaw(keyed, "tools/list", {}, { headers: { authorization: `Bearer ${key}` } })).status).toBe(200)
    const open = yield* start()
    expect((yield* askRaw(open, "tools/list", {}, { headers: { origin: "https://evil.example" } })).status).toBe(403)
  }).pipe(Effect.scoped)
)

it.live("a stateless call under way at shutdown is answered [S182]", () =>
  Effect.gen(function* () {
    let answer = () => {}
    const asked = new Promise<void>((resolve) => {
      answer = resolve
    })
    let release = () => {}
    const facilitatorUrl = yield* substitute((_, response) => {
      release = () =>
        void response
          .writeHead(200, { "content-type": "application/json" })
          .end(JSON.stringify(pageOf(listedResource())))
      answer()
    })
    const called = yield* Effect.scoped(
      Effect.gen(function* () {
        const url = yield* startTools({ facilitatorUrl })
        const pending = Effect.runPromise(askRaw(url, "tools/call", { name: search, arguments: {} }))
        yield* Effect.promise(() => asked)
        setImmediate(release)
        return pending
      })
    )
    expect((yield* Effect.promise(() => called)).body["result"].structuredContent.resources).toHaveLength(1)
  }).pipe(Effect.scoped)
)

it.live("a call continues its metadata's trace to the facilitator in either era", () =>
  Effect.gen(function* () {
    const traceId = "0af7651916cd43dd8448eb211c80319c"
    const seen: Array<unknown> = []
    const facilitatorUrl = yield* substitute((request, response) => {
      seen.push(request.headers["traceparent"])
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(pageOf(listedResource())))
    })
    const url = yield* startTools({ facilitatorUrl })
    const meta = { traceparent: `00-${traceId}-b7ad6b7169203331-01` }
    yield* askRaw(url, "tools/call", { name: search, arguments: {} }, { meta })
    const older = yield* connectHttp(url)
    yield* Effect.promise(() => older.callTool({ name: search, arguments: {}, _meta: meta }))
    for (const header of seen.splice(0)) expect(header).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`))
    // An invalid trace is ignored.
    for (const traceparent of ["00-0-0-00", 7, `00-${traceId}`, "x".repeat(10_000)]) {
      const params = { name: search, arguments: {} }
      const { body } = yield* askRaw(url, "tools/call", params, { meta: { traceparent } })
      expect(body["result"].structuredContent.resources).toHaveLength(1)
    }
    expect(seen.filter((header) => String(header).includes(traceId))).toEqual([])
  }).pipe(Effect.scoped)
)
